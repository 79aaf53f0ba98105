"""Session variables: PostgreSQL's own rules, with PostgreSQL as the judge.

`pgseek.walk` may hold any short text and changes no result, so a conversation about it has the same answers with and
without the proxy: SET, SET LOCAL, RESET, SHOW, set_config() and current_setting() in and out of transactions, savepoints
and failed groups, in both protocols, from a start-up value that both sides are given.
"""
import os
import random

import psycopg
import pytest

import conversations
import playing
import wire

COUNT = int(os.environ.get("PGSEEK_CONVERSATIONS", "1000")) // 4
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = 5
SQL = "SELECT id FROM variable_rows ORDER BY id LIMIT 2"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS variable_rows; CREATE TABLE variable_rows (id int4 PRIMARY KEY)")
        conn.execute("INSERT INTO variable_rows SELECT generate_series(1, 9)")
    yield


# ---- the rules, by comparison -----------------------------------------------------------------------------------------


TEXTS = (
    ["SET pgseek.walk = '{0}'", "SET pgseek.walk TO '{0}'", "SET SESSION pgseek.walk = '{0}'", "SET LOCAL pgseek.walk = '{0}'", "SET pgseek.walk = {0}",
     "set local PGSEEK.Walk to {0}", "SET pgseek.walk = E'{0}'", "SET pgseek.walk TO DEFAULT", "RESET pgseek.walk", "SET pgseek.walk = $${0}$$"] * 2
    + ["SHOW pgseek.walk", "SELECT current_setting('pgseek.walk')", "SELECT current_setting('pgseek.walk', true)"] * 6
    + ["SELECT set_config('pgseek.walk', '{0}', {1})"] * 4
    + ["BEGIN", "COMMIT", "ROLLBACK"] * 4 + ["SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "SAVEPOINT b", "ROLLBACK TO b", "SELECT 1 / 0"] * 2
    + ["RESET ALL", "DISCARD ALL", "SELECT 1", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "DEALLOCATE ALL"])
BOUND = [("SELECT set_config('pgseek.walk', $1, $2)", 2), ("SELECT set_config($1, $2, false)", -2), ("SELECT current_setting($1)", -1)]


class Talk(conversations.Conversation):
    """A conversation about one variable."""

    def __init__(self, seed):
        super().__init__(f"variable {seed}")
        self.steps, self.statements, self.unsynced = [], {}, False
        for _ in range(self.rng.randrange(4, 30)):
            self.sentence()
        self.sync()
        self.query("ROLLBACK")
        self.query("SHOW pgseek.walk")
        self.writes = self.delivery()

    def sentence(self):
        rng = self.rng
        if rng.random() < 0.15:
            self.config_call(*rng.choice(BOUND))
            return
        sql = rng.choice(TEXTS).format(f"v{rng.randrange(100)}", rng.choice(["true", "false"]))
        if rng.random() < 0.5:
            if self.unsynced:
                self.sync()
            self.query(sql)
            return
        self.say(wire.parse(sql), f"Parse '' {sql!r}")
        if rng.random() < 0.3:
            self.say(wire.describe("S"), "Describe S")
        self.run_bound([], rng)

    def config_call(self, sql, kind):
        value = f"b{self.rng.randrange(100)}"
        values = {2: [value, self.rng.choice(["t", "f"])], -2: ["pgseek.walk", value], -1: ["pgseek.walk"]}[kind]
        self.say(wire.parse(sql), f"Parse '' {sql!r}")
        self.run_bound(values, self.rng)

    def run_bound(self, values, rng):
        self.say(wire.bind(values), f"Bind {values}")
        if rng.random() < 0.5:
            self.say(wire.describe("P"), "Describe P")
        self.say(wire.execute(), "Execute")
        if rng.random() < 0.7:
            self.sync()


def sourceless(replies):
    """Without the file, line and routine of notices: what pgseek answers by itself has other ones."""
    def strip(body):
        return b"\0".join(field for field in body.split(b"\0") if not field.startswith((b"F", b"L", b"R")))
    return [(kind, strip(body) if kind == "N" else body) for kind, body in replies]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_variables_obey_the_servers_rules(server, proxy, chunk):
    start = {"pgseek.walk": "from start"}

    def differs(writes):
        try:
            expected = playing.visible(playing.play(server, "e2e", writes, **start))
        except playing.Hung:
            return None
        try:
            got = playing.visible(playing.play(proxy, "e2e", writes, **start))
        except playing.Hung as hung:
            got = hung.got + [("!", str(hung).encode())]
        if any(kind == "E" and b"without a Sync" in body for kind, body in got):
            return None  # a simple variable statement inside a group is refused: it cannot be followed
        expected, got = sourceless(expected), sourceless(got)
        at = playing.first_difference(expected, got, False)
        return None if at is None else (expected, got, at)

    for seed in range(SEED + chunk * COUNT // CHUNKS, SEED + (chunk + 1) * COUNT // CHUNKS):
        talk = Talk(seed)
        if differs(talk.writes):
            writes = playing.minimise(talk.writes, differs)
            pytest.fail(f"seed {seed}\n" + playing.transcript(writes, *(differs(writes) or ([], [], 0))), pytrace=False)


# ---- what only pgseek knows -------------------------------------------------------------------------------------------


def ids(conn, sql=f"{SQL} /* pgseek */", params=None):
    return [row[0] for row in conn.execute(sql, params).fetchall()]


def status(conn, name):
    return conn.info.parameter_status(f"pgseek.{name}")


def second_page_cursor(conn):
    assert ids(conn) == [1, 2]
    return status(conn, "next_cursor")


SETTERS = {
    "SET": lambda conn, token: conn.execute(f"SET pgseek.cursor = '{token}'"),
    "SET simple": lambda conn, token: psycopg.ClientCursor(conn).execute(f"SET pgseek.cursor TO '{token}'"),
    "set_config": lambda conn, token: conn.execute("SELECT set_config('pgseek.cursor', %s, false)", [token]),
    "set_config name": lambda conn, token: conn.execute("SELECT set_config(%s, %s, false)", ["pgseek.cursor", token]),
    "set_config literal": lambda conn, token: conn.execute(f"SELECT pg_catalog.set_config('pgseek.cursor', '{token}', 'f')"),
}


@pytest.mark.parametrize("setter", SETTERS)
def test_a_cursor_in_a_variable_is_used_once(proxy, setter):
    with proxy.connect() as conn:
        token = second_page_cursor(conn)
        SETTERS[setter](conn, token)
        assert conn.execute("SHOW pgseek.cursor").fetchone() == (token,)
        assert ids(conn) == [3, 4]
        assert conn.execute("SELECT current_setting('pgseek.cursor', true)").fetchone()[0] in ("", None)
        assert ids(conn) == [1, 2]


@pytest.mark.parametrize("simple", [False, True])
def test_a_local_cursor_ends_with_its_transaction(proxy, simple):
    with proxy.connect() as conn:
        if simple:
            conn.cursor_factory = psycopg.ClientCursor
        token = second_page_cursor(conn)
        conn.execute("BEGIN")
        conn.execute(f"SET LOCAL pgseek.cursor = '{token}'")
        conn.execute("COMMIT")
        assert ids(conn) == [1, 2]
        conn.execute("BEGIN")
        conn.execute(f"SET LOCAL pgseek.cursor = '{token}'")
        assert ids(conn) == [3, 4]
        conn.execute("COMMIT")
        assert ids(conn) == [1, 2]


def test_rollback_gives_a_used_cursor_back(proxy):
    with proxy.connect() as conn:
        token = second_page_cursor(conn)
        conn.execute(f"SET pgseek.cursor = '{token}'")
        conn.execute("BEGIN")
        assert ids(conn) == [3, 4]
        conn.execute("ROLLBACK")
        assert ids(conn) == [3, 4], "the retry uses the cursor again"


def test_a_savepoint_rolled_back_restores_the_cursor(proxy):
    with proxy.connect() as conn:
        token = second_page_cursor(conn)
        conn.execute("BEGIN")
        conn.execute("SAVEPOINT s")
        conn.execute(f"SET pgseek.cursor = '{token}'")
        conn.execute("ROLLBACK TO s")
        assert ids(conn) == [1, 2]
        conn.execute(f"SET pgseek.cursor = '{token}'")
        conn.execute("SAVEPOINT t")
        assert ids(conn) == [3, 4]
        conn.execute("ROLLBACK TO SAVEPOINT t")
        assert ids(conn) == [3, 4]
        conn.execute("COMMIT")
        assert ids(conn) == [1, 2]


@pytest.mark.parametrize("undo", ["RESET pgseek.cursor", "RESET ALL", "DISCARD ALL", "SET pgseek.cursor TO DEFAULT", "SET pgseek.cursor = ''"])
def test_what_takes_a_cursor_back(proxy, undo):
    with proxy.connect() as conn:
        token = second_page_cursor(conn)
        conn.execute(f"SET pgseek.cursor = '{token}'")
        conn.execute(undo)
        assert ids(conn) == [1, 2]


def test_a_page_that_the_server_fails_keeps_its_cursor(proxy):
    failing = "SELECT id, 1 / (id - 1 - current_setting('variable.x')::int) AS q FROM variable_rows ORDER BY id LIMIT 2 /* pgseek */"
    with proxy.connect() as conn:
        conn.execute("SET variable.x = 100")
        conn.execute(failing)
        token = status(conn, "next_cursor")
        conn.execute(f"SET pgseek.cursor = '{token}'")
        conn.execute("SET variable.x = 2")
        with pytest.raises(psycopg.errors.DivisionByZero):
            conn.execute(failing)
        conn.execute("SET variable.x = 100")
        assert [row[0] for row in conn.execute(failing).fetchall()] == [3, 4]


def test_a_rejected_cursor_is_gone(proxy):
    with proxy.connect() as conn:
        conn.execute("SET pgseek.cursor = 'AAAA'")
        with pytest.raises(psycopg.Error) as refused:
            ids(conn)
        assert refused.value.sqlstate in ("PS001", "PS002")
        assert ids(conn) == [1, 2]


def test_a_comment_wins_over_a_variable(proxy):
    with proxy.connect() as conn:
        second = second_page_cursor(conn)
        ids(conn, f"{SQL} /* pgseek cursor={second} */")
        third = status(conn, "next_cursor")
        conn.execute(f"SET pgseek.cursor = '{second}'")
        assert ids(conn, f"{SQL} /* pgseek cursor={third} */") == [5, 6]


@pytest.mark.parametrize("on", ["on", "true", "1", "'yes'"])
def test_paginate_tags_every_select(proxy, on):
    with proxy.connect() as conn:
        ids(conn, SQL)
        assert status(conn, "action") is None
        conn.execute(f"SET pgseek.paginate = {on}")
        assert ids(conn, SQL) == [1, 2]
        assert status(conn, "action") == "first"
        page = status(conn, "page_id")
        conn.execute("RESET pgseek.paginate")
        ids(conn, SQL)
        assert status(conn, "page_id") == page


STARTS = [{"options": "-c pgseek.paginate=on"}, {"options": "-cpgseek.paginate=on -c work_mem=1MB"}, {"options": "--pgseek.paginate=on"},
          {"options": "-c work_mem=1MB -c pgseek.paginate=on -c pgseek.tail=on"}]


@pytest.mark.parametrize("start", STARTS)
def test_startup_options(proxy, start):
    with proxy.connect(**start) as conn:
        assert ids(conn, SQL) == [1, 2]
        assert status(conn, "action") == "first"
        if "work_mem" in start["options"]:
            assert conn.execute("SHOW work_mem").fetchone() == ("1MB",)
        conn.execute("SET pgseek.paginate = off")
        conn.execute("RESET ALL")
        conn.execute(SQL)
        assert conn.execute("SHOW pgseek.paginate").fetchone() == ("on",)


def test_pgoptions_and_a_direct_startup_parameter(proxy):
    out = proxy.psql("-At", "-c", "SHOW pgseek.walk", env={"PGOPTIONS": "-c pgseek.walk=mine"})
    assert out.strip() == "mine"
    with proxy.wire(**{"pgseek.walk": "direct"}) as conn:
        assert conn.rows(wire.query("SHOW pgseek.walk")) == [[b"direct"]]


def test_no_value_reaches_the_server(proxy, server):
    with proxy.connect(options="-c pgseek.walk=secret0") as conn:
        pid = conn.info.backend_pid
        conn.execute("SET pgseek.walk = 'secret1'")
        conn.execute("SELECT set_config('pgseek.walk', %s, false)", ["secret2"])
        seen = conn.execute("SELECT string_agg(coalesce(setting, ''), ',') FROM pg_settings WHERE name LIKE 'pgseek.%'").fetchone()[0]
        assert "secret" not in (seen or "")
        with server.connect() as admin:
            assert "secret" not in admin.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()[0]


@pytest.mark.parametrize("sql", [
    "SET pgseek.cursor = 'a'; SELECT 1", "SELECT 1; SET pgseek.cursor = 'a'", "SELECT set_config('pgseek.cursor', 'a', false), 1",
    "SELECT set_config('pgseek.cursor', 'a', false) FROM variable_rows", "SET pgseek.curser = 'a'", "SET pgseek.page = 'middle'",
    "SET pgseek.cursor = 'a', 'b'", "SELECT 1; RESET pgseek.cursor"])
def test_what_cannot_be_followed_is_refused(proxy, sql):
    with proxy.wire() as conn:
        answer = conn.ask(wire.query(sql))
        assert wire.kinds(answer) == "E Z"
        assert answer[0].fields()["C"] == "PS000"
        assert answer[-1].body == b"I"
        assert conn.rows(wire.query("SELECT 7")) == [[b"7"]]


def test_a_mention_inside_a_string_is_no_variable(proxy):
    with proxy.connect() as conn:
        assert conn.execute("SELECT count(*) FROM variable_rows WHERE id::text LIKE '%pgseek.cursor%'").fetchone() == (0,)
        assert psycopg.ClientCursor(conn).execute("SELECT 'SET pgseek.cursor = 1'").fetchone() == ("SET pgseek.cursor = 1",)


def test_an_uncertain_value_is_never_guessed(proxy):
    """A savepoint command among several statements cannot be followed: the next page that would use the value is refused."""
    with proxy.wire() as conn:
        first = conn.ask(wire.query(f"{SQL} /* pgseek */"))
        token = wire.statuses(first)["pgseek.next_cursor"]
        conn.ask(wire.query("BEGIN"))
        conn.ask(wire.query("SAVEPOINT s"))
        conn.ask(wire.query(f"SET pgseek.cursor = '{token}'"))
        conn.ask(wire.query("SELECT 1; ROLLBACK TO s; SELECT 2"))
        answer = conn.ask(wire.query(f"{SQL} /* pgseek */"))
        error = [message.fields() for message in answer if message.kind == "E"]
        assert error and error[0]["C"] == "PS000"
        assert answer[-1].body == b"E"


def test_a_set_in_a_failed_group_is_undone(proxy):
    with proxy.wire() as conn:
        token = wire.statuses(conn.ask(wire.query(f"{SQL} /* pgseek */")))["pgseek.next_cursor"]
        conn.ask(wire.parse(f"SET pgseek.cursor = '{token}'"), wire.bind(), wire.execute(), wire.parse("SELECT 1 / 0"), wire.bind(), wire.execute(), wire.sync())
        assert conn.rows(wire.query(f"{SQL} /* pgseek */")) == [[b"1"], [b"2"]]


def test_show_of_the_page_that_came_last(proxy):
    with proxy.connect() as conn:
        token = second_page_cursor(conn)
        for sql in ("SHOW pgseek.next_cursor", "SELECT current_setting('pgseek.next_cursor')", "SELECT current_setting('pgseek.next_cursor', true)"):
            assert conn.execute(sql).fetchone() == (token,)
        assert conn.execute("SHOW pgseek.has_more").fetchone() == ("on",)
        assert conn.execute("SHOW pgseek.rows").fetchone() == ("2",)
        assert conn.execute("SHOW pgseek.action").fetchone() == ("first",)
