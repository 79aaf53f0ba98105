"""total=exact and total=estimate: how many rows all pages have together.

The exact one is compared with the server's own count. Whatever goes wrong with it leaves the total empty and nothing
else: the page, the transaction and the settings are as without it.
"""
import json

import psycopg
import psycopg2
import pytest

import cluster
import pages
import wire

SQL = "SELECT id, note FROM totals WHERE feed = {0} ORDER BY id LIMIT 3"
SLOW = "SELECT id FROM totals WHERE pg_sleep(CASE WHEN id > 3 THEN 100 ELSE 0 END)::text IS NOT NULL ORDER BY id LIMIT 2"  # the page itself is quick
FAILING = "SELECT id FROM totals WHERE 10 / (50 - id) > -100 ORDER BY id LIMIT 2"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS totals; CREATE TABLE totals (id int8 PRIMARY KEY, feed int4 NOT NULL, note text NOT NULL)")
        conn.execute("INSERT INTO totals SELECT i, i % 3, 'note ' || i FROM generate_series(1, 100) i; ANALYZE totals")
    yield


def total(messages):
    pages.page_of(messages)
    return wire.statuses(messages).get("pgseek.total")


PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended"])
BLOCKS = pytest.mark.parametrize("block", [False, True], ids=["alone", "in a block"])


@pytest.fixture
def begin(conn):
    def begin(block):
        if block:
            conn.ask(wire.query("BEGIN"))
    return begin


def usable(conn, block):
    """The session is in the state that it was in, and no setting has stayed."""
    answer = conn.ask(wire.query("SHOW statement_timeout"))
    assert [message.row() for message in answer if message.kind == "D"] == [[b"0"]]
    assert answer[-1].body == (b"T" if block else b"I")
    if block:
        assert conn.ask(wire.query("COMMIT"))[0].text() == "COMMIT"
    return True


@PROTOCOLS
@BLOCKS
def test_exact(server, conn, begin, protocol, block):
    begin(block)
    with server.connect() as direct:
        for feed in (0, 1, 7):
            (expected,) = direct.execute("SELECT count(*) FROM totals WHERE feed = %s", [feed]).fetchone()
            answer = wire.run(conn, f"{SQL.format(feed)} /* pgseek total=exact */", protocol)
            assert total(answer) == str(expected)
            assert conn.rows(wire.query("SHOW pgseek.total")) == [[str(expected).encode()]]
            assert len(pages.page_of(answer).rows) == min(expected, 3)
    assert usable(conn, block)


@BLOCKS
def test_every_page_of_a_walk_has_it(conn, begin, block):
    """The parameters are the page's; the token is none of them. Names, formats and repetition make no difference."""
    begin(block)
    for asker in (pages.Simple, pages.Extended, pages.Binary, pages.Named):
        walk = asker(conn, SQL.format("$1"), [1], options="total=exact")
        seen, cursor = [], None
        for _ in range(3):
            page = walk.ask(cursor)
            seen.append(conn.rows(wire.query("SHOW pgseek.total"))[0][0])
            cursor = page.next
        assert seen == [b"34"] * 3
    assert usable(conn, block)


# The statement, and what its whole result is counted by.
FORMS = [
    ("SELECT feed, count(*) FROM totals GROUP BY feed HAVING count(*) > 33 ORDER BY count(*), feed LIMIT 1", "SELECT feed FROM totals GROUP BY feed HAVING count(*) > 33"),
    ("SELECT DISTINCT feed FROM totals ORDER BY feed LIMIT 2", "SELECT DISTINCT feed FROM totals"),
    ("SELECT DISTINCT ON (feed) feed, id FROM totals ORDER BY feed, id DESC LIMIT 2", "SELECT DISTINCT feed FROM totals"),
    ("SELECT id FROM totals WHERE id < 5 UNION SELECT feed FROM totals ORDER BY 1 LIMIT 2", "SELECT id FROM totals WHERE id < 5 UNION SELECT feed FROM totals"),
    ("WITH totals AS (SELECT * FROM totals WHERE feed = 2) SELECT id FROM totals ORDER BY id LIMIT 2", "SELECT FROM totals WHERE feed = 2"),
    ("WITH totals AS (SELECT * FROM totals WHERE id < 8) SELECT p.id, t.note FROM (SELECT id FROM totals ORDER BY id LIMIT 2) p JOIN totals t ON t.id = p.id ORDER BY p.id", "SELECT FROM totals WHERE id < 8"),
    ("WITH page AS (SELECT id FROM totals WHERE feed = 0 ORDER BY id DESC LIMIT 2) SELECT p.id FROM page p JOIN totals t ON t.id = p.id", "SELECT FROM totals WHERE feed = 0"),
    ("SELECT t.id FROM totals t LEFT JOIN totals u ON u.id = t.id + 50 ORDER BY u.note DESC NULLS LAST, t.id LIMIT 3", "SELECT FROM totals"),
    ("TABLE totals ORDER BY id LIMIT 2", "TABLE totals"), ("SELECT FROM totals ORDER BY id LIMIT 2", "SELECT FROM totals"),
    ("SELECT id -- all\n FROM totals -- of them\n ORDER BY id -- ;\n LIMIT 2 -- x\n", "SELECT FROM totals"),
]


@PROTOCOLS
@pytest.mark.parametrize("sql,whole", FORMS)
def test_every_form(server, conn, protocol, sql, whole):
    with server.connect() as direct:
        (expected,) = direct.execute(f"SELECT count(*) FROM ({whole}) q").fetchone()
    answer = wire.run(conn, f"{sql} /* pgseek total=exact */", protocol)
    assert wire.statuses(answer)["pgseek.action"] == "first"
    assert total(answer) == str(expected)
    assert total(wire.run(conn, f"{sql} /* pgseek total=estimate */", protocol)).isdigit()


@PROTOCOLS
@BLOCKS
def test_estimate(server, conn, begin, protocol, block):
    begin(block)
    with server.connect() as direct:
        ((plan,),) = direct.execute("EXPLAIN (FORMAT JSON) SELECT id, note FROM totals WHERE feed = 1").fetchone()
    answer = wire.run(conn, f"{SQL.format(1)} /* pgseek total=estimate */", protocol)
    assert total(answer) == str(int(plan["Plan"]["Plan Rows"]))
    assert usable(conn, block)


def test_an_estimate_sees_bound_values(conn):
    answer = conn.ask(wire.extended("SELECT id FROM totals WHERE id > $1 ORDER BY id LIMIT 2 /* pgseek total=estimate */", ["90"]))
    assert 1 <= int(total(answer)) <= 30


@PROTOCOLS
@BLOCKS
@pytest.mark.parametrize("kind", ["exact", "estimate"])
def test_a_failing_total_is_empty(conn, begin, protocol, block, kind):
    """The error would have come on a later page; this one is as without a total."""
    begin(block)
    answer = wire.run(conn, f"{FAILING} /* pgseek total={kind} */", protocol)
    assert [row[0] for row in pages.page_of(answer).rows] == [b"1", b"2"]
    assert total(answer) == "" if kind == "exact" else total(answer).isdigit()
    assert conn.rows(wire.query("SHOW pgseek.total")) == [[total(answer).encode()]]
    assert usable(conn, block)


@PROTOCOLS
@BLOCKS
def test_a_slow_total_is_given_up(conn, begin, protocol, block):
    begin(block)
    answer = wire.run(conn, f"{SLOW} /* pgseek total=exact */", protocol)
    assert [row[0] for row in pages.page_of(answer).rows] == [b"1", b"2"]
    assert total(answer) == ""
    assert usable(conn, block)


@BLOCKS
def test_a_shorter_limit_of_the_clients_stays(make_proxy, block):
    proxy = make_proxy(total_timeout="120s")
    with proxy.wire() as conn:
        conn.ask(wire.query("SET statement_timeout = '300ms'"))
        if block:
            conn.ask(wire.query("BEGIN"))
        answer = conn.ask(wire.query(f"{SLOW} /* pgseek total=exact */"))
        assert total(answer) == "" and len(pages.page_of(answer).rows) == 2
        assert conn.rows(wire.query("SHOW statement_timeout")) == [[b"300ms"]]


def test_a_count_below_the_limit_of_a_long_timeout(make_proxy):
    """The proxy's limit and not the client's is what a total with a longer statement_timeout has."""
    with make_proxy(total_timeout="1s").wire() as conn:
        for setting in ("1h", "2min", "1d", "0"):
            conn.ask(wire.query(f"SET statement_timeout = '{setting}'"))
            answer = conn.ask(wire.query(f"{SLOW} /* pgseek total=exact */"))
            assert total(answer) == ""
            assert conn.rows(wire.query("SHOW statement_timeout")) == [[setting.encode()]]


def counting(server):
    """The backend that is counting."""
    def found():
        with server.connect() as admin:
            return admin.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE '%count(*)%pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()").fetchone()
    return cluster.wait_until(found, "nobody counts")[0]


@BLOCKS
@PROTOCOLS
def test_a_cancelled_total_is_empty(server, make_proxy, block, protocol):
    """The cancel request ends what runs, which is the count; the page comes."""
    with make_proxy(total_timeout="120s").wire() as conn:
        if block:
            conn.ask(wire.query("BEGIN"))
        conn.send(wire.query(f"{SLOW} /* pgseek total=exact */") if protocol == "simple" else wire.extended(f"{SLOW} /* pgseek total=exact */"))
        with server.connect() as admin:
            admin.execute("SELECT pg_cancel_backend(%s)", [counting(server)])
        answer = conn.ready()
        assert total(answer) == "" and len(pages.page_of(answer).rows) == 2
        assert usable(conn, block)


def test_a_server_that_goes_away_says_so(server, make_proxy):
    with make_proxy(total_timeout="120s").wire() as conn:
        conn.send(wire.query(f"{SLOW} /* pgseek total=exact */"))
        with server.connect() as admin:
            admin.execute("SELECT pg_terminate_backend(%s)", [counting(server)])
        assert conn.until("E")[-1].fields()["C"] == "57P01"
        assert conn.is_closed()


def test_savepoints_of_the_client_are_its_own(conn):
    """A total inside a block leaves the client's savepoints, cursors and writes as they were."""
    for message in ("BEGIN", "SAVEPOINT a", "INSERT INTO totals VALUES (1001, 1, 'new')", "DECLARE c CURSOR FOR SELECT id FROM totals ORDER BY id", "SAVEPOINT b"):
        conn.ask(wire.query(message))
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "35", "its own uncommitted row is counted"
    assert total(conn.ask(wire.query(f"{FAILING} /* pgseek total=exact */"))) == ""
    assert conn.rows(wire.query("FETCH 2 FROM c")) == [[b"1"], [b"2"]]
    assert conn.ask(wire.query("ROLLBACK TO b"))[0].text() == "ROLLBACK"
    assert conn.rows(wire.query("FETCH 1 FROM c")) == [[b"3"]]
    assert conn.ask(wire.query("RELEASE a"))[0].text() == "RELEASE"
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "35"
    conn.ask(wire.query("ROLLBACK"))
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "34"


def test_a_failed_block_says_so(conn):
    conn.ask(wire.query("BEGIN"), wire.query("SELECT 1/0"), syncs=2)
    for message in (wire.query(f"{SQL.format(1)} /* pgseek total=exact */"), wire.extended(f"{SQL.format(1)} /* pgseek total=exact */")):
        error = next(m for m in conn.ask(message) if m.kind == "E")
        assert error.fields()["C"] == "25P02"
    conn.ask(wire.query("ROLLBACK"))


@BLOCKS
def test_a_failed_parse_in_front_is_the_answer(server, conn, begin, block):
    """The group's first error is told, what follows in it is discarded, and the next group runs."""
    begin(block)
    named = wire.parse(f"{SQL.format('$1')} /* pgseek total=exact */", "n")
    conn.ask(named, wire.sync())
    assert total(conn.ask(wire.bind(["1"], "n"), wire.execute(), wire.sync())) == "34"
    group = [wire.parse("SELECT nosuch"), wire.bind(["1"], "n"), wire.describe(), wire.execute(), wire.sync()]
    answer = conn.ask(*group)
    assert wire.kinds(answer) == "E Z" and answer[0].fields()["C"] == "42703"
    assert answer[-1].body == (b"E" if block else b"I")
    if block:
        conn.ask(wire.query("ROLLBACK"))
    assert total(conn.ask(wire.bind(["1"], "n"), wire.execute(), wire.sync())) == "34"


def test_in_the_middle_of_a_pipeline_it_is_empty(conn):
    """Behind something that has run and is not committed there is no place to count: the page comes without a total."""
    group = [wire.parse("INSERT INTO totals VALUES (1002, 1, 'x')"), wire.bind(), wire.execute(),
             wire.parse(f"{SQL.format(1)} /* pgseek total=exact */"), wire.bind(), wire.describe(), wire.execute(), wire.parse("SELECT 1/0"), wire.bind(), wire.execute(), wire.sync()]
    answer = conn.ask(*group)
    assert wire.statuses(answer)["pgseek.total"] == "" and [m for m in answer if m.kind == "E"]
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "34", "the insert was undone"


def test_pipelined_pages_have_each_their_own(conn):
    group = [wire.extended(f"{SQL.format(feed)} /* pgseek total=exact */") for feed in (0, 1, 5)]
    answer = conn.ask(*group, syncs=3)
    assert [m.status()[1] for m in answer if m.kind == "S" and m.status()[0] == "pgseek.total"] == ["33", "34", "0"]


def test_a_total_does_not_outlive_its_page(conn):
    """Drivers keep what they were told, so the next page without a total takes it back, once."""
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "34"
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek */"))) == ""
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek */"))) is None
    assert conn.rows(wire.query("SHOW pgseek.total")) == [[b""]]


def test_by_variable_notice_and_columns(conn):
    conn.ask(wire.query("SET pgseek.total = 'exact'"))
    answer = conn.ask(wire.query(f"{SQL.format(1)} /* pgseek deliver=notice */"))
    notice = next(m.fields() for m in answer if m.kind == "N")
    assert json.loads(notice["D"])["total"] == "34"
    assert not [m for m in answer if m.kind == "S" and m.status()[0] == "pgseek.total"]
    conn.ask(wire.query("SET pgseek.total = 'none'"))
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek deliver='status,columns' total=exact */"))) == "34"


@PROTOCOLS
def test_who_counts_is_who_asks(server, proxy, protocol):
    """Row-level security, search_path and the role are those of the session."""
    with server.connect() as admin:
        admin.execute("DROP TABLE IF EXISTS totals_secret; CREATE TABLE totals_secret (id int4 PRIMARY KEY, owner text NOT NULL)")
        admin.execute("INSERT INTO totals_secret SELECT i, CASE WHEN i % 4 = 0 THEN 'app' ELSE 'other' END FROM generate_series(1, 20) i")
        admin.execute("ALTER TABLE totals_secret ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON totals_secret USING (owner = current_user); GRANT SELECT ON totals_secret TO app")
    with proxy.wire(user="app") as conn:
        assert total(wire.run(conn, "SELECT id FROM totals_secret ORDER BY id LIMIT 2 /* pgseek total=exact */", protocol)) == "5"


def test_locks_are_not_taken_for_a_count(conn, server):
    """FOR UPDATE locks the page's rows only."""
    conn.ask(wire.query("BEGIN"))
    assert total(conn.ask(wire.query("SELECT id FROM totals ORDER BY id LIMIT 2 FOR UPDATE /* pgseek total=exact */"))) == "100"
    with server.connect() as other:
        assert other.execute("SELECT id FROM totals WHERE id = 50 FOR UPDATE NOWAIT").fetchone() == (50,)
    conn.ask(wire.query("ROLLBACK"))


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "SERIALIZABLE READ ONLY DEFERRABLE"])
def test_every_isolation_level(conn, level):
    conn.ask(wire.query(f"BEGIN ISOLATION LEVEL {level}"))
    assert total(conn.ask(wire.query(f"{SQL.format(1)} /* pgseek total=exact */"))) == "34"
    assert conn.ask(wire.query("COMMIT"))[0].text() == "COMMIT"


def test_what_passes_has_no_total(conn):
    for sql in ("SELECT count(*) FROM totals /* pgseek total=exact */", "SELECT id FROM totals LIMIT 3 /* pgseek total=exact */"):
        answer = conn.ask(wire.query(sql))
        assert total(answer) == "" and wire.statuses(answer)["pgseek.action"].startswith("pass")


def test_with_execute_and_explain(conn):
    conn.ask(wire.query(f"PREPARE p AS {SQL.format('$1')} /* pgseek total=exact */"))
    assert total(conn.ask(wire.query("EXECUTE p(1)"))) == "34"
    answer = conn.ask(wire.query("EXPLAIN EXECUTE p(1)"))
    assert wire.statuses(answer)["pgseek.total"] == "" and wire.statuses(answer)["pgseek.action"] == "first"


def test_drivers(proxy):
    with proxy.connect(autocommit=False) as conn:
        with conn.pipeline():
            cursor = conn.execute(f"{SQL.format('%s')} /* pgseek total=exact */", [1])
            assert len(cursor.fetchall()) == 3
        conn.rollback()
        for _ in range(7):
            assert len(conn.execute(f"{SQL.format('%s')} /* pgseek total=exact */", [1]).fetchall()) == 3
            assert conn.pgconn.parameter_status(b"pgseek.total") == b"34"
    conn = psycopg2.connect(proxy.dsn())
    try:
        with conn.cursor() as cursor:
            cursor.execute(f"{SQL.format('%s')} /* pgseek total=exact */", [1])
            assert len(cursor.fetchall()) == 3 and conn.get_parameter_status("pgseek.total") == "34"
    finally:
        conn.close()
