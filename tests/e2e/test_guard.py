"""What other sessions, and this one, change under a page between any two of its messages.

A page is sent message by message with Flush; between two of them an index, a NOT NULL or a primary key goes and rows
come that the plan could not have foreseen. Allowed are the right rows and the errors PS004 and PS005, nothing else.
"""
import psycopg
import pytest

import cluster
import pages
import wire

SQL = "SELECT code, at FROM guard_rows ORDER BY at LIMIT 4 /* pgseek cursor=$1 */"
STEPS = ["Parse", "Bind", "Describe", "Execute", "Sync"]
REFUSALS = ("PS004", "PS005")
BUILD = """
DROP TABLE IF EXISTS guard_rows;
DROP SCHEMA IF EXISTS guard_other CASCADE;
CREATE TABLE guard_rows (code int4 NOT NULL, at int4 NOT NULL);
CREATE UNIQUE INDEX guard_unique ON guard_rows (code);
INSERT INTO guard_rows SELECT i, i / 6 FROM generate_series(1, 24) i;
CREATE SCHEMA guard_other;
CREATE TABLE guard_other.guard_rows AS SELECT code + 100 AS code, at FROM guard_rows;
GRANT SELECT ON guard_rows TO app;
"""


@pytest.fixture
def admin(server):
    """A fresh table, and another session that may wait for a lock only briefly."""
    with server.connect() as conn:
        conn.execute(BUILD)
        conn.execute("SET lock_timeout = '200ms'")
        yield conn
        conn.execute("RESET lock_timeout")
        conn.execute("DROP TABLE guard_rows; DROP SCHEMA guard_other CASCADE")


@pytest.fixture
def conn(proxy, admin):
    """Closed before the table is dropped, whatever transaction a test has left open."""
    with proxy.wire() as conn:
        yield conn


class Outcome:
    """What came back: rows, or the SQLSTATE of the one error."""

    def __init__(self, messages):
        errors = [message.fields() for message in messages if message.kind == "E"]
        assert len(errors) <= 1
        self.error = errors[0]["C"] if errors else None
        self.codes = [int(message.row()[0]) for message in messages if message.kind == "D"]
        self.page = None if errors else pages.page_of(messages)
        assert messages[-1].kind == "Z"


def step_messages(name, token):
    return {"Parse": (wire.parse(SQL, name), "1"), "Bind": (wire.bind([token], name), "2"), "Describe": (wire.describe(), "T"),
            "Execute": (wire.execute(), "C"), "Sync": (wire.sync(), "Z")}


def page_with(conn, token, when, change, name=""):
    """Sends the page step by step; change() runs before the step `when`."""
    got = []
    for step, (message, answer) in step_messages(name, token).items():
        if step == when:
            change()
        conn.send(message, b"" if step == "Sync" else wire.flush())
        got += conn.until(answer, "E")
        if got[-1].kind == "E":
            conn.send(wire.sync())
            got += conn.until("Z")
            break
    return Outcome(got)


def warm(conn):
    """The first pages, asked twice so that whatever is kept is kept; returns the cursor behind the first."""
    asker = pages.Extended(conn, SQL.split(" /*")[0])
    assert asker.text() == SQL
    asker.ask(asker.ask().next)
    page = asker.ask()
    assert (page.action, [int(row[0]) for row in page.rows]) == ("first", [1, 2, 3, 4])
    return page.next


# Each drops what the proof stands on and adds rows that the old plan would lose: at the boundary (at 0, code 4) and
# right behind it.
LOSSES = {
    "index": ("DROP INDEX guard_unique", "INSERT INTO guard_rows VALUES (4, 0), (4, 0), (5, 0)"),
    "not null": ("ALTER TABLE guard_rows ALTER code DROP NOT NULL", "INSERT INTO guard_rows VALUES (NULL, 0), (NULL, 0)"),
    "sort key": ("ALTER TABLE guard_rows ALTER at DROP NOT NULL", "INSERT INTO guard_rows VALUES (50, NULL)"),
}


@pytest.mark.parametrize("when", STEPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_another_session_takes_the_proof_away(conn, admin, loss, when):
    token = warm(conn)
    waited = []

    def change():
        try:
            with admin.transaction():
                for sql in LOSSES[loss]:
                    admin.execute(sql)
        except psycopg.errors.LockNotAvailable:
            waited.append(True)

    outcome = page_with(conn, token, when, change)
    if when in ("Parse", "Bind") and not waited:
        assert outcome.error in REFUSALS, f"answered without a proof: {outcome.codes}"
        return
    assert outcome.error is None, f"{outcome.error} without a change"
    assert waited, "the proof could be taken away while the page was running"
    assert outcome.codes == [5, 6, 7, 8]


def expected_codes(admin, after):
    return [row[0] for row in admin.execute("SELECT code FROM guard_rows WHERE (at, code) > (%s, %s) ORDER BY at, code LIMIT 4", after)]


def test_drop_index_waits_for_a_bound_page(conn, admin):
    token = warm(conn)
    conn.send(wire.parse(SQL), wire.bind([token]), wire.flush())
    conn.until("2")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        admin.execute("DROP INDEX guard_unique")
    conn.send(wire.execute(), wire.flush())
    rows = conn.until("C")
    assert [int(m.row()[0]) for m in rows if m.kind == "D"] == expected_codes(admin, (0, 4))
    with pytest.raises(psycopg.errors.LockNotAvailable):
        admin.execute("DROP INDEX guard_unique")
    conn.ask(wire.sync())
    admin.execute("DROP INDEX guard_unique")


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_a_replaced_index_is_found_again(conn, admin, protocol, block):
    """The proof is lost and made anew under another name: at most one refusal, then right rows."""
    token = warm(conn) if protocol == "extended" else pages.Simple(conn, SQL.split(" /*")[0]).ask().next
    admin.execute("DROP INDEX guard_unique")
    admin.execute("CREATE UNIQUE INDEX guard_again ON guard_rows (code)")

    def page():
        if protocol == "simple":
            return Outcome(conn.ask(wire.query(SQL.replace("$1", token))))
        return Outcome(conn.ask(wire.extended(SQL, [token])))

    if block:
        conn.ask(wire.query("BEGIN"))
    outcome = page()
    if outcome.error:
        assert outcome.error in REFUSALS
        conn.ask(wire.query("ROLLBACK"))
        outcome = page()
    assert outcome.codes == expected_codes(admin, (0, 4))


# What this session does to itself, as extended messages inside the page's own group.
OWN = {"temporary table": "CREATE TEMP TABLE guard_rows AS SELECT code + 200 AS code, at FROM public.guard_rows", "search_path": "SET search_path = guard_other, public",
       "local search_path": "SET LOCAL search_path = guard_other", "role": "SET ROLE app", "session user": "SET SESSION AUTHORIZATION app"}


@pytest.mark.parametrize("when", STEPS)
@pytest.mark.parametrize("own", OWN)
def test_this_session_changes_what_names_mean(conn, admin, own, when):
    token = warm(conn)

    def change():
        conn.send(wire.parse(OWN[own], "change"), wire.bind([], "change", "change"), wire.execute("change"), wire.flush())
        conn.until("C")

    outcome = page_with(conn, token, when, change, name="page")
    if outcome.error:
        assert outcome.error in REFUSALS
    else:
        assert when in ("Describe", "Execute", "Sync"), "a cursor of one table or role was honoured in another"
        assert outcome.codes == [5, 6, 7, 8]


@pytest.mark.parametrize("protocol", ["simple", "extended"])
@pytest.mark.parametrize("own", OWN)
def test_between_two_pages(conn, admin, own, protocol):
    token = warm(conn) if protocol == "extended" else pages.Simple(conn, SQL.split(" /*")[0]).ask().next
    conn.ask(wire.query("BEGIN"))
    conn.ask(wire.query(OWN[own]))
    outcome = Outcome(conn.ask(wire.query(SQL.replace("$1", token)) if protocol == "simple" else wire.extended(SQL, [token])))
    assert outcome.error in REFUSALS
    conn.ask(wire.query("ROLLBACK"))
    outcome = Outcome(conn.ask(wire.query(SQL.replace("$1", token)) if protocol == "simple" else wire.extended(SQL, [token])))
    assert outcome.codes == [5, 6, 7, 8]


@pytest.mark.parametrize("own", ["temporary table", "search_path", "local search_path"])
def test_a_first_page_of_another_table_is_that_tables(conn, admin, own):
    """Without a cursor nothing is at stake but the facts: rows of the table that the name means now, or a refusal."""
    warm(conn)
    conn.ask(wire.query("BEGIN"))
    conn.ask(wire.query(OWN[own]))
    outcome = Outcome(conn.ask(wire.extended(SQL, [None])))
    if outcome.error:
        assert outcome.error in REFUSALS
        return
    assert len(outcome.codes) == 4 and all(code > 100 for code in outcome.codes)
    assert outcome.page.action.startswith("pass") and not outcome.page.next


@pytest.mark.parametrize("schema", ["pg_temp", "guard_front"])
def test_a_statement_keeps_the_table_that_it_was_prepared_over(server, proxy, admin, schema):
    """A table of the same name that comes in front of it is no reason for the server to look again; one that goes is."""
    admin.execute("CREATE SCHEMA guard_front")
    text = "SELECT code FROM guard_rows ORDER BY code LIMIT 4"

    def walk(conn, tag):
        heard = []

        def first():
            got = Outcome(conn.ask(wire.bind([], "kept"), wire.execute(), wire.sync()))
            heard.append(got.codes or got.error)
            return got.page

        conn.ask(wire.query("CREATE TEMP TABLE something (); SET search_path = guard_front, public"))
        conn.ask(wire.parse(text + tag, "kept"), wire.sync())
        first(), first()
        conn.ask(wire.query(f"CREATE TABLE {schema}.guard_rows AS SELECT code + 300 AS code, at FROM public.guard_rows; ALTER TABLE {schema}.guard_rows ADD PRIMARY KEY (code)"))
        action = first().action if tag else first() and None
        conn.ask(wire.query(f"DROP TABLE {schema}.guard_rows"))
        first()
        return heard, action

    try:
        with server.wire() as direct, proxy.wire() as through:
            expected, _ = walk(direct, "")
            assert expected == [[1, 2, 3, 4]] * 4
            assert walk(through, " /* pgseek */") == (expected, "pass: stale_names")
    finally:
        admin.execute("DROP SCHEMA guard_front CASCADE")


def test_a_prepared_page_over_a_primary_key_that_goes(conn, admin):
    admin.execute("DROP INDEX guard_unique; ALTER TABLE guard_rows ADD PRIMARY KEY (code)")
    asker = pages.Named(conn, SQL.split(" /*")[0])
    token = asker.ask().next
    assert [int.from_bytes(row[0], "big") for row in asker.ask(token).rows] == [5, 6, 7, 8]
    admin.execute("ALTER TABLE guard_rows DROP CONSTRAINT guard_rows_pkey")
    admin.execute("INSERT INTO guard_rows VALUES (4, 0)")
    with pytest.raises(wire.ServerError) as error:
        asker.ask(token)
    assert error.value.sqlstate in REFUSALS


def test_repeatable_read_sees_facts_and_rows_of_one_moment(conn, admin):
    token = warm(conn)
    conn.ask(wire.query("BEGIN ISOLATION LEVEL REPEATABLE READ"))
    conn.ask(wire.query("SELECT 1"))
    admin.execute("DROP INDEX guard_unique")
    admin.execute("INSERT INTO guard_rows VALUES (4, 0), (5, 0)")
    outcome = Outcome(conn.ask(wire.extended(SQL, [token])))
    assert outcome.error in REFUSALS or outcome.codes == [5, 6, 7, 8]
    conn.ask(wire.query("ROLLBACK"))


def test_a_cursor_of_another_tie_breaker_is_refused(conn, admin):
    """Another unique index of the same type takes the place of the one that the cursor's values belong to."""
    token = warm(conn)
    admin.execute("ALTER TABLE guard_rows ADD COLUMN twin int4 NOT NULL GENERATED ALWAYS AS (1000 - code) STORED")
    admin.execute("DROP INDEX guard_unique; CREATE UNIQUE INDEX guard_twin ON guard_rows (twin)")
    outcome = Outcome(conn.ask(wire.extended(SQL, [token])))
    assert outcome.error in REFUSALS
    assert Outcome(conn.ask(wire.extended(SQL, [token]))).error == "PS004"
    assert Outcome(conn.ask(wire.extended(SQL, [None]))).codes == [5, 4, 3, 2]


# ---- rights that others take away -------------------------------------------------------------------------------------

VIEW = "SELECT code FROM guard_view ORDER BY code LIMIT 3 /* pgseek cursor='{}' */"


@pytest.mark.parametrize("block", [False, True])
def test_a_view_needs_no_rights_on_what_is_below_it(server, proxy, admin, block):
    """The role could look into the schema when the plan was made, and cannot any more. The view asks for its owner's rights."""
    admin.execute("CREATE VIEW guard_view AS SELECT code FROM guard_other.guard_rows WHERE at >= 0")
    admin.execute("ALTER TABLE guard_other.guard_rows ALTER code SET NOT NULL, ADD UNIQUE (code)")
    admin.execute("GRANT USAGE ON SCHEMA guard_other TO app; GRANT SELECT ON guard_view, guard_other.guard_rows TO app")
    with proxy.wire(user="app") as conn, proxy.wire(user="app") as other:
        token = pages.page_of(conn.ask(wire.query(VIEW.format("")))).next
        assert token
        admin.execute("REVOKE USAGE ON SCHEMA guard_other FROM app; REVOKE ALL ON guard_other.guard_rows FROM app")
        for each in (conn, other):
            if block:
                each.ask(wire.query("BEGIN"))
            first, then = (Outcome(each.ask(wire.query(VIEW.format(cursor)))) for cursor in ("", token))
            assert (first.error, first.codes, then.error, then.codes) == (None, [101, 102, 103], None, [104, 105, 106])


@pytest.mark.parametrize("protocol", ["simple", "extended", "named"])
def test_a_schema_that_is_closed_says_what_it_says_directly(server, proxy, admin, protocol):
    """Of a statement that was prepared before, the server itself asks for no right on the schema any more."""
    sql = "SELECT code FROM guard_other.guard_rows ORDER BY code LIMIT 3 /* pgseek */"
    admin.execute("ALTER TABLE guard_other.guard_rows ALTER code SET NOT NULL, ADD UNIQUE (code)")
    admin.execute("GRANT USAGE ON SCHEMA guard_other TO app; GRANT SELECT ON guard_other.guard_rows TO app")
    ask = {"simple": [wire.query(sql)], "extended": [wire.extended(sql)], "named": [wire.bind(statement="s"), wire.execute(), wire.sync()]}[protocol]

    def outcome(conn):
        got = conn.ask(*ask)
        errors = [{letter: message.fields().get(letter) for letter in "CMP"} for message in got if message.kind == "E"]
        return errors, [message.row() for message in got if message.kind == "D"]

    with proxy.wire(user="app") as conn, server.wire(user="app") as direct:
        for each in (conn, direct):
            each.ask(wire.parse(sql, "s"), wire.sync())
            assert len(outcome(each)[1]) == 3
        admin.execute("REVOKE USAGE ON SCHEMA guard_other FROM app")
        for _ in range(2):
            assert outcome(conn) == outcome(direct)


def test_a_role_that_is_dropped_reads_on(proxy, admin):
    """As directly: the guard cannot ask who it is any more, and that is no error of the statement's."""
    admin.execute("CREATE ROLE guard_gone LOGIN; GRANT SELECT ON guard_rows TO PUBLIC")
    with proxy.wire(user="guard_gone") as conn:
        assert Outcome(conn.ask(wire.extended(SQL, [None]))).page.action == "first"
        admin.execute("DROP ROLE guard_gone")
        got = Outcome(conn.ask(wire.extended(SQL, [None])))
        assert not got.error and len(got.codes) == 4 and got.page.action.startswith("pass: ")


@pytest.mark.parametrize("kind", ["oidvector", "int2vector", "tsquery"])
def test_a_key_whose_empty_value_cannot_come_back(proxy, admin, kind):
    """PostgreSQL's own input of these types refuses what their output makes of it: a walk would end at such a row."""
    admin.execute(f"ALTER TABLE guard_rows ADD sorted {kind} NOT NULL DEFAULT ''")
    with proxy.wire() as conn:
        got = Outcome(conn.ask(wire.query("SELECT code FROM guard_rows ORDER BY sorted, code LIMIT 4 /* pgseek */")))
        assert (got.codes, got.page.action) == ([1, 2, 3, 4], "pass: key_type")


# ---- two servers ------------------------------------------------------------------------------------------------------


def test_databases_of_one_name_on_two_servers(server, run_dir, make_proxy):
    """One statement, user and database name, and other object ids. Neither takes the other's plans away, which in a block
    would be an error."""
    second = cluster.Cluster(run_dir / "second").start()
    lines = {"one": server, "two": second}
    try:
        for endpoint, others in ((server, 0), (second, 3)):
            with endpoint.connect() as conn:
                for i in range(others):
                    conn.execute(f"CREATE TABLE guard_other_{i} (id int4)")
                conn.execute("CREATE TABLE guard_shard (id int8 PRIMARY KEY, of int4 NOT NULL)")
                conn.execute(f"INSERT INTO guard_shard SELECT i, {others} FROM generate_series(1, 9) i")
        proxy = make_proxy({name: f"host={to.host} port={to.port} dbname={cluster.DATABASE}" for name, to in lines.items()}, workers=1)
        with proxy.wire(database="one") as one, proxy.wire(database="two") as two:
            for conn in (one, two):
                conn.ask(wire.query("BEGIN"))
            for _ in range(3):
                for conn, of in ((one, b"0"), (two, b"3")):
                    page = pages.page_of(conn.ask(wire.query("SELECT id, of FROM guard_shard ORDER BY id LIMIT 2 /* pgseek */")))
                    assert (page.action, page.rows) == ("first", [(b"1", of), (b"2", of)])
    finally:
        second.stop()
        with server.connect() as conn:
            conn.execute("DROP TABLE IF EXISTS guard_shard")
