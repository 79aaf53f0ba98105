"""Side queries leave no trace: a session through the proxy is afterwards what a direct session is.

The same statements run in both, tagged pages among them; then both are asked about themselves: settings, prepared
statements, portals, locks, transaction ids, temporary objects, sequences. What the client has set may be hostile.
"""
import cluster
import pytest

import pages
import wire

BUILD = """
DROP SCHEMA IF EXISTS side CASCADE;
CREATE SCHEMA side;
CREATE TABLE side.rows (id int8 PRIMARY KEY, at timestamptz NOT NULL, name text NOT NULL, seen interval, raw bytea, weight float8 NOT NULL);
INSERT INTO side.rows SELECT i, timestamptz '2026-01-01 12:00Z' + i * interval '7 h', 'N' || i % 5, i * interval '1 day 2 h', decode(to_hex(i % 256), 'escape'), i / 7.0
  FROM generate_series(1, 30) i;
CREATE VIEW side.view AS SELECT id, name, at FROM side.rows WHERE id > 0;
CREATE SEQUENCE side.numbers;
GRANT USAGE ON SCHEMA side TO app;
GRANT SELECT ON side.rows, side.view TO app;
"""
PLAIN = "SELECT id, at, name, seen, raw, weight FROM side.rows ORDER BY at DESC LIMIT 4"
BY_EXPRESSION = "SELECT id, upper(name) FROM side.rows ORDER BY lower(name), id LIMIT 4"
OF_VIEW = "SELECT id, name FROM side.view ORDER BY at LIMIT 4"
MODES = ["simple", "extended", "named"]
STATEMENTS = [PLAIN, BY_EXPRESSION, OF_VIEW]

# What one session can see of itself. Locks of catalogs are left out: reading a catalog holds them, as in any block.
PROBE = """
SELECT 'setting', name, setting, source FROM pg_catalog.pg_settings
UNION ALL SELECT 'prepared', name, statement, from_sql::text FROM pg_catalog.pg_prepared_statements
UNION ALL SELECT 'portal', name, statement, is_holdable::text FROM pg_catalog.pg_cursors WHERE name <> ''
UNION ALL SELECT 'lock', l.locktype, l.relation::regclass::text, l.mode FROM pg_catalog.pg_locks l
 WHERE l.pid = pg_backend_pid() AND l.locktype <> 'virtualxid' AND coalesce(l.relation, 0) >= 16384
UNION ALL SELECT 'xid', pg_current_xact_id_if_assigned()::text, NULL, NULL
UNION ALL SELECT 'temp', pg_my_temp_schema()::text, NULL, NULL
UNION ALL SELECT 'random', random()::text, NULL, NULL
UNION ALL SELECT 'channel', c, NULL, NULL FROM pg_listening_channels() c
UNION ALL SELECT 'who', CURRENT_USER, SESSION_USER, current_setting('role')
UNION ALL SELECT 'lastval', lastval()::text, NULL, NULL
ORDER BY 1, 2, 3, 4
"""


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as conn:
        conn.execute(BUILD)
        yield
        conn.execute("DROP SCHEMA side CASCADE")


def fresh(sql):
    """The same statement, which no plan is kept for."""
    fresh.serial = getattr(fresh, "serial", 0) + 1
    return sql.replace(" LIMIT", f" /* side {fresh.serial} */ LIMIT")


def both(server, proxy):
    """One session of each side, in the same known state. Costs that a setting drives up are not to start the compiler."""
    sessions = [server.wire(application_name="side"), proxy.wire(application_name="side")]
    for conn in sessions:
        conn.ask(wire.query("SELECT nextval('side.numbers')"))
        conn.ask(wire.query("SELECT setval('side.numbers', 7)"))
        conn.ask(wire.query("SELECT setseed(0.25)"))
        conn.ask(wire.query("SET jit = off"))
    return sessions


def run(conn, sql, mode):
    """One page."""
    text = f"{sql} /* pgseek */"
    if mode == "simple":
        return conn.ask(wire.query(text))
    name = "mine" if mode == "named" else ""
    messages = conn.ask(wire.parse(text, name), wire.bind([], name), wire.describe(), wire.execute(), wire.sync())
    if name:
        conn.ask(wire.query("DEALLOCATE mine"))
    return messages


def said(messages):
    """All but our statuses, as letters and bodies."""
    return [(m.kind, m.body) for m in wire.without_ours(messages)]


def probe(conn):
    conn.send(wire.query(PROBE))
    messages = conn.ready()
    errors = [m.fields()["M"] for m in messages if m.kind == "E"]
    assert not errors, errors
    return {tuple(m.row()) for m in messages if m.kind == "D"}


def assert_same(direct, through):
    """Texts that are kept for a named statement are named after us; nothing else may differ."""
    through = {row for row in through if not (row[0] == b"prepared" and row[1].startswith(b"pgseek"))}
    assert (through - direct, direct - through) == (set(), set())


SETTINGS = [
    "default_transaction_read_only = on", "statement_timeout = '20s'", "lock_timeout = '20s'", "row_security = off", "DateStyle = 'German, DMY'",
    "IntervalStyle = iso_8601", "TimeZone = 'Asia/Kolkata'", "bytea_output = escape", "search_path = ''", "search_path = side, pg_catalog",
    "plan_cache_mode = force_generic_plan", "plan_cache_mode = force_custom_plan", "enable_seqscan = off",
    "enable_indexscan = off", "enable_hashjoin = off", "enable_nestloop = off", "enable_sort = off", "enable_hashagg = off", "session_replication_role = replica",
    "default_transaction_isolation = serializable", "default_transaction_isolation = 'repeatable read'", "default_transaction_deferrable = on",
    "extra_float_digits = -15", "quote_all_identifiers = on", "array_nulls = off", "transform_null_equals = on", "from_collapse_limit = 1",
    "join_collapse_limit = 1", "geqo_threshold = 2", "cursor_tuple_fraction = 0", "work_mem = '64kB'", "lc_numeric = 'C'", "lc_monetary = 'C'",
    "client_encoding = LATIN1", "client_encoding = SQL_ASCII", "debug_print_parse = on", "log_statement = 'all'", "log_min_duration_statement = 0",
    "track_activities = off", "backslash_quote = on", "default_text_search_config = 'pg_catalog.simple'", "gin_fuzzy_search_limit = 1",
    "constraint_exclusion = off", "max_parallel_workers_per_gather = 4", "parallel_setup_cost = 0", "temp_file_limit = 0", "idle_in_transaction_session_timeout = '60s'",
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_changes_nothing(server, proxy, setting):
    """Pages come as without the proxy, and the session is afterwards as without it."""
    direct, through = both(server, proxy)
    with direct, through:
        for conn in (direct, through):
            assert wire.kinds(conn.ask(wire.query(f"SET {setting}")))[0] in "CS"
        for mode in MODES:
            for statement in STATEMENTS:
                sql = fresh(statement)
                answers = [run(conn, sql, mode) for conn in (direct, through)]
                assert said(answers[1]) == said(answers[0])
                assert wire.statuses(answers[1])["pgseek.action"] == "first"
        assert_same(*[probe(conn) for conn in (direct, through)])


@pytest.fixture(scope="module")
def sessions(server, proxy_of_the_run):
    direct, through = both(server, proxy_of_the_run)
    with direct, through:
        yield direct, through


@pytest.mark.parametrize("level", ["debug5", "debug1", "log", "notice"])
@pytest.mark.parametrize("mode", MODES)
def test_no_message_speaks_of_them(server, proxy, mode, level):
    """The server tells a client who wants to hear it about each statement: not about ours."""
    with proxy.wire() as conn:
        conn.ask(wire.query(f"SET client_min_messages = {level}"))
        conn.ask(wire.query("SET log_statement = 'all'; SET log_min_duration_statement = 0"))
        for block in (False, True):
            if block:
                conn.ask(wire.query("BEGIN"))
            for statement in STATEMENTS:
                answer = run(conn, fresh(statement), mode)
                notices = [m.fields()["M"] for m in answer if m.kind == "N"]
                assert not [text for text in notices if "pgseek_" in text or "pg_catalog" in text], notices
                assert len([m for m in answer if m.kind == "D"]) == 4
        conn.ask(wire.query("COMMIT"))


@pytest.mark.parametrize("mode", MODES)
def test_a_notice_of_the_clients_own_comes_once(sessions, mode):
    """A name that is too long is cut with a NOTICE: as often as without the proxy, whoever parses the text how often."""
    long = "x" * 70
    for again in (False, True):
        sql = fresh(f'SELECT id, name AS "{long}" FROM side.rows ORDER BY id LIMIT 4')
        for repeat in range(2):
            answers = [run(conn, sql, mode) for conn in sessions]
            assert said(answers[1]) == said(answers[0]), (again, repeat)


# ---- transactions ---------------------------------------------------------------------------------------------------

BLOCKS = ["BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("begin", BLOCKS)
def test_a_block_is_as_it_was(server, proxy, begin, mode):
    """No transaction id, no lock on a table that the statement does not read, the same portals; savepoints of the client's own."""
    direct, through = both(server, proxy)
    with direct, through:
        for conn in (direct, through):
            conn.ask(wire.query(begin))
            conn.ask(wire.query("SAVEPOINT mine"))
        for statement in STATEMENTS:
            sql = fresh(statement)
            answers = [run(conn, sql, mode) for conn in (direct, through)]
            assert said(answers[1]) == said(answers[0])
            assert wire.statuses(answers[1])["pgseek.action"] == "first"
        assert_same(*[probe(conn) for conn in (direct, through)])
        for sql in ("ROLLBACK TO mine", "RELEASE mine", "ROLLBACK TO mine"):
            answers = [conn.ask(wire.query(sql)) for conn in (direct, through)]
            assert said(answers[1]) == said(answers[0])


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_block_is_asked_nothing(proxy, mode):
    """In a failed transaction nothing is sent but the client's own, whose answer is 25P02."""
    with proxy.wire() as conn:
        conn.ask(wire.query("BEGIN"))
        conn.ask(wire.query("SELECT 1/0"))
        answer = run(conn, fresh(PLAIN), mode)
        assert [m.fields()["C"] for m in answer if m.kind == "E"] == ["25P02"]
        assert answer[-1].body == b"E"
        assert conn.ask(wire.query("ROLLBACK"))[-1].body == b"I"


@pytest.mark.parametrize("total", ["", "total=exact", "total=estimate"])
@pytest.mark.parametrize("mode", MODES)
def test_what_others_see_of_the_session(server, proxy, mode, total):
    """pg_stat_activity shows the page, not what was asked beside it; and no transaction is left open."""
    with proxy.wire() as conn, server.connect() as admin:
        pid = conn.rows(wire.query("SELECT pg_backend_pid()"))[0][0]
        for block in (False, True):
            if block:
                conn.ask(wire.query("BEGIN"))
            for statement in STATEMENTS:
                sql = fresh(statement)
                asker = pages.MODES[mode](conn, sql, options=total)
                page = asker.ask()
                for cursor in (None, page.next):
                    asker.ask(cursor)
                    query, state, xid = admin.execute("SELECT query, state, backend_xid FROM pg_stat_activity WHERE pid = %s", [int(pid)]).fetchone()
                    assert "FROM side." in query and "/* pgseek" in query and "pg_catalog.current_setting" not in query, query
                    assert (state, xid) == ("idle in transaction" if block else "idle", None)


def test_a_snapshot_is_taken_by_the_first_statement(server, proxy):
    """REPEATABLE READ: as without the proxy, what commits before the page is seen, and what commits behind it is not."""
    with proxy.wire() as conn, server.connect() as admin:
        conn.ask(wire.query("BEGIN ISOLATION LEVEL REPEATABLE READ"))
        admin.execute("INSERT INTO side.rows SELECT 1000, '2030-01-01', 'new', NULL, NULL, 1")
        try:
            asker = pages.Extended(conn, fresh(PLAIN))
            page = asker.ask()
            assert page.rows[0][0] == b"1000"
            admin.execute("INSERT INTO side.rows SELECT 1001, '2031-01-01', 'newer', NULL, NULL, 1")
            assert asker.ask().rows == page.rows
            conn.ask(wire.query("COMMIT"))
            assert asker.ask().rows[0][0] == b"1001"
        finally:
            admin.execute("DELETE FROM side.rows WHERE id >= 1000")


# ---- what stands in front of pg_catalog -----------------------------------------------------------------------------

SHADOWS = """
CREATE TEMP TABLE pg_class (oid oid, relname name, relnamespace oid, relkind "char");
CREATE TEMP TABLE pg_attribute (attrelid oid); CREATE TEMP TABLE pg_index (indexrelid oid); CREATE TEMP TABLE pg_type (oid oid);
CREATE TEMP TABLE pg_proc (oid oid); CREATE TEMP TABLE pg_namespace (oid oid, nspname name); CREATE TEMP TABLE pg_collation (oid oid);
CREATE TEMP TABLE pg_operator (oid oid); CREATE TEMP TABLE pg_database (oid oid); CREATE TEMP VIEW pg_constraint AS SELECT 1/0 AS oid;
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (VALUE OPERATOR(pg_catalog.=) 'never');
CREATE DOMAIN pg_temp.name AS pg_catalog.name CHECK (false);
CREATE DOMAIN pg_temp.oid AS pg_catalog.oid CHECK (false);
CREATE DOMAIN pg_temp.int8 AS pg_catalog.int8 CHECK (false);
CREATE DOMAIN pg_temp.bytea AS pg_catalog.bytea CHECK (false);
CREATE DOMAIN pg_temp.float8 AS pg_catalog.float8 CHECK (false);
CREATE TYPE pg_temp.bool AS ENUM ('file_not_found');
CREATE FUNCTION pg_temp.boom() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION pg_temp.current_setting(pg_catalog.text) RETURNS pg_catalog.text LANGUAGE sql AS 'SELECT 1/0 || $1';
CREATE FUNCTION pg_temp.to_regclass(pg_catalog.text) RETURNS regclass LANGUAGE sql AS 'SELECT (1/0)::regclass';
CREATE FUNCTION pg_temp.sha256(pg_catalog.bytea) RETURNS pg_catalog.bytea LANGUAGE sql AS 'SELECT $1 WHERE 1/0 = 0';
CREATE FUNCTION pg_temp.equal(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE sql AS 'SELECT 1/0 = 0';
CREATE FUNCTION pg_temp.equal(pg_catalog.oid, pg_catalog.oid) RETURNS pg_catalog.bool LANGUAGE sql AS 'SELECT 1/0 = 0';
CREATE FUNCTION pg_temp.equal(pg_catalog.name, pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE sql AS 'SELECT 1/0 = 0';
CREATE FUNCTION pg_temp.equal(pg_catalog.int2, pg_catalog.int4) RETURNS pg_catalog.bool LANGUAGE sql AS 'SELECT 1/0 = 0';
CREATE OPERATOR pg_temp.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = pg_temp.equal);
CREATE OPERATOR pg_temp.= (LEFTARG = pg_catalog.oid, RIGHTARG = pg_catalog.oid, FUNCTION = pg_temp.equal);
CREATE OPERATOR pg_temp.= (LEFTARG = pg_catalog.name, RIGHTARG = pg_catalog.text, FUNCTION = pg_temp.equal);
CREATE OPERATOR pg_temp.= (LEFTARG = pg_catalog.int2, RIGHTARG = pg_catalog.int4, FUNCTION = pg_temp.equal);
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", ["pg_temp, pg_catalog, public", "pg_temp, side, pg_catalog", "public"])
def test_temporary_things_shadow_nothing(proxy, mode, path):
    """Tables, views, types, functions and operators of the catalog's names, in front of it: each fails when it is used."""
    with proxy.wire() as conn:
        conn.ask(wire.query("SET client_min_messages = error"))
        for command in SHADOWS.strip().split(";\n"):
            answer = conn.ask(wire.query(command))
            assert not [m.fields()["M"] for m in answer if m.kind == "E"], command
        conn.ask(wire.query(f"SET search_path = {path}"))
        for block in (False, True):
            if block:
                conn.ask(wire.query("BEGIN"))
            for statement in (PLAIN, OF_VIEW):
                asker = pages.MODES[mode](conn, fresh(statement))
                page = asker.ask()
                assert page.action == "first" and len(page.rows) == 4, page
                assert asker.ask(page.next).action == "keyset"


# ---- what comes between ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_notifications_come_through(server, proxy, mode):
    with proxy.wire() as conn, server.connect() as admin:
        conn.ask(wire.query("LISTEN side_channel"))
        for number in range(3):
            admin.execute(f"NOTIFY side_channel, '{number}'")
            answer = run(conn, fresh(PLAIN), mode)
            later = conn.ask(wire.query("SELECT 1"))
            heard = [m.body[4:] for m in answer + later if m.kind == "A"]
            assert heard == [b"side_channel\0%d\0" % number]
            assert sum(m.kind == "D" for m in answer) == 4


@pytest.mark.parametrize("mode", MODES)
def test_a_time_limit_is_the_statements_alone(server, proxy, mode):
    """A side query that takes too long costs the page, not the statement: it runs as the client wrote it, under the client's limit."""
    with proxy.wire() as conn, server.connect() as admin:
        conn.ask(wire.query("SET lock_timeout = '100ms'"))
        with admin.transaction():
            admin.execute("LOCK TABLE pg_catalog.pg_rewrite IN ACCESS EXCLUSIVE MODE")
            answer = run(conn, fresh(PLAIN), mode)
            errors = [m.fields()["C"] for m in answer if m.kind == "E"]
        if errors:
            assert errors == ["55P03"] and mode != "simple"
        else:
            assert wire.statuses(answer)["pgseek.action"] == "pass: facts_failed" and sum(m.kind == "D" for m in answer) == 4
        assert answer[-1].body == b"I"
        again = run(conn, fresh(PLAIN), mode)
        assert wire.statuses(again)["pgseek.action"] == "first"


@pytest.mark.parametrize("mode", MODES)
def test_cancelled_beside_a_page(server, proxy, mode):
    """A cancel request that meets a side query: the client hears of it, or its statement runs on as if it had come too early."""
    with proxy.wire() as conn, server.connect() as admin:
        with admin.transaction():
            admin.execute("LOCK TABLE pg_catalog.pg_rewrite IN ACCESS EXCLUSIVE MODE")
            text = f"{fresh(PLAIN)} /* pgseek */"
            conn.send(wire.query(text) if mode == "simple" else wire.extended(text, name="mine" if mode == "named" else ""))
            pid = cluster.wait_until(lambda: admin.execute("SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'pg_rewrite'::regclass").fetchone(), "nobody waits")[0]
            admin.execute("SELECT pg_cancel_backend(%s)", [pid])
            answer = conn.ready()
        errors = [m.fields()["C"] for m in answer if m.kind == "E"]
        if errors:
            assert errors == ["57014"] and not any(m.kind == "D" for m in answer)
        else:
            assert wire.statuses(answer)["pgseek.action"] == "pass: facts_failed" and sum(m.kind == "D" for m in answer) == 4
        assert wire.statuses(run(conn, fresh(PLAIN), "simple"))["pgseek.action"] == "first"
