"""Tags: what a comment may say, what it must not, and where it is found."""
import re

import psycopg
import pytest

import pages
import wire

SQL = "SELECT id, note FROM tagged ORDER BY id LIMIT 2"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS tagged; CREATE TABLE tagged (id int4 PRIMARY KEY, note text NOT NULL)")
        conn.execute("INSERT INTO tagged SELECT i, 'note ' || i FROM generate_series(1, 9) i")
    yield


@pytest.fixture
def token(conn):
    return pages.page_of(conn.ask(wire.query(f"{SQL} /* pgseek */"))).next


def ids(messages):
    return [int(row[0]) for row in pages.page_of(messages).rows]


PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended"])
PLACES = ["/* pgseek {0} */ {1}", "{1} /* pgseek {0} */", "-- pgseek {0}\n{1}", "{1} -- pgseek {0}", "{1} /*pgseek {0}*/;", "/* a */ {1} /* b */ /* pgseek {0} */",
          "{1} --pgseek {0}\n -- other", "{2} /* pgseek {0} */ {3}", "{1} /* PGSEEK {0} */"]


@PROTOCOLS
@pytest.mark.parametrize("place", PLACES)
def test_a_tag_is_found_wherever_a_comment_may_stand(conn, token, place, protocol):
    head, tail = SQL.split(" ", 1)
    assert ids(wire.run(conn, place.format("", SQL, head, tail), protocol)) == [1, 2]
    assert ids(wire.run(conn, place.format(f"cursor={token}", SQL, head, tail), protocol)) == [3, 4]


@PROTOCOLS
@pytest.mark.parametrize("spelling", ["cursor={0}", "cursor='{0}'", "tail=off,cursor={0}", "cursor={0} tail=off", "cursor={0}, page=first", "mode=rewrite deliver='status' cursor={0}"])
def test_spellings_of_options(conn, token, spelling, protocol):
    assert ids(wire.run(conn, f"{SQL} /* pgseek {spelling.format(token)} */", protocol)) == [3, 4]


@PROTOCOLS
@pytest.mark.parametrize("comment", [
    "/*controller='posts',pgseek='on',pgseek_cursor='{0}'*/", "/*pgseek='on',pgseek_cursor='{0}',traceparent='00-5bd66ef5-01'*/",
    "/*action='run%20it',pgseek='on',pgseek_cursor='{0}',pgseek_deliver='status%2Cnotice'*/"])
def test_sqlcommenter(conn, token, comment, protocol):
    assert ids(wire.run(conn, f"{SQL} {comment.format(token)}", protocol)) == [3, 4]


@PROTOCOLS
@pytest.mark.parametrize("empty", ["cursor=", "cursor=''", "cursor=NULL", "cursor=null", "", "page=first"])
def test_no_cursor_is_the_first_page(conn, empty, protocol):
    page = pages.page_of(wire.run(conn, f"{SQL} /* pgseek {empty} */", protocol))
    assert (page.action, [row[0] for row in page.rows]) == ("first", [b"1", b"2"])


BAD = ["curser=abc", "cursor=a cursor=b", "page=middle", "total=maybe", "mode=fast", "strict=maybe", "deliver=pigeon", "deliver=status,pigeon", "tail=3",
       "walk=" + "x" * 65, "cursor", "=x", "cursor='a", "page=first page=first", "paginate=on"]


@PROTOCOLS
@pytest.mark.parametrize("options", BAD)
def test_a_bad_tag_is_refused(conn, options, protocol):
    refused(conn, wire.run(conn, f"{SQL} /* pgseek {options} */", protocol))


def refused(conn, messages, code="PS000"):
    """The right code with DETAIL and HINT, one ReadyForQuery, and a session that goes on."""
    error = [message.fields() for message in messages if message.kind == "E"]
    assert len(error) == 1 and error[0]["C"] == code, wire.kinds(messages)
    assert error[0]["S"] == "ERROR" and error[0]["V"] == "ERROR"
    assert error[0].get("D") and error[0].get("H"), error[0]
    assert not any(message.kind in "DC" for message in messages)
    assert [message.body for message in messages if message.kind == "Z"] == [b"I"]
    assert conn.rows(wire.query("SELECT 7")) == [[b"7"]]


@PROTOCOLS
@pytest.mark.parametrize("sql", [f"/* pgseek */ {SQL} /* pgseek */", f"-- pgseek\n{SQL} /*pgseek='on'*/", f"{SQL} /*pgseek_curser='a',pgseek='on'*/"])
def test_two_tags_and_misspelt_keys_are_refused(conn, sql, protocol):
    refused(conn, wire.run(conn, sql, protocol))


@pytest.mark.parametrize("sql", [f"{SQL} /* pgseek */; SELECT 1", f"SELECT 1; {SQL} /* pgseek */", f"BEGIN; {SQL} /* pgseek */; COMMIT"])
def test_a_tag_among_several_statements_is_refused(conn, sql):
    refused(conn, conn.ask(wire.query(sql)))


@pytest.mark.parametrize("sql", [f"{SQL} /* pgseek */;", f";{SQL} /* pgseek */;;", f"{SQL}; /* pgseek */"])
def test_empty_statements_do_not_count(conn, sql):
    assert ids(conn.ask(wire.query(sql))) == [1, 2]


NO_TAGS = ["SELECT '/* pgseek cursor=x */'", "SELECT $$ /* pgseek cursor=x */ $$", "SELECT 1 AS \"/* pgseek cursor=x */\"", "SELECT 1 /* see pgseek */",
           "SELECT E'\\' /* pgseek cursor=x */'", "SELECT 1 /* pgseeker cursor=x */", "SELECT 1 AS pgseek", "SELECT U&'/* pgseek cursor=x */'",
           "SELECT $pgseek$ /* pgseek cursor=x */ $pgseek$"]


@PROTOCOLS
@pytest.mark.parametrize("sql", NO_TAGS)
def test_what_only_looks_like_a_tag(conn, server, sql, protocol):
    with server.wire() as direct:
        assert wire.run(conn, sql, protocol) == wire.run(direct, sql, protocol)


@pytest.mark.parametrize("forged", ["x*/ OFFSET 5 --", "'; DROP TABLE tagged; --", "a b", "%00", "x/*y"])
def test_a_forged_cursor_is_no_page_one(conn, forged):
    """A bound token is a value, whatever it holds; interpolated, it may end the comment, but the page is then refused or not a page of ours."""
    bound = pages.Extended(conn, SQL)
    with pytest.raises(wire.ServerError) as error:
        bound.ask(forged)
    assert error.value.sqlstate in ("PS001", "PS002")
    spliced = conn.ask(wire.query(f"{SQL} /* pgseek cursor={forged} */"))
    assert [message.fields()["C"] for message in spliced if message.kind == "E"], "a forged cursor was answered"
    assert conn.rows(wire.query("SELECT count(*) FROM tagged")) == [[b"9"]]


def test_a_parameter_cursor_needs_a_parameter(conn):
    refused(conn, conn.ask(wire.query(f"{SQL} /* pgseek cursor=$1 */")))


def test_a_cursor_in_a_parameter_of_the_text(conn):
    """For pgjdbc, which sets no parameter in a comment: the text names it too, and the server sees it."""
    sql = "SELECT id FROM tagged WHERE id > $1 AND coalesce($2, '') IS NOT NULL ORDER BY id LIMIT 3 /* pgseek cursor=$2 */"
    got, cursor = [], None
    for _ in range(3):
        page = pages.page_of(conn.ask(wire.extended(sql, ["0", cursor])))
        got += [int(row[0]) for row in page.rows]
        cursor = page.next
    assert got == list(range(1, 10)) and cursor == ""


def test_the_extra_parameter_is_described_as_text(conn, server):
    with server.wire() as direct:
        own = conn.ask(wire.parse(f"{SQL} /* pgseek cursor=$1 */"), wire.describe("S"), wire.sync())
        plain = direct.ask(wire.parse(f"{SQL} /* pgseek cursor=$1 */", oids=[pages.TEXT_OID]), wire.describe("S"), wire.sync())
        assert own == plain


def test_page_last(conn):
    page = pages.page_of(conn.ask(wire.query(f"{SQL} /* pgseek page=last */")))
    assert [int(row[0]) for row in page.rows] == [8, 9]
    assert (page.has_more, page.has_prev) == (False, True)
    back = pages.page_of(conn.ask(wire.query(f"{SQL} /* pgseek cursor={page.prev} */")))
    assert [int(row[0]) for row in back.rows] == [6, 7]


def test_tail_gives_a_cursor_behind_the_end(conn):
    page = pages.page_of(conn.ask(wire.query("SELECT id FROM tagged ORDER BY id LIMIT 20 /* pgseek tail=on */")))
    assert page.next and not page.has_more
    polled = pages.page_of(conn.ask(wire.query(f"SELECT id FROM tagged ORDER BY id LIMIT 20 /* pgseek tail=on cursor={page.next} */")))
    assert polled.rows == [] and polled.next
    conn.ask(wire.query("INSERT INTO tagged VALUES (100, 'late')"))
    late = pages.page_of(conn.ask(wire.query(f"SELECT id FROM tagged ORDER BY id LIMIT 20 /* pgseek tail=on cursor={polled.next} */")))
    conn.ask(wire.query("DELETE FROM tagged WHERE id = 100"))
    assert late.rows == [(b"100",)]


PASSED = ["SELECT id FROM tagged LIMIT 2", "SELECT id FROM tagged ORDER BY id", "SELECT note FROM tagged ORDER BY random() LIMIT 2", "SELECT count(*) FROM tagged",
          "SELECT id FROM tagged ORDER BY id FETCH FIRST 2 ROWS WITH TIES", "SELECT note FROM (SELECT note FROM tagged) t ORDER BY note LIMIT 2"]


@PROTOCOLS
@pytest.mark.parametrize("sql", PASSED)
def test_what_is_no_page_passes_with_a_reason(conn, server, sql, protocol):
    messages = wire.run(conn, f"{sql} /* pgseek */", protocol)
    assert re.match(r"pass: \w+$", wire.statuses(messages)["pgseek.action"])
    if "random" not in sql and "ORDER BY" in sql:
        with server.wire() as direct:
            assert [m for m in messages if m.kind != "S"] == wire.run(direct, sql, protocol)


@PROTOCOLS
@pytest.mark.parametrize("sql", PASSED)
def test_with_a_cursor_or_strict_it_is_refused(conn, token, sql, protocol):
    refused(conn, wire.run(conn, f"{sql} /* pgseek cursor={token} */", protocol), "PS005")
    refused(conn, wire.run(conn, f"{sql} /* pgseek strict=on */", protocol), "PS005")


def test_mode_off_leaves_the_statement_alone(conn):
    page = pages.page_of(conn.ask(wire.query(f"{SQL} /* pgseek mode=off */")))
    assert page.rows == [(b"1", b"note 1"), (b"2", b"note 2")]
    assert page.next == ""


def test_a_tag_in_psycopg(proxy, token):
    with proxy.connect() as conn:
        assert conn.execute(f"{SQL} /* pgseek cursor=%s */", [token]).fetchall() == [(3, "note 3"), (4, "note 4")]
        assert psycopg.ClientCursor(conn).execute(f"{SQL} /* pgseek cursor=%s */", [token]).fetchall() == [(3, "note 3"), (4, "note 4")]
        assert psycopg.ClientCursor(conn).execute(f"{SQL} /* pgseek cursor=%s */", [None]).fetchall() == [(1, "note 1"), (2, "note 2")]
