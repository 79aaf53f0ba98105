"""How a page's cursors come back, and that nothing else of what came back has changed."""
import json

import pytest

import pages
import wire

SQL = "SELECT id, at FROM delivery ORDER BY at DESC, id DESC LIMIT 3"
NAMES = {"next_cursor", "prev_cursor", "has_more", "has_prev", "rows", "action", "page_id"}


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS delivery, delivery_author; CREATE TABLE delivery_author (id int4 PRIMARY KEY, name varchar(12) NOT NULL)")
        conn.execute("CREATE TABLE delivery (id int8 PRIMARY KEY, at timestamptz(3) NOT NULL, price numeric(8,2) NOT NULL, title varchar(20) NOT NULL, body text,"
                     " author int4 NOT NULL, flags bit(3), tags text[], span interval day to second)")
        conn.execute("INSERT INTO delivery_author VALUES (0, 'ann'), (1, 'bob')")
        conn.execute("INSERT INTO delivery SELECT i, timestamptz '2026-01-01' + make_interval(secs => i / 4), i * 1.25, 'title ' || i, NULL, i % 2, B'101', ARRAY['a', NULL], '1 day'"
                     " FROM generate_series(1, 20) i")
    yield


PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended"])


@PROTOCOLS
def test_statuses_come_behind_the_rows_and_before_the_tag(conn, protocol):
    messages = wire.run(conn, f"{SQL} /* pgseek */", protocol)
    kinds = wire.kinds([message for message in messages if message.kind not in "12"])
    count = kinds.count("S")
    assert kinds == "T D D D " + "S " * count + "C Z"
    said = wire.statuses(messages)
    assert set(said) == {f"pgseek.{name}" for name in NAMES}
    assert (said["pgseek.has_more"], said["pgseek.has_prev"], said["pgseek.rows"], said["pgseek.action"], said["pgseek.prev_cursor"]) == ("on", "off", "3", "first", "")


@PROTOCOLS
def test_page_ids_are_new_each_time(conn, protocol):
    seen = {wire.statuses(wire.run(conn, f"{SQL} /* pgseek */", protocol))["pgseek.page_id"] for _ in range(5)}
    assert len(seen) == 5


@PROTOCOLS
def test_notice(conn, protocol):
    messages = wire.run(conn, f"{SQL} /* pgseek deliver=notice */", protocol)
    notices = [message.fields() for message in messages if message.kind == "N"]
    assert len(notices) == 1 and not any(m.kind == "S" for m in messages)
    said = json.loads(notices[0]["D"])
    strip = {key.removeprefix("pgseek."): value for key, value in said.items()}
    assert NAMES <= set(strip)
    assert pages.TOKEN.match(strip["next_cursor"])
    assert len(pages.page_of(wire.run(conn, f"{SQL} /* pgseek deliver=status cursor={strip['next_cursor']} */", protocol)).rows) == 3


@PROTOCOLS
def test_columns_give_each_row_its_own_cursor(conn, direct, protocol):
    messages = wire.run(conn, f"{SQL} /* pgseek deliver=columns */", protocol)
    names = [column.name for column in next(m for m in messages if m.kind == "T").columns()]
    assert names == ["id", "at", "pgseek_cursor", "pgseek_has_more"]
    rows = [message.row() for message in messages if message.kind == "D"]
    everything = [tuple(m.row()) for m in direct.ask(wire.query(SQL.replace(" LIMIT 3", ""))) if m.kind == "D"]
    for at, row in enumerate(rows):
        assert row[3] == b"t"
        after = pages.page_of(wire.run(conn, f"{SQL} /* pgseek cursor={row[2].decode()} */", protocol))
        assert after.rows == everything[at + 1:at + 4]


@PROTOCOLS
def test_all_channels_at_once_say_the_same(conn, protocol):
    messages = wire.run(conn, f"{SQL} /* pgseek deliver='status,notice,columns' */", protocol)
    status = wire.statuses(messages)
    notice = json.loads(next(m for m in messages if m.kind == "N").fields()["D"])
    strip = {key.removeprefix("pgseek."): value for key, value in notice.items()}
    assert strip["next_cursor"] == status["pgseek.next_cursor"]
    assert len([m.row() for m in messages if m.kind == "D"][-1]) == 4


def test_the_last_page_and_the_empty_one(conn):
    page = pages.page_of(conn.ask(wire.query("SELECT id FROM delivery ORDER BY id LIMIT 20 /* pgseek */")))
    assert (page.has_more, page.next, len(page.rows)) == (False, "", 20)
    page = pages.page_of(conn.ask(wire.query("SELECT id FROM delivery WHERE id < 0 ORDER BY id LIMIT 20 /* pgseek */")))
    assert (page.rows, page.next, page.prev, page.has_more, page.tag) == ([], "", "", False, "SELECT 0")


# ---- row limits -------------------------------------------------------------------------------------------------------


def test_portions_report_what_was_delivered_so_far(conn):
    conn.send(wire.parse(f"{SQL} /* pgseek */"), wire.bind(portal="p"), wire.execute("p", 2), wire.flush())
    part = conn.until("s")
    said = wire.statuses(part)
    assert said["pgseek.has_more"] == "on" and wire.kinds(part).endswith("S s")
    conn.send(wire.execute("p", 2), wire.sync())
    rest = conn.until("Z")
    assert [m.text() for m in rest if m.kind == "C"] == ["SELECT 1"]
    assert wire.statuses(rest)["pgseek.page_id"] == said["pgseek.page_id"]
    after_two = pages.page_of(conn.ask(wire.query(f"{SQL} /* pgseek cursor={said['pgseek.next_cursor']} */")))
    assert [row[0] for row in after_two.rows] == [b"18", b"17", b"16"]


@pytest.mark.parametrize("limit", [0, 1, 2, 5, 25])
@pytest.mark.parametrize("portion", [-1, 0, 1, 2, 4, 5, 6, 7])
def test_row_limits_end_as_the_servers_own(conn, direct, limit, portion):
    """Executes a named portal again and again: rows, s and C as directly, whatever the portion."""
    def run(peer):
        sql = f"SELECT id, title FROM delivery ORDER BY at, id LIMIT {limit} /* pgseek */"
        executes = [wire.execute("p", portion) for _ in range(8)]
        answer = peer.ask(wire.parse(sql), wire.bind(portal="p"), wire.describe("P", "p"), *executes, wire.sync())
        return [message for message in answer if message.kind != "S"]
    assert run(conn) == run(direct)


# ---- fidelity ---------------------------------------------------------------------------------------------------------


LISTS = ["*", "id", "title AS id, id AS title", "price, body, flags, tags, span", "d.*", "d.title, d.title", "upper(title), 1, NULL, 'x', price * 2", "ctid, tableoid", "d", "title || 'x' AS at"]
ORDERS = ["d.id", "d.at DESC, d.id DESC", "d.price, d.id", "d.title DESC"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", LISTS)
def test_descriptions_are_the_originals(conn, direct, what, order):
    """RowDescription and ParameterDescription, described before and after Bind, in both protocols."""
    sql = f"SELECT {what} FROM delivery d WHERE d.author = $1 ORDER BY {order} LIMIT $2 OFFSET $3 /* pgseek */"
    binding = wire.bind(["1", "3", "0"], "s", "p", result_formats=[1])
    talks = [
        [wire.parse(sql, "s"), wire.describe("S", "s"), binding, wire.describe("P", "p"), wire.execute("p"), wire.sync()],
        [wire.close("S", "s"), wire.parse(sql, "s", [23, 20, 20]), wire.sync(), binding, wire.execute("p", 1), wire.describe("P", "p"), wire.execute("p"), wire.describe("S", "s"), wire.sync()],
        [wire.query(sql.replace("$1", "1").replace("$2", "3").replace("$3", "0"))],
    ]
    for talk in talks:
        syncs = sum(message[:1] in b"SQ" for message in talk)
        got = [message for message in conn.ask(*talk, syncs=syncs) if message.kind != "S"]
        assert got == direct.ask(*talk, syncs=syncs)


def test_a_joined_page_is_described_as_the_original(conn, direct):
    sql = "SELECT d.title, a.name, a.* FROM delivery d JOIN delivery_author a ON a.id = d.author ORDER BY d.at, d.id LIMIT 4 /* pgseek */"
    for protocol in ("simple", "extended"):
        got = [message for message in wire.run(conn, sql, protocol) if message.kind != "S"]
        assert got == wire.run(direct, sql, protocol)


def test_later_pages_are_described_alike(conn):
    for protocol in pages.MODES.values():
        asker = protocol(conn, "SELECT price, at FROM delivery ORDER BY title LIMIT 3")
        there = pages.forward(asker)
        back = pages.backward(asker, there[-1].prev)
        assert len({str(page.columns) for page in there + back}) == 1


@pytest.mark.parametrize("sql", ["FETCH 2 FROM p", "FETCH ALL FROM p", "MOVE 2 IN p", "MOVE FORWARD 2 p", 'FETCH FORWARD 1 FROM "p"'])
def test_sql_on_a_rewritten_portal(conn, direct, sql):
    """FETCH and MOVE reach a portal that the protocol has made: as directly, or refused; never hidden columns or a sixth row."""
    page = "SELECT id, title FROM delivery ORDER BY at, id LIMIT 5 /* pgseek */"

    def run(peer):
        first = peer.ask(wire.query("BEGIN"), wire.parse(page), wire.bind(portal="p"), wire.execute("p", 1), wire.sync(), syncs=2)
        return [m for m in first + peer.ask(wire.query(sql)) if m.kind != "S"], [m for m in peer.ask(wire.execute("p"), wire.sync()) if m.kind != "S"]

    got, rest = run(conn)
    expected, expected_rest = run(direct)
    if any(m.kind == "E" for m in got):
        assert [m.fields()["C"] for m in got if m.kind == "E"] == ["PS005"]
        return
    assert got == expected and rest == expected_rest


@pytest.mark.parametrize("sql", ["CLOSE p", "CLOSE ALL", "COMMIT", "ROLLBACK"])
def test_sql_that_ends_a_rewritten_portal(conn, direct, sql):
    page = "SELECT id, title FROM delivery ORDER BY at, id LIMIT 5 /* pgseek */"
    for peer in (conn, direct):
        peer.ask(wire.query("BEGIN"), wire.parse(page), wire.bind(portal="p"), wire.execute("p", 1), wire.sync(), syncs=2)
    assert conn.ask(wire.query(sql)) == direct.ask(wire.query(sql))
    assert conn.ask(wire.execute("p"), wire.sync()) == direct.ask(wire.execute("p"), wire.sync())


@pytest.mark.parametrize("sql, protocol", [
    ("SELECT id, nosuch FROM delivery ORDER BY id LIMIT 3 /* pgseek */", "simple"), ("/* pgseek */ SELECT id FROM delivery ORDER BY id, nosuch LIMIT 3", "extended"),
    ("SELECT id, 1 / (id - 2) FROM delivery ORDER BY id LIMIT 3 /* pgseek */", "simple"), ("SELECT id, 1 / (id - 2) FROM delivery ORDER BY id LIMIT 3 /* pgseek */", "extended"),
    ("SELECT 'é', id, title::int FROM delivery ORDER BY id LIMIT 3 /* pgseek */", "extended"), ("SELECT id FROM delivery ORDER BY id LIMIT -1 /* pgseek */", "simple"),
    ("SELECT id FROM delivery ORDER BY id LIMIT 3 OFFSET -1 /* pgseek */", "extended")])
def test_errors_are_the_originals(conn, direct, sql, protocol):
    got = [message for message in wire.run(conn, sql, protocol) if message.kind != "S"]
    assert got == wire.run(direct, sql, protocol)


def test_prepared_by_sql(conn, direct):
    """PREPARE and EXECUTE of a tagged statement: the first page is the original's."""
    for peer in (conn, direct):
        peer.ask(wire.query("PREPARE q(int) AS SELECT id FROM delivery ORDER BY at, id LIMIT $1 /* pgseek */"))
    ours = [message for message in conn.ask(wire.query("EXECUTE q(4)")) if message.kind != "S"]
    assert ours == direct.ask(wire.query("EXECUTE q(4)"))
