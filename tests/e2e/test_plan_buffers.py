"""What a page costs deep in a large table: blocks touched, as auto_explain tells them."""
import json

import pytest

import pages
import wire

ROWS = 1_000_000
DEEP = 900_000
PAGE = 20
MOST_BUFFERS = 30


@pytest.fixture(scope="module")
def big(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS deep; CREATE UNLOGGED TABLE deep (a int4 NOT NULL, b int4 NOT NULL, id int8 NOT NULL, note text NOT NULL)")
        conn.execute(f"INSERT INTO deep SELECT i % 5, i / 5 % 100, i, 'note' FROM generate_series(1, {ROWS}) i")
        conn.execute("ALTER TABLE deep ADD PRIMARY KEY (id); CREATE INDEX ON deep (a, b, id)")
        conn.execute("VACUUM ANALYZE deep")
        yield conn
        conn.execute("DROP TABLE deep")


@pytest.fixture
def conn(proxy, big):
    with proxy.wire() as conn:
        for sql in ("LOAD 'auto_explain'", "SET auto_explain.log_min_duration = 0", "SET auto_explain.log_analyze = on", "SET auto_explain.log_buffers = on",
                    "SET auto_explain.log_format = json", "SET client_min_messages = log", "SET jit = off", "SET max_parallel_workers_per_gather = 0"):
            answer = conn.ask(wire.query(sql))
            if any(message.kind == "E" for message in answer):
                pytest.skip("this server has no auto_explain")
        yield conn


class Watch:
    """A connection that keeps the plans that auto_explain has told it of."""

    def __init__(self, conn):
        self.conn, self.buffers = conn, []

    def ask(self, *messages, syncs=1):
        answer = self.conn.ask(*messages, syncs=syncs)
        self.buffers = []
        for message in answer:
            text = message.fields()["M"] if message.kind == "N" else ""
            if "plan:" in text and "deep" in text:
                plan = json.loads(text[text.index("{"):])
                if "deep" in plan["Query Text"]:
                    self.buffers.append(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
        return answer


STATEMENTS = {
    "whole index": "SELECT id, note FROM deep ORDER BY a, b, id LIMIT {}", "appended tie-breaker": "SELECT note FROM deep ORDER BY a, b LIMIT {}",
    "primary key": "SELECT note FROM deep ORDER BY id LIMIT {}", "descending": "SELECT a, b, note FROM deep ORDER BY a DESC, b DESC LIMIT {}",
}


@pytest.mark.parametrize("mode", ["simple", "extended", "named"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_deep_page_touches_few_buffers(conn, name, mode):
    sql = STATEMENTS[name].format(PAGE)
    entry = pages.page_of(conn.ask(wire.query(f"{sql} OFFSET {DEEP - PAGE} /* pgseek */")))
    assert entry.has_more and entry.next
    watch = Watch(conn)
    asker = pages.MODES[mode](watch, sql)
    token = entry.next
    for _ in range(8):  # past the fifth run a server may turn to a generic plan
        page = asker.ask(token)
        assert len(page.rows) == PAGE and page.action == "keyset"
        assert watch.buffers and max(watch.buffers) <= MOST_BUFFERS, watch.buffers
        token = page.next
    back = asker.ask(page.prev)
    assert len(back.rows) == PAGE
    assert watch.buffers and max(watch.buffers) <= MOST_BUFFERS, watch.buffers


def test_the_original_touches_many(conn):
    """The measure itself: OFFSET shows what it should."""
    watch = Watch(conn)
    watch.ask(wire.query(f"SELECT note FROM deep ORDER BY a, b, id LIMIT {PAGE} OFFSET {DEEP}"))
    assert watch.buffers and max(watch.buffers) > 10_000
