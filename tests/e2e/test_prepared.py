"""PREPARE and EXECUTE in SQL of tagged statements: an EXECUTE is a page like a Bind, in both protocols.

The rows are compared with those of the same EXECUTE on a direct connection, or with the full order.
"""
import psycopg
import psycopg2
import pytest

import pages
import wire

SELECT = "SELECT id, note, at FROM prepared_rows WHERE feed = $1 ORDER BY at DESC, id DESC LIMIT $2"
ORACLE = "SELECT id, note, at FROM prepared_rows WHERE feed = %s ORDER BY at DESC, id DESC"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS prepared_rows; CREATE TABLE prepared_rows (id int8 PRIMARY KEY, feed int4 NOT NULL, note text NOT NULL, at date NOT NULL, price numeric NOT NULL)")
        conn.execute("INSERT INTO prepared_rows SELECT i, i % 2, 'note ' || i % 5, date '2026-01-01' + i / 4, i * 0.5 FROM generate_series(1, 40) i")
    yield


def text(value):
    return None if value is None else str(value).encode()


def everything(server, feed):
    with server.connect() as conn:
        return [tuple(map(text, row)) for row in conn.execute(ORACLE, [feed]).fetchall()]


PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended"])


@PROTOCOLS
@pytest.mark.parametrize("prepares", ["simple", "extended"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_walk_by_execute(server, conn, protocol, prepares, size):
    wire.run(conn, f"PREPARE walk (int, int, text) AS {SELECT} /* pgseek cursor=$3 */", prepares)
    got, cursor, actions, first = [], None, [], None
    while True:
        page = pages.page_of(wire.run(conn, f"EXECUTE walk(1, {size}, {pages.literal(cursor)})", protocol))
        got += page.rows
        actions.append(page.action)
        last = page
        assert page.tag == f"SELECT {len(page.rows)}"
        cursor = page.next
        if not page.has_more:
            break
    assert got == everything(server, 1)
    assert actions[0] == "first" and set(actions[1:]) <= {"keyset"}
    back = list(last.rows)
    cursor = last.prev
    while cursor:
        page = pages.page_of(wire.run(conn, f"EXECUTE walk(1, {size}, '{cursor}')", protocol))
        back = page.rows + back
        cursor = page.prev
    assert back == everything(server, 1)


@PROTOCOLS
@pytest.mark.parametrize("where", ["prepare", "execute", "variable", "explain"])
def test_where_the_cursor_may_stand(server, conn, protocol, where):
    token = pages.page_of(conn.ask(wire.query(f"{SELECT.replace('$1', '0').replace('$2', '4')} /* pgseek */"))).next
    first = everything(server, 0)
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    page = pages.page_of(wire.run(conn, "EXECUTE p(0, 4)", protocol))
    assert page.rows == first[:4] and page.action == "first"
    token = page.next
    if where == "prepare":
        wire.run(conn, f"PREPARE q AS {SELECT} /* pgseek cursor={token} */", protocol)
        page = pages.page_of(wire.run(conn, "EXECUTE q(0, 4)", protocol))
    elif where == "execute":
        page = pages.page_of(wire.run(conn, f"EXECUTE p(0, 4) /* pgseek cursor={token} */", protocol))
    elif where == "variable":
        conn.ask(wire.query(f"SET pgseek.cursor = '{token}'"))
        page = pages.page_of(wire.run(conn, "EXECUTE p(0, 4)", protocol))
        assert conn.rows(wire.query("SHOW pgseek.cursor")) == [[b""]], "a cursor is used once"
    else:
        answer = wire.run(conn, f"EXPLAIN (COSTS off) EXECUTE p(0, 4) /* pgseek cursor={token} */", protocol)
        assert wire.statuses(answer)["pgseek.action"] == "keyset"
        assert any(b"ROW(" in row.row()[0] for row in answer if row.kind == "D"), "no keyset condition in the plan"
        return
    assert (page.rows, page.action) == (first[4:8], "keyset")


@PROTOCOLS
def test_what_the_protocol_prepared_is_executed_by_sql(server, conn, protocol):
    conn.ask(wire.parse(f"{SELECT} /* pgseek cursor=$3 */", "byparse"), wire.sync())
    page = pages.page_of(wire.run(conn, "EXECUTE byparse(1, 3, NULL)", protocol))
    assert page.rows == everything(server, 1)[:3]
    page = pages.page_of(wire.run(conn, f"EXECUTE byparse(1, 3, '{page.next}')", protocol))
    assert page.rows == everything(server, 1)[3:6]


def test_what_sql_prepared_is_bound_by_the_protocol(server, conn):
    conn.ask(wire.query(f"PREPARE bysql(int, int, text) AS {SELECT} /* pgseek cursor=$3 */"))
    bound = lambda token: pages.page_of(conn.ask(wire.bind(["0", "3", token], "bysql"), wire.describe(), wire.execute(), wire.sync()))
    page = bound(None)
    assert page.rows == everything(server, 0)[:3]
    assert bound(page.next).rows == everything(server, 0)[3:6]


LITERALS = [
    ("int4", "1"), ("int4", "+1"), ("int4", "-1"), ("int4", "'1'"), ("int4", "1::int8"), ("int4", "CAST('1' AS int2)"), ("int4", "NULL"), ("int4", "$$1$$"),
    ("text", "'note 1'"), ("text", "E'note\\x201'"), ("text", "U&'note\\00201'"), ("text", "'note 1'::varchar"), ("text", "1"), ("varchar", "'note 1'::text"),
    ("date", "'2026-01-03'"), ("date", "date '2026-01-03'"), ("date", "'2026-01-03'::date"), ("numeric", "1.50"), ("numeric", "1e0"), ("numeric", "-.5"),
    ("numeric", "1"), ("float8", "1.5"), ("float8", "'1.5'"), ("bool", "true"), ("bool", "'f'"), ("bool", "NULL::bool"), ("int8", "9007199254740993"),
    ("int8", "-9223372036854775807"), ("numeric", "99999999999999999999999"),
]
# The server's own conversion decides: passed without a cursor.
OPEN = [("int4", "0 + 1"), ("int4", "1.5"), ("date", "'2026-01-03 10:00'::timestamp"), ("date", "current_date"), ("text", "1.50"), ("text", "true"), ("text", "'abc'::char(2)"),
        ("numeric", "'1.239'::numeric(3,1)"), ("timestamptz", "'2026-01-03 10:00'::date"), ("float8", "'1.5'::numeric")]
BAD = [("int4", "99999999999"), ("int4", "'x'"), ("date", "'yesteryear'"), ("int4", "true"), ("bool", "1")]


@PROTOCOLS
@pytest.mark.parametrize("kind,argument", LITERALS + OPEN)
def test_an_argument_means_what_it_means_to_the_server(conn, direct, protocol, kind, argument):
    sql = "SELECT id, $1 AS value FROM prepared_rows WHERE $1 IS NULL OR $1 IS NOT NULL ORDER BY id LIMIT 2"
    for peer in (conn, direct):
        peer.ask(wire.query("DEALLOCATE ALL"))
        peer.ask(wire.query(f"PREPARE lit({kind}) AS {sql} /* pgseek */"))
    expected = wire.run(direct, f"EXECUTE lit({argument})", protocol)
    got = wire.run(conn, f"EXECUTE lit({argument})", protocol)
    assert wire.without_ours(got) == expected
    assert wire.statuses(got)["pgseek.action"] == ("pass: execute_args" if (kind, argument) in OPEN else "first")


@PROTOCOLS
@pytest.mark.parametrize("kind,argument", BAD)
def test_a_bad_argument_is_the_servers_own_error(conn, direct, protocol, kind, argument):
    for peer in (conn, direct):
        peer.ask(wire.query("DEALLOCATE ALL"))
        peer.ask(wire.query(f"PREPARE bad({kind}) AS SELECT id FROM prepared_rows WHERE $1 IS NOT NULL ORDER BY id LIMIT 2 /* pgseek */"))
    errors = [next(m.fields() for m in wire.run(peer, f"EXECUTE bad({argument})", protocol) if m.kind == "E") for peer in (conn, direct)]
    for field in "SVCMDHW":
        assert errors[0].get(field) == errors[1].get(field)
    assert pages.page_of(wire.run(conn, "EXECUTE bad(NULL)", protocol)).action == "first"


@PROTOCOLS
@pytest.mark.parametrize("arguments", ["", "(1)", "(1, 2, 3)"])
def test_a_wrong_count_is_the_servers_own_error(conn, direct, protocol, arguments):
    for peer in (conn, direct):
        peer.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    assert wire.run(conn, f"EXECUTE p{arguments}", protocol) == wire.run(direct, f"EXECUTE p{arguments}", protocol)


@PROTOCOLS
@pytest.mark.parametrize("argument", ["now()::text", "'a' || 'b'", "1 + 1"])
def test_a_cursor_is_never_ignored(conn, protocol, argument):
    """What cannot be read may hide a cursor, or need one: it is refused and never run without."""
    conn.ask(wire.query(f"PREPARE p(int, int, text) AS {SELECT} /* pgseek cursor=$3 */"))
    with pytest.raises(wire.ServerError) as error:
        pages.page_of(wire.run(conn, f"EXECUTE p(1, 2, {argument})", protocol))
    assert error.value.sqlstate == "PS005"
    token = pages.page_of(wire.run(conn, "EXECUTE p(1, 2, NULL)", protocol)).next
    with pytest.raises(wire.ServerError) as error:
        pages.page_of(wire.run(conn, f"EXECUTE p(1, 1 + 1, '{token}')", protocol))
    assert error.value.sqlstate == "PS005" and "execute_args" in error.value.fields["M"]


@PROTOCOLS
def test_refusals(conn, protocol):
    def refused(sql):
        with pytest.raises(wire.ServerError) as error:
            pages.page_of(wire.run(conn, sql, protocol))
        return error.value.sqlstate
    assert refused(f"PREPARE p AS {SELECT} /* pgseek cursor=$3 */") == "PS000", "the server would not know $3"
    wire.run(conn, f"PREPARE p AS {SELECT} /* pgseek */", protocol)
    assert refused("EXECUTE p(1, 2) /* pgseek cursor=$1 */") == "PS000"
    assert refused("EXECUTE p(1, 2) /* pgseek curser=x */") == "PS000"
    assert refused("EXECUTE p(1, 2) /* pgseek cursor=abc */") == "PS001"
    wire.run(conn, f"PREPARE untagged AS {SELECT}", protocol)
    token = pages.page_of(wire.run(conn, "EXECUTE p(1, 2)", protocol)).next
    assert refused(f"EXECUTE untagged(1, 2) /* pgseek cursor={token} */") == "PS005"
    assert refused("EXECUTE untagged(1, 2) /* pgseek strict=on */") == "PS005"
    assert pages.page_of(wire.run(conn, "EXECUTE untagged(1, 2) /* pgseek */", protocol)).action == "pass: execute"
    assert refused("EXECUTE nosuch(1, 2)") == "26000"
    token = pages.page_of(wire.run(conn, "EXECUTE p(1, 2)", protocol)).next
    assert refused(f"EXECUTE p(0, 2) /* pgseek cursor={token} */") == "PS004", "another filter"
    if protocol == "simple":
        assert refused(f"EXECUTE p(1, 2) /* pgseek cursor={token} */; SELECT 1") == "PS000"
        assert refused(f"PREPARE r AS {SELECT} /* pgseek */; SELECT 1") == "PS000"
        conn.ask(wire.query(f"SET pgseek.cursor = '{token}'"))
        assert refused("EXECUTE p(1, 2); SELECT 1") == "PS000"


CREATES = ["CREATE TABLE made AS EXECUTE {}", "CREATE TEMP TABLE made (a, b) ON COMMIT PRESERVE ROWS AS /* EXECUTE q */ EXECUTE {} WITH NO DATA",
           "EXPLAIN CREATE TABLE made AS EXECUTE {}", "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) CREATE TABLE made AS EXECUTE {}"]


@PROTOCOLS
@pytest.mark.parametrize("create", CREATES)
def test_a_table_made_by_execute_ignores_no_cursor(conn, direct, protocol, create):
    """CREATE TABLE AS EXECUTE is as CREATE TABLE AS of the tagged SELECT: passed without a cursor, refused with one."""
    def refused(sql):
        with pytest.raises(wire.ServerError) as error:
            pages.page_of(wire.run(conn, sql, protocol))
        assert conn.rows(wire.query("SELECT to_regclass('made')")) == [[None]]
        return error.value.sqlstate, error.value.fields["M"].rpartition(": ")[2]
    for peer in (conn, direct):
        peer.ask(wire.query("DROP TABLE IF EXISTS made"))
        wire.run(peer, f"PREPARE p(int, int) AS {SELECT} /* pgseek */", protocol)
        wire.run(peer, f"PREPARE q(int, int, text) AS {SELECT} /* pgseek cursor=$3 */", protocol)
    token = pages.page_of(wire.run(conn, "EXECUTE p(1, 3)", protocol)).next
    assert refused(f"{create.format('p(1, 3)')} /* pgseek cursor={token} */") == ("PS005", "into")
    assert refused(f"{create.format('p(1, 3)')} /* pgseek strict=on */") == ("PS005", "into")
    assert refused(create.format(f"q(1, 3, '{token}')")) == ("PS005", "into")
    assert refused(create.format("q(1, 3, 'a' || 'b')")) == ("PS005", "execute_args")
    wire.run(conn, f"PREPARE r AS {SELECT} /* pgseek cursor={token} */", protocol)
    assert refused(create.format("r(1, 3)")) == ("PS005", "into")
    wire.run(conn, f"PREPARE s AS {SELECT} /* pgseek strict=on */", protocol)
    assert refused(create.format("s(1, 3)")) == ("PS005", "into")
    conn.ask(wire.query(f"SET pgseek.cursor = '{token}'"))
    assert refused(create.format("p(1, 3)")) == ("PS005", "into")
    assert conn.rows(wire.query("SHOW pgseek.cursor")) == [[b""]], "a cursor is used once"
    for text in ("p(1, 3)", "q(1, 3, NULL)", "p(1, 1 + 2) /* pgseek */"):
        expected = wire.run(direct, create.format(text), protocol)
        direct.ask(wire.query("DROP TABLE IF EXISTS made"))
        got = wire.run(conn, create.format(text), protocol)
        conn.ask(wire.query("DROP TABLE IF EXISTS made"))
        assert wire.statuses(got)["pgseek.action"] == "pass: into"
        assert wire.without_ours(got) == expected


def test_a_table_of_what_is_prepared_later(conn):
    """What a Parse of CREATE TABLE AS EXECUTE makes is decided when it is bound."""
    conn.ask(wire.parse("CREATE TEMP TABLE late AS EXECUTE p(1, 3)", "make"), wire.sync())
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek strict=on */"))
    answer = conn.ask(wire.bind(statement="make"), wire.execute(), wire.sync())
    assert answer[0].fields()["C"] == "PS005"
    conn.ask(wire.query("DEALLOCATE p"), wire.query("PREPARE p(int, int) AS SELECT $1 + $2"), syncs=2)
    assert wire.kinds(conn.ask(wire.bind(statement="make"), wire.execute(), wire.sync())) == "2 C Z"


AMONG = ["SELECT 1; {}", "{}; SELECT 1", "BEGIN; {}; COMMIT", "/* a */; SET work_mem = '4MB'; ; EXPLAIN (COSTS off) {}", "SELECT 'x;'; CREATE TABLE made AS {}",
         "DECLARE c CURSOR FOR SELECT 1; {}", "PREPARE other AS SELECT 1; {}", "EXECUTE plain; {}", "EXPLAIN EXECUTE plain; EXPLAIN CREATE TABLE made AS {}"]


@pytest.mark.parametrize("prepares", ["sql", "protocol"])
@pytest.mark.parametrize("text", AMONG)
def test_an_execute_among_several_statements(conn, prepares, text):
    """Wherever the EXECUTE of a tagged statement stands in a text of several, the text is refused whole."""
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */") if prepares == "sql" else wire.parse(f"{SELECT} /* pgseek */", "p"), wire.sync(), syncs=2 - (prepares != "sql"))
    conn.ask(wire.query("PREPARE plain AS SELECT 'plain'"))
    error = conn.ask(wire.query(text.format("EXECUTE p(1, 2)")))
    assert (wire.kinds(error), error[0].fields()["C"]) == ("E Z", "PS000")
    assert conn.rows(wire.query("SELECT to_regclass('made'), count(*) FROM pg_prepared_statements WHERE name = 'other'")) == [[None, b"0"]]
    conn.ask(wire.query("DEALLOCATE p"))
    error = conn.ask(wire.query(text.format("EXECUTE p(1, 2)")))
    assert "26000" in [message.fields()["C"] for message in error if message.kind == "E"]
    conn.ask(wire.query("ROLLBACK"))


def test_untagged_executes_among_several_statements_pass(conn, direct):
    text = "SELECT 'EXECUTE p'; EXECUTE plain; EXPLAIN EXECUTE plain; CREATE TEMP TABLE made AS EXECUTE plain; SELECT 1 AS execute"
    for peer in (conn, direct):
        peer.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"), wire.query("PREPARE plain AS SELECT 'plain'"), syncs=2)
    assert conn.ask(wire.query(text)) == direct.ask(wire.query(text))


def test_a_pipelined_name_among_several_statements(conn):
    """A PREPARE that has not been answered, and a name that a failed group gives back."""
    answer = conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"), wire.query("SELECT 1; EXECUTE p(1, 2)"), syncs=2)
    assert [message.fields()["C"] for message in answer if message.kind == "E"] == ["PS000"]
    answer = conn.ask(wire.parse("DEALLOCATE p"), wire.bind(), wire.parse("SELECT nosuch", "x"), wire.execute(), wire.sync(), wire.query("SELECT 1; EXECUTE p(1, 2)"), syncs=2)
    assert [message.fields()["C"] for message in answer if message.kind == "E"] == ["42703", "PS000"]


def test_what_is_no_page_and_executed_by_name(conn):
    """The protocol prepares EXPLAIN, DECLARE and EXECUTE under a name, too: EXECUTE of it must not lose a cursor."""
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    token = pages.page_of(conn.ask(wire.query("EXECUTE p(1, 2)"))).next
    for text in (f"EXPLAIN {SELECT.replace('$1', '1').replace('$2', '2')}", "EXECUTE p(1, 2)"):
        conn.ask(wire.parse(f"{text} /* pgseek cursor={token} */", "nested"), wire.sync())
        for protocol in ("simple", "extended"):
            for execute in ("EXECUTE nested", "EXECUTE nested /* pgseek */"):
                assert wire.run(conn, execute, protocol)[-2].fields()["C"] == "PS005"
        assert conn.ask(wire.query("SELECT 1; EXECUTE nested"))[0].fields()["C"] == "PS000"
        conn.ask(wire.close("S", "nested"), wire.sync())


def test_arguments_that_cannot_be_read_hide_no_cursor(conn):
    conn.ask(wire.query(f"PREPARE p(int, int, text) AS {SELECT} /* pgseek cursor=$3 */"))
    conn.ask(wire.query("SET standard_conforming_strings = off"))
    for execute in (r"EXECUTE p(1, 2, 'a\'b')", "CREATE TEMP TABLE made AS EXECUTE p(1, 2, 'a')"):
        assert conn.ask(wire.query(execute))[-2].fields()["C"] == "PS005"


@PROTOCOLS
def test_a_name_that_changes_hands(server, conn, protocol):
    """What a name stands for is what the server has it stand for."""
    wire.run(conn, f"PREPARE p AS {SELECT} /* pgseek */", protocol)
    assert wire.run(conn, "PREPARE p AS SELECT 'untagged'", protocol)[-2].fields()["C"] == "42P05"
    assert pages.page_of(wire.run(conn, "EXECUTE p(1, 2)", protocol)).action == "first", "the refused PREPARE changed nothing"
    wire.run(conn, "DEALLOCATE p", protocol)
    wire.run(conn, "PREPARE p AS SELECT 'untagged'", protocol)
    assert pages.page_of(wire.run(conn, "EXECUTE p", protocol)).rows == [(b"untagged",)]
    wire.run(conn, "DO $$ BEGIN EXECUTE 'DEALLOCATE p'; END $$", protocol)
    wire.run(conn, f"PREPARE p AS {SELECT} /* pgseek */", protocol)
    wire.run(conn, "DO $$ BEGIN EXECUTE 'DEALLOCATE p'; END $$", protocol)
    wire.run(conn, "PREPARE p AS SELECT 'again'", protocol)
    assert pages.page_of(wire.run(conn, "EXECUTE p", protocol)).rows == [(b"again",)], "the tagged text is gone"
    wire.run(conn, "DEALLOCATE ALL", protocol)
    wire.run(conn, f"PREPARE p(text, int) AS SELECT id FROM prepared_rows WHERE note = $1 ORDER BY id LIMIT $2 /* pgseek */", protocol)
    assert pages.page_of(wire.run(conn, "EXECUTE p('note 1', 2)", protocol)).rows == [(b"1",), (b"6",)]


def test_equal_texts_with_other_types(conn):
    """The types of a PREPARE are not in its statement's text: plans must not be mixed up."""
    sql = "SELECT id FROM prepared_rows WHERE $1 IS NOT NULL ORDER BY id LIMIT 2 /* pgseek */"
    conn.ask(wire.query(f"PREPARE a(int) AS {sql}"), wire.query(f"PREPARE b(date) AS {sql}"), syncs=2)
    assert pages.page_of(conn.ask(wire.query("EXECUTE a(7)"))).rows == [(b"1",), (b"2",)]
    assert pages.page_of(conn.ask(wire.query("EXECUTE b('2026-01-01')"))).rows == [(b"1",), (b"2",)]
    assert pages.page_of(conn.ask(wire.query("EXECUTE a(7)"))).rows == [(b"1",), (b"2",)]


def test_a_pipeline_of_queries(server, conn):
    """PREPARE, EXECUTE, DEALLOCATE and a name again in one write."""
    answer = conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"), wire.query("EXECUTE p(1, 2)"), wire.query("DEALLOCATE p"),
                      wire.query("PREPARE p AS SELECT 'other'"), wire.query("EXECUTE p"), wire.query("DEALLOCATE ALL"),
                      wire.query(f"PREPARE p AS {SELECT} /* pgseek */"), wire.query("EXECUTE p(0, 2)"), syncs=8)
    rows = [tuple(message.row()) for message in answer if message.kind == "D"]
    assert rows == everything(server, 1)[:2] + [(b"other",)] + everything(server, 0)[:2]


def test_a_failed_group_prepares_nothing(conn):
    answer = conn.ask(wire.parse("SELECT nosuch"), wire.parse(f"PREPARE p AS {SELECT} /* pgseek */"), wire.bind(), wire.execute(), wire.sync())
    assert wire.kinds(answer) == "E Z"
    answer = conn.ask(wire.query("EXECUTE p(1, 2)"))
    assert answer[0].fields()["C"] == "26000"


def test_in_a_block(server, conn):
    conn.ask(wire.query("BEGIN"))
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    page = pages.page_of(conn.ask(wire.query("EXECUTE p(1, 5)")))
    conn.ask(wire.query("ROLLBACK"))
    assert pages.page_of(conn.ask(wire.query(f"EXECUTE p(1, 5) /* pgseek cursor={page.next} */"))).rows == everything(server, 1)[5:10], "a PREPARE is not undone"
    conn.ask(wire.query("BEGIN"), wire.query("SELECT 1/0"), syncs=2)
    assert conn.ask(wire.query("EXECUTE p(1, 5)"))[0].fields()["C"] == "25P02"
    conn.ask(wire.query("ROLLBACK"))


@PROTOCOLS
def test_columns_are_described_as_by_the_server(conn, direct, protocol):
    """The description of an EXECUTE has the tables and columns of the statement that it runs."""
    for peer in (conn, direct):
        peer.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    for cursor in (None, True):
        got = wire.without_ours(wire.run(conn, "EXECUTE p(1, 20)", protocol, result_formats=[1]))
        assert got == wire.run(direct, "EXECUTE p(1, 20)", protocol, result_formats=[1])
    described = [peer.ask(wire.parse("EXECUTE p(1, 20)", "e"), wire.describe("S", "e"), wire.close("S", "e"), wire.sync()) for peer in (conn, direct)]
    assert described[0] == described[1]


def test_portions_of_an_execute(conn, direct):
    messages = [wire.parse("EXECUTE p(1, 5)"), wire.bind(portal="x"), wire.describe("P", "x"), *[wire.execute("x", 2)] * 4, wire.sync()]
    for peer in (conn, direct):
        peer.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek */"))
    assert wire.without_ours(conn.ask(*messages)) == direct.ask(*messages)


def test_columns_as_delivery(conn):
    conn.ask(wire.query(f"PREPARE p AS {SELECT} /* pgseek deliver=columns */"))
    for message in (wire.query("EXECUTE p(1, 3)"), wire.extended("EXECUTE p(1, 3)")):
        answer = conn.ask(message)
        assert [column.name for column in next(m for m in answer if m.kind == "T").columns()][-2:] == ["pgseek_cursor", "pgseek_has_more"]
        rows = [m.row() for m in answer if m.kind == "D"]
        assert [row[-1] for row in rows] == [b"t", b"t", b"t"]
    described = conn.ask(wire.parse("EXECUTE p(1, 3)", "e"), wire.describe("S", "e"), wire.sync())
    assert len(described[2].columns()) == 5


def test_paginate_on_reaches_prepare(server, conn):
    conn.ask(wire.query("SET pgseek.paginate = on"))
    conn.ask(wire.query(f"PREPARE p AS {SELECT}"))
    assert pages.page_of(conn.ask(wire.query("EXECUTE p(1, 2)"))).action == "first"


def test_psycopg2_and_psycopg(server, proxy):
    with proxy.connect(autocommit=True) as conn:
        conn.execute(f"PREPARE p(int, int, text) AS {SELECT} /* pgseek cursor=$3 */")
        with psycopg.ClientCursor(conn) as cursor:
            rows = cursor.execute("EXECUTE p(%s, %s, %s)", [1, 5, None]).fetchall()
            token = conn.pgconn.parameter_status(b"pgseek.next_cursor").decode()
            rows += cursor.execute("EXECUTE p(%s, %s, %s)", [1, 5, token]).fetchall()
        assert [tuple(map(text, row)) for row in rows] == everything(server, 1)[:10]
    conn = psycopg2.connect(proxy.dsn())
    try:
        with conn.cursor() as cursor:
            cursor.execute(f"PREPARE p(int, int, text) AS {SELECT} /* pgseek cursor=$3 */")
            cursor.execute("EXECUTE p(%s, %s, %s)", [1, 5, None])
            rows = cursor.fetchall()
            cursor.execute("EXECUTE p(%s, %s, %s)", [1, 5, conn.get_parameter_status("pgseek.next_cursor")])
            rows += cursor.fetchall()
        assert [tuple(map(text, row)) for row in rows] == everything(server, 1)[:10]
    finally:
        conn.close()


@pytest.mark.parametrize("protocol, sql", [
    ("simple", "PREPARE late AS SELECT id, 10 / (id - 2) FROM prepared_rows ORDER BY id LIMIT 4 /* pgseek */"),
    ("extended", "PREPARE late AS SELECT id, 10 / (id - 2) FROM prepared_rows ORDER BY id LIMIT 4 /* pgseek */"),
    ("simple", "PREPARE late AS SELECT id, 1 / 0 FROM prepared_rows ORDER BY id LIMIT 4 /* pgseek */"),
])
@pytest.mark.parametrize("runs", ["EXECUTE late", "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) EXECUTE late"])
def test_an_error_behind_some_rows_is_all_that_comes(direct, conn, protocol, sql, runs):
    """The server collects what a utility statement gives before it sends any of it."""
    answers = []
    for each in (direct, conn):
        wire.run(each, sql, "simple")
        answers.append([(m.kind, m.fields() if m.kind == "E" else None) for m in wire.without_ours(wire.run(each, runs, protocol))])
    assert answers[0] == answers[1]
    assert "E" in [kind for kind, _ in answers[0]] and "D" not in [kind for kind, _ in answers[0]]
