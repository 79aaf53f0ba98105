"""FOR UPDATE: the page waits for a lock, and the row that it waited for comes back with another key.

READ COMMITTED gives the row as it is after the wait, in the place that it had before. The cursor has to lead on from
that place: by the new key it would leave out rows that stood all the time, or bring some again.
"""
import threading

import cluster
import pytest

import pages
import wire

SQL = "SELECT id, k FROM locked ORDER BY k, id LIMIT 3 FOR UPDATE"
SPELLINGS = {
    "names": SQL,
    "star": "SELECT * FROM locked ORDER BY k, id LIMIT 3 FOR UPDATE",
    "qualified, a condition": "SELECT locked.* FROM locked WHERE k > 0 ORDER BY 2, 1 LIMIT 3 FOR NO KEY UPDATE",
    "a join, an expression": "SELECT l.id, l.k FROM locked l JOIN locked_too USING (id) WHERE id > 0 ORDER BY l.k + 0, id LIMIT 3 FOR UPDATE OF l",
    "an item twice": "SELECT id, k FROM locked ORDER BY k, k, id LIMIT 3 FOR UPDATE",
    "downwards": "SELECT id, -k AS k FROM locked ORDER BY -k DESC, id LIMIT 3 FOR SHARE",
}
CHANGES = {
    "in the middle, upwards": (2, 995),
    "in the middle, downwards": (2, 1),
    "the last row, upwards": (3, 995),
    "the last row, downwards": (3, 1),
    "the first row, upwards": (1, 995),
}


@pytest.fixture(autouse=True)
def table(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS locked; CREATE TABLE locked (id int8 PRIMARY KEY, k int4 NOT NULL); CREATE INDEX ON locked (k, id)")
        conn.execute("INSERT INTO locked SELECT i, i * 10 FROM generate_series(1, 9) i")
        conn.execute("DROP TABLE IF EXISTS locked_too; CREATE TABLE locked_too (id int8 PRIMARY KEY); INSERT INTO locked_too SELECT generate_series(1, 9)")
    yield


def wait_for_the_lock(server):
    with server.connect() as conn:
        cluster.wait_until(lambda: conn.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None, "the page does not wait")


def page_behind_a_lock(server, conn, row, key, sql=SQL):
    """The first page, while another session holds the row and gives it another key."""
    got = []
    with server.connect() as holder, holder.transaction():
        holder.execute("UPDATE locked SET k = %s WHERE id = %s", [key, row])
        reader = threading.Thread(target=lambda: got.append(pages.Extended(conn, sql).ask()))
        reader.start()
        wait_for_the_lock(server)
    reader.join()
    return got[0]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_key_that_changes_during_the_wait(server, proxy, change, spelling):
    row, key = CHANGES[change]
    sql = SPELLINGS[spelling]
    with proxy.wire() as conn:
        first = page_behind_a_lock(server, conn, row, key, sql)
        assert [int(r[0]) for r in first.rows] == [1, 2, 3], "as the server gives them"
        assert first.rows[row - 1][1].lstrip(b"-") == str(key).encode(), "and as they are after the wait"
        assert first.action == "first" and [c.name for c in first.columns] == ["id", "k"]
        asker = pages.Extended(conn, sql)
        walk = pages.forward(asker, after=first.next)
        seen = [int(r[0]) for r in pages.rows_of(walk)]
        stood = list(range(4, 10))
        assert [i for i in seen if i in stood] == stood, "no row that stood is left out, and none comes twice"
        assert set(seen) - set(stood) <= ({row} if key > 30 else set()), "only the row that moved ahead comes again"
        back = asker.ask(walk[-1].prev) if len(walk) > 1 else walk[0]
        assert [r[0] for r in back.rows] == [r[0] for r in walk[-2].rows]


def test_the_page_is_a_seek(server, proxy):
    """The keys that are kept apart do not keep the server from its index."""
    with server.connect() as admin, proxy.wire() as conn:
        admin.execute("INSERT INTO locked SELECT i, i * 10 FROM generate_series(10, 20000) i; ANALYZE locked")
        token = pages.Extended(conn, SQL.replace("LIMIT 3", "LIMIT 3 OFFSET 15000")).ask().next
        plan = [row[0].decode() for row in conn.rows(wire.query(f"EXPLAIN {SQL} {pages.cursor_comment(token)}"))]
        assert any("Index Cond" in line for line in plan), plan
        assert not any("Sort" in line for line in plan), plan
