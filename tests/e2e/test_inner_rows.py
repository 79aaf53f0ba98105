"""A level inside is the page: its rows are joined outside, or dropped there, and the client sees what the statement gives.

Walked in every mode, portions included; the oracle is the level's own full order, joined by hand.
"""
import pytest

import pages
import wire

LEVEL = "SELECT id, a FROM inner_parents ORDER BY a, id DESC LIMIT 3"
JOINED = f"SELECT p.id, c.id FROM ({LEVEL}) p JOIN inner_children c ON c.parent = p.id ORDER BY p.a, p.id DESC, c.id"
OUTER = f"SELECT p.id, c.id FROM ({LEVEL}) p LEFT JOIN inner_children c ON c.parent = p.id ORDER BY p.a, p.id DESC, c.id"


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as conn:
        conn.execute("""DROP TABLE IF EXISTS inner_parents, inner_children;
            CREATE TABLE inner_parents (id int8 PRIMARY KEY, a int4 NOT NULL);
            CREATE TABLE inner_children (id int8 PRIMARY KEY, parent int8 NOT NULL);
            INSERT INTO inner_parents SELECT i, i / 4 FROM generate_series(1, 31) i;
            INSERT INTO inner_children SELECT i * 100 + j, i FROM generate_series(1, 31) i, generate_series(1, i % 4) j WHERE i NOT BETWEEN 8 AND 19""")
    yield


def value(cell):
    return None if cell is None else int(cell) if len(cell) < 8 else int.from_bytes(cell, "big")


def wanted(server, sql):
    with server.connect() as conn:
        return conn.execute(sql.replace(" LIMIT 3", "")).fetchall()


@pytest.mark.parametrize("mode", pages.MODES)
@pytest.mark.parametrize("sql", [JOINED, OUTER])
def test_both_ways(server, proxy, mode, sql):
    with proxy.wire() as conn:
        asker = pages.MODES[mode](conn, sql)
        there = pages.forward(asker)
        rows = [tuple(value(cell) for cell in row) for row in pages.rows_of(there)]
        assert rows == wanted(server, sql)
        assert len(there) == 11, "pages of the level, and not of the rows"
        assert sql is OUTER or any(not page.rows for page in there), "the outside drops whole pages"
        back = pages.backward(asker, there[-1].prev)
        assert [page.rows for page in reversed(back)] == [page.rows for page in there[:-1]]
        assert not back[-1].has_prev and all(page.has_more for page in back)


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_a_page_without_rows_is_never_suspended(server, proxy, limit):
    """The server's one row is not the client's, and no PortalSuspended may tell of it."""
    with proxy.wire() as conn, server.wire() as direct:
        asker = pages.Extended(conn, JOINED)
        page = asker.ask()
        while page.rows:
            page = asker.ask(page.next)
        before = page.prev
        cursor = asker.ask(asker.ask(before).next)
        assert not cursor.rows
        token = asker.ask(before).next
        ours = conn.ask(wire.extended(asker.text(), [token], max_rows=limit))
        theirs = direct.ask(wire.extended(JOINED.replace("LIMIT 3", "LIMIT 0"), max_rows=limit))
        bare = lambda messages: [(m.kind, m.body) for m in messages if m.kind not in "SN"]
        assert bare(ours) == bare(theirs)
        assert wire.statuses(ours)["pgseek.has_more"] == "on" and wire.statuses(ours)["pgseek.rows"] == "0"


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_portions_are_the_servers(server, proxy, limit):
    """PortalSuspended and CommandComplete come where the original would give them."""
    with proxy.wire() as conn, server.wire() as direct:
        said = []
        for each, text, values in ((conn, f"{OUTER} /* pgseek */", []), (direct, OUTER, [])):
            send = wire.parse(text) + wire.bind(values, portal="p") + b"".join(wire.execute("p", limit) for _ in range(8)) + wire.sync()
            said.append([(m.kind, m.body) for m in each.ask(send) if m.kind not in "SN"])
        assert said[0] == said[1]


def test_columns(server, proxy):
    """Rows of the outside have no cursor of their own; the flag says whether there is a next page."""
    with proxy.wire() as conn:
        first = pages.page_of(conn.ask(wire.query(f"{OUTER} /* pgseek deliver='columns,status' */")))
        assert {row[-2:] for row in first.rows} == {(None, b"t")}
        last = pages.page_of(conn.ask(wire.query(f"{OUTER} /* pgseek deliver='columns,status' page=last */")))
        assert {row[-2:] for row in last.rows} == {(None, b"f")}
