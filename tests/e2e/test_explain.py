"""EXPLAIN of a tagged SELECT explains the statement that would be sent for the page; DECLARE, COPY and INTO of one.

What is not a page passes untouched with a reason, and is refused with a cursor or strict.
"""
import json

import psycopg2
import pytest

import pages
import wire

SELECT = "SELECT id, note FROM explained WHERE id > 0 ORDER BY at DESC, id DESC LIMIT 3"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS explained; CREATE TABLE explained (id int8 PRIMARY KEY, note text NOT NULL, at int4 NOT NULL)")
        conn.execute("INSERT INTO explained SELECT i, 'note ' || i, i / 4 FROM generate_series(1, 2000) i")
        conn.execute("CREATE INDEX explained_at ON explained (at, id); ANALYZE explained")
    yield


def rows_of(messages):
    for message in messages:
        if message.kind == "E":
            raise wire.ServerError(message)
    return [message.row() for message in messages if message.kind == "D"]


def lines(messages):
    return "\n".join(row[0].decode() for row in rows_of(messages))


@pytest.fixture
def token(conn):
    return pages.page_of(conn.ask(wire.query(f"{SELECT} /* pgseek */"))).next


PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended"])
PREFIXES = ["EXPLAIN", "EXPLAIN VERBOSE", "EXPLAIN ANALYZE", "EXPLAIN ANALYZE VERBOSE", "explain analyse", "EXPLAIN (ANALYZE, COSTS off, TIMING off)", "EXPLAIN (FORMAT text)",
            "/* x */ EXPLAIN -- y\n (VERBOSE)", ";EXPLAIN"]


@PROTOCOLS
@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_page_is_explained(conn, token, protocol, prefix):
    """The plan is the page's: its condition is in it, and one row more than LIMIT is fetched."""
    answer = wire.run(conn, f"{prefix} {SELECT} /* pgseek cursor={token} */", protocol)
    plan = lines(answer)
    assert "ROW(" in plan and "explained_at" in plan, plan
    assert wire.statuses(answer)["pgseek.action"] == "keyset"
    assert wire.statuses(answer)["pgseek.next_cursor"] == ""
    (column,) = next(message for message in answer if message.kind == "T").columns()
    assert (column.name, column.type) == ("QUERY PLAN", 25)
    assert next(message.text() for message in answer if message.kind == "C") == "EXPLAIN"
    if "ANALY" in prefix.upper():
        assert "rows=4" in plan, "the look-ahead row"


@PROTOCOLS
def test_formats(conn, token, protocol):
    for form in ("JSON", "YAML", "XML"):
        answer = wire.run(conn, f"EXPLAIN (FORMAT {form}, ANALYZE) {SELECT} /* pgseek cursor={token} */", protocol)
        (row,) = rows_of(answer)
        assert b"ROW(" in row[0]
        if form == "JSON":
            (plan,) = json.loads(row[0])
            assert plan["Plan"]["Actual Rows"] == 4
            assert [column.type for column in next(m for m in answer if m.kind == "T").columns()] == [114]


@PROTOCOLS
def test_the_first_page_and_the_last(conn, protocol):
    assert "Index Scan Backward using explained_at" in lines(wire.run(conn, f"EXPLAIN {SELECT} /* pgseek */", protocol))
    assert "WindowAgg" in lines(wire.run(conn, f"EXPLAIN {SELECT} /* pgseek page=last */", protocol))


def test_parameters(conn, token):
    """Bound values are planned for; the token is a parameter as in any page."""
    sql = "EXPLAIN (ANALYZE, COSTS off) SELECT id FROM explained WHERE id > $1 ORDER BY at DESC, id DESC LIMIT $2 /* pgseek cursor=$3 */"
    first = pages.page_of(conn.ask(wire.extended("SELECT id FROM explained WHERE id > $1 ORDER BY at DESC, id DESC LIMIT $2 /* pgseek cursor=$3 */", ["0", "3", None])))
    for name in ("", "named"):
        conn.ask(wire.parse(sql, name), wire.sync())
        described = conn.ask(wire.describe("S", name), wire.sync())
        assert described[0].parameter_types() == [20, 20, 25]
        for _ in range(2):
            answer = conn.ask(wire.bind(["0", "3", first.next], name, result_formats=[0]), wire.describe(), wire.execute(), wire.sync())
            assert "ROW(" in lines(answer) and "rows=4" in lines(answer)
        with pytest.raises(wire.ServerError) as error:
            pages.page_of(conn.ask(wire.bind(["1", "3", first.next], name), wire.execute(), wire.sync()))
        assert error.value.sqlstate == "PS004", "another filter"


def test_positions_are_the_clients(conn, direct):
    """An error in the middle of the text, and one in front of the page."""
    for sql in ("EXPLAIN (ANALYZE) SELECT id, 10 / nosuch FROM explained ORDER BY id LIMIT 3 /* pgseek */", "EXPLAIN (nosuch) SELECT id FROM explained ORDER BY id LIMIT 3 /* pgseek */",
                "EXPLAIN (ANALYZE) SELECT id, 10 / (id - 2) FROM explained ORDER BY id LIMIT 3 /* pgseek */",
                "EXPLAIN SELECT 'é', id FROM explained WHERE note = 'é' AND id = 'x'::text ORDER BY id LIMIT 3 /* pgseek */"):
        for protocol in ("simple", "extended"):
            errors = [next(m.fields() for m in wire.run(peer, sql, protocol) if m.kind == "E") for peer in (conn, direct)]
            assert errors[0] == errors[1]


@PROTOCOLS
def test_explain_of_no_page(conn, direct, token, protocol):
    cases = {"EXPLAIN (COSTS off) SELECT id FROM explained LIMIT 3": "no_order", "EXPLAIN (COSTS off) SELECT id FROM explained ORDER BY at": "no_limit",
             "EXPLAIN (COSTS off) INSERT INTO explained VALUES (0, '', 0)": "not_select",
             "EXPLAIN (COSTS off) CREATE TABLE explained_too AS SELECT 1": "into"}
    for sql, reason in cases.items():
        got = wire.run(conn, f"{sql} /* pgseek */", protocol)
        assert wire.statuses(got)["pgseek.action"] == f"pass: {reason}"
        assert wire.without_ours(got) == wire.run(direct, f"{sql} /* pgseek */", protocol)
        for options in (f"cursor={token}", "strict=on"):
            with pytest.raises(wire.ServerError) as error:
                pages.page_of(wire.run(conn, f"{sql} /* pgseek {options} */", protocol))
            assert error.value.sqlstate == "PS005"


def test_explain_in_a_block_and_behind_a_failure(conn, token):
    conn.ask(wire.query("BEGIN"))
    assert "ROW(" in lines(conn.ask(wire.query(f"EXPLAIN {SELECT} /* pgseek cursor={token} */")))
    conn.ask(wire.query("SELECT 1/0"))
    assert conn.ask(wire.query(f"EXPLAIN {SELECT} /* pgseek cursor={token} */"))[0].fields()["C"] == "25P02"
    conn.ask(wire.query("ROLLBACK"))


def test_explain_does_not_add_columns(conn):
    for protocol in ("simple", "extended"):
        answer = wire.run(conn, f"EXPLAIN {SELECT} /* pgseek deliver='columns,status' */", protocol)
        assert len(next(m for m in answer if m.kind == "T").columns()) == 1
        assert all(len(m.row()) == 1 for m in answer if m.kind == "D")


def test_untagged_explain_passes(conn, direct):
    for sql in ("EXPLAIN (COSTS off) SELECT 1", "EXPLAIN", "EXPLAIN SELECT nosuch", "EXPLAIN (COSTS off) EXECUTE nosuch"):
        for protocol in ("simple", "extended"):
            assert wire.run(conn, sql, protocol) == wire.run(direct, sql, protocol)


# ---- EXPLAIN EXECUTE -------------------------------------------------------------------------------------------------


@PROTOCOLS
def test_explain_execute(conn, protocol):
    conn.ask(wire.query("PREPARE p(int8, int, text) AS SELECT id FROM explained WHERE id > $1 ORDER BY at DESC, id DESC LIMIT $2 /* pgseek cursor=$3 */"))
    first = pages.page_of(wire.run(conn, "EXECUTE p(0, 3, NULL)", protocol))
    for prefix in ("EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN (ANALYZE, FORMAT JSON)"):
        answer = wire.run(conn, f"{prefix} EXECUTE p(0, 3, '{first.next}')", protocol)
        assert "ROW(" in lines(answer)
        assert wire.statuses(answer)["pgseek.action"] == "keyset"
    second = pages.page_of(wire.run(conn, f"EXECUTE p(0, 3, '{first.next}')", protocol))
    assert [int(row[0]) for row in second.rows] == [1997, 1996, 1995]


# ---- DECLARE ---------------------------------------------------------------------------------------------------------


@PROTOCOLS
def test_declare_without_a_cursor_passes(conn, direct, protocol):
    for peer in (conn, direct):
        peer.ask(wire.query("BEGIN"))
    sql = f"DECLARE c CURSOR FOR {SELECT} /* pgseek */"
    got = wire.run(conn, sql, protocol)
    assert wire.statuses(got)["pgseek.action"] == "pass: declare"
    assert wire.without_ours(got) == wire.run(direct, sql, protocol)
    assert conn.ask(wire.query("FETCH ALL FROM c")) == direct.ask(wire.query("FETCH ALL FROM c"))
    with pytest.raises(wire.ServerError) as error:
        pages.page_of(wire.run(conn, f"DECLARE d CURSOR FOR {SELECT} /* pgseek strict=on */", protocol))
    assert error.value.sqlstate == "PS005"


DECLARED = "SELECT id, note FROM explained WHERE id > 0 ORDER BY at DESC, note LIMIT 5"
ORDER = "SELECT id, note FROM explained WHERE id > 0 ORDER BY at DESC, note, id"


@PROTOCOLS
@pytest.mark.parametrize("options", ["CURSOR", "NO SCROLL CURSOR", "SCROLL CURSOR", "CURSOR WITH HOLD", "BINARY CURSOR", "INSENSITIVE CURSOR WITHOUT HOLD"])
def test_declare_starts_behind_the_cursor(server, conn, protocol, options):
    """The rows, columns and names are the original's; FETCH is the server's own."""
    with server.connect() as direct:
        everything = [tuple(str(value).encode() for value in row) for row in direct.execute(ORDER).fetchall()]
    page = pages.page_of(conn.ask(wire.query(f"{DECLARED} /* pgseek */")))
    conn.ask(wire.query("BEGIN"))
    answer = wire.run(conn, f"DECLARE c {options} FOR {DECLARED} /* pgseek cursor={page.next} */", protocol)
    said = wire.statuses(answer)
    assert (said["pgseek.action"], said["pgseek.next_cursor"]) == ("keyset", "")
    assert next(message.text() for message in answer if message.kind == "C") == "DECLARE CURSOR"
    assert wire.kinds(wire.without_ours(answer)) == ("C Z" if protocol == "simple" else "1 2 n C Z")
    if "HOLD" in options and "WITHOUT" not in options:
        conn.ask(wire.query("COMMIT"))
    fetched = conn.ask(wire.query("FETCH 3 FROM c"))
    assert [column.name for column in fetched[0].columns()] == ["id", "note"]
    if "BINARY" not in options:
        assert [tuple(row) for row in rows_of(fetched)] == everything[5:8]
    fetched = conn.ask(wire.query("FETCH ALL FROM c"))
    assert len(rows_of(fetched)) == 2, "LIMIT counts from the cursor, without a row more"
    conn.ask(wire.query("CLOSE c"), wire.query("ROLLBACK"), syncs=2)


def test_declare_by_parameters(conn):
    sql = "DECLARE c CURSOR FOR SELECT id FROM explained WHERE id > $1 ORDER BY at DESC, id DESC LIMIT 4 /* pgseek cursor=$2 */"
    first = pages.page_of(conn.ask(wire.extended("SELECT id FROM explained WHERE id > $1 ORDER BY at DESC, id DESC LIMIT 4 /* pgseek cursor=$2 */", ["0", None])))
    conn.ask(wire.query("BEGIN"))
    answer = conn.ask(wire.parse(sql), wire.bind(["0", first.next]), wire.execute(), wire.sync())
    assert wire.statuses(answer)["pgseek.action"] == "keyset"
    assert [row[0] for row in rows_of(conn.ask(wire.query("FETCH ALL FROM c")))] == [b"1996", b"1995", b"1994", b"1993"]
    answer = conn.ask(wire.parse(sql.replace(" c ", " d ")), wire.bind(["1", first.next]), wire.execute(), wire.sync())
    assert next(m.fields()["C"] for m in answer if m.kind == "E") == "PS004"
    conn.ask(wire.query("ROLLBACK"))


def test_declare_backward(server, conn):
    """A prev cursor: the rows before it, in display order."""
    with server.connect() as direct:
        everything = [tuple(str(value).encode() for value in row) for row in direct.execute(ORDER).fetchall()]
    second = pages.page_of(conn.ask(wire.query(f"{DECLARED} /* pgseek cursor={pages.page_of(conn.ask(wire.query(f'{DECLARED} /* pgseek */'))).next} */")))
    conn.ask(wire.query("BEGIN"))
    answer = conn.ask(wire.query(f"DECLARE c CURSOR FOR {DECLARED} /* pgseek cursor={second.prev} */"))
    if answer[0].kind == "E":
        assert answer[0].fields()["C"] == "PS005"
    else:
        assert [tuple(row) for row in rows_of(conn.ask(wire.query("FETCH ALL FROM c")))] == everything[:5]
    conn.ask(wire.query("ROLLBACK"))


def test_a_failing_declare_is_the_servers_own_error(conn, direct, token):
    """Outside a block, and with a name that is taken."""
    for peer in (conn, direct):
        answer = peer.ask(wire.query(f"DECLARE c CURSOR FOR {SELECT}" + (f" /* pgseek cursor={token} */" if peer is conn else "")))
        assert answer[0].fields()["C"] == "25P01"
        peer.ask(wire.query("BEGIN"), wire.query("DECLARE c CURSOR FOR SELECT 1"), syncs=2)
        answer = peer.ask(wire.query(f"DECLARE c CURSOR FOR {SELECT}" + (f" /* pgseek cursor={token} */" if peer is conn else "")))
        assert answer[0].fields()["C"] == "42P03"
        peer.ask(wire.query("ROLLBACK"))


# ---- COPY, INTO ------------------------------------------------------------------------------------------------------


@PROTOCOLS
@pytest.mark.parametrize("sql,reason", [
    (f"COPY ({SELECT}) TO STDOUT", "copy"), (f"COPY ({SELECT}) TO STDOUT (FORMAT binary)", "copy"),
    (f"CREATE TEMP TABLE copied AS {SELECT}", "into"), (SELECT.replace(" FROM", " INTO TEMP copied FROM"), "into"), (f"CREATE TEMP VIEW copied AS {SELECT}", "not_select")])
def test_statements_that_are_no_page(conn, direct, token, protocol, sql, reason):
    """Untouched, byte for byte, with a reason; refused with a cursor or strict."""
    got = wire.run(conn, f"{sql} /* pgseek */", protocol)
    assert wire.statuses(got)["pgseek.action"] == f"pass: {reason}"
    assert wire.without_ours(got) == wire.run(direct, f"{sql} /* pgseek */", protocol)
    for options in (f"cursor={token}", "strict=on"):
        with pytest.raises(wire.ServerError) as error:
            pages.page_of(wire.run(conn, f"{sql} /* pgseek {options} */", protocol))
        assert error.value.sqlstate == "PS005" and reason in error.value.fields["M"]


def test_copy_is_not_interrupted(conn, direct):
    """Nothing of ours stands between the data of a COPY."""
    sql = "COPY (SELECT id, note FROM explained ORDER BY id LIMIT 1500 /* pgseek */) TO STDOUT"
    got = conn.ask(wire.query(sql))
    kinds = "".join(message.kind for message in got)
    assert kinds.startswith("H" + "d" * 1500 + "c")
    assert wire.without_ours(got) == direct.ask(wire.query(sql))


def test_copy_by_psycopg2(proxy, server):
    out = []
    for peer in (proxy, server):
        conn = psycopg2.connect(peer.dsn())
        try:
            import io
            target = io.StringIO()
            conn.cursor().copy_expert(f"COPY ({SELECT} /* pgseek */) TO STDOUT", target)
            out.append(target.getvalue())
        finally:
            conn.close()
    assert out[0] == out[1] and out[0].count("\n") == 3
