"""What a page costs deep in a large table: blocks touched, as auto_explain tells them.

Each order has a figure: the blocks that the best known form of its predicate touches. A page may touch twice as many,
at any depth, both ways, and also when the server has turned to a generic plan.
"""
import json
from typing import NamedTuple

import pytest

import pages
import wire

ROWS = 1_000_000
PAGE = 20
SHALLOW, DEEP = 1_000, 900_000
PAGES = 8  # past the fifth run a server may turn to a generic plan
WITH_NULLS = 600_000  # as deep as non-NULL values of n go

SCHEMA = f"""
CREATE SCHEMA deep;
CREATE UNLOGGED TABLE deep.t (a int4 NOT NULL, b int4 NOT NULL, n int4, id int8 NOT NULL, name text NOT NULL);
INSERT INTO deep.t SELECT i % 5, i / 5 % 100, CASE WHEN i % 10 < 7 THEN i / 10 % 200 END, i, 'Name ' || i % 1000 FROM generate_series(1, {ROWS}) i;
ALTER TABLE deep.t ADD PRIMARY KEY (id);
CREATE INDEX ON deep.t (a, b, id);
CREATE INDEX ON deep.t (a, b DESC, id);
CREATE INDEX ON deep.t (a, b, id DESC);
CREATE INDEX ON deep.t (n, id);
CREATE INDEX ON deep.t (n NULLS FIRST, id);
CREATE INDEX ON deep.t (a, n DESC NULLS LAST, id);
CREATE INDEX ON deep.t (lower(name), id);
CREATE UNLOGGED TABLE deep.child (id int8 NOT NULL, t int8 NOT NULL);
INSERT INTO deep.child SELECT i, i FROM generate_series(1, {ROWS}) i;
ALTER TABLE deep.child ADD PRIMARY KEY (id);
CREATE INDEX ON deep.child (t, id);
CREATE TABLE deep.part (day int4 NOT NULL, id int8 NOT NULL) PARTITION BY RANGE (day);
DO $$ BEGIN FOR i IN 0..9 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE deep.part%s PARTITION OF deep.part FOR VALUES FROM (%s) TO (%s)', i, i * 10, i * 10 + 10);
END LOOP; END $$;
INSERT INTO deep.part SELECT i / 10000, i FROM generate_series(1, {ROWS} - 1) i;
ALTER TABLE deep.part ADD PRIMARY KEY (day, id);
"""


class Form(NamedTuple):
    sql: str
    figure: int
    depths: tuple = (SHALLOW, DEEP)
    back: int = 0  # the figure of a backward page, where it is another one


FORMS = {
    "one direction": Form("SELECT id, name FROM deep.t ORDER BY a, b, id LIMIT {}", 23),
    "appended tie-breaker": Form("SELECT name FROM deep.t ORDER BY a, b LIMIT {}", 23),
    "primary key": Form("SELECT name FROM deep.t ORDER BY id LIMIT {}", 23),
    "descending": Form("SELECT a, b, name FROM deep.t ORDER BY a DESC, b DESC LIMIT {}", 23),
    "filter": Form("SELECT name FROM deep.t WHERE a = 3 ORDER BY b, id LIMIT {}", 23, (SHALLOW, 190_000)),
    "explicit NULLS of a NOT NULL key": Form("SELECT name FROM deep.t ORDER BY a DESC NULLS LAST, b DESC NULLS LAST, id DESC LIMIT {}", 23),
    "mixed, second key": Form("SELECT id FROM deep.t ORDER BY a, b DESC, id LIMIT {}", 51),
    "mixed, last key": Form("SELECT id FROM deep.t ORDER BY a, b, id DESC LIMIT {}", 29),
    "nullable, value": Form("SELECT name FROM deep.t ORDER BY n, id LIMIT {}", 27, (SHALLOW, WITH_NULLS)),
    "nullable, NULL": Form("SELECT name FROM deep.t ORDER BY n, id LIMIT {}", 8, (DEEP,), 11),
    "NULLS FIRST, value": Form("SELECT name FROM deep.t ORDER BY n NULLS FIRST, id LIMIT {}", 24, (DEEP,), 27),
    "NULLS FIRST, NULL": Form("SELECT name FROM deep.t ORDER BY n NULLS FIRST, id LIMIT {}", 12, (SHALLOW,)),
    "nullable between": Form("SELECT name FROM deep.t ORDER BY a, n DESC NULLS LAST, id LIMIT {}", 60),
    "expression": Form("SELECT id FROM deep.t ORDER BY lower(name), id LIMIT {}", 24),
    "locked": Form("SELECT id FROM deep.t ORDER BY a, b, id DESC LIMIT {} FOR SHARE", 1_877),
    "two relations": Form("SELECT t.id, c.id FROM deep.t JOIN deep.child c ON c.t = t.id ORDER BY t.a, t.b, t.id, c.id LIMIT {}", 222),
    "two relations, outer": Form("SELECT t.id, c.id FROM deep.t LEFT JOIN deep.child c ON c.t = t.id ORDER BY t.a, t.b, t.id, c.id LIMIT {}", 222),
    "group by": Form("SELECT t, count(*) FROM deep.child GROUP BY t ORDER BY t LIMIT {}", 53),
    "group by, descending": Form("SELECT t, count(*) FROM deep.child GROUP BY t ORDER BY t DESC LIMIT {}", 53),
    "distinct": Form("SELECT DISTINCT a, b, id FROM deep.t ORDER BY a, b, id LIMIT {}", 53),
    "derived table": Form("SELECT q.id FROM (SELECT a, b, id FROM deep.t WHERE id > 0) q ORDER BY q.a, q.b, q.id LIMIT {}", 23),
    "partitions": Form("SELECT id FROM deep.part ORDER BY day, id LIMIT {}", 32),
}


@pytest.fixture(scope="module")
def big(server):
    with server.connect() as conn:
        conn.execute("DROP SCHEMA IF EXISTS deep CASCADE")
        conn.execute(SCHEMA)
        conn.execute("VACUUM ANALYZE deep.t, deep.child, deep.part")
        yield conn
        conn.execute("DROP SCHEMA deep CASCADE")


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
        self.conn, self.buffers, self.last = conn, [], ""

    def ask(self, *messages, syncs=1):
        answer = self.conn.ask(*messages, syncs=syncs)
        self.buffers = []
        for message in answer:
            text = message.fields()["M"] if message.kind == "N" else ""
            if "plan:" in text and "deep" in text:
                plan = json.loads(text[text.index("{"):])
                if "deep" in plan["Query Text"]:
                    self.buffers.append(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
                    self.last = plan["Query Text"]
        return answer


@pytest.fixture(scope="module")
def entries():
    """The cursors at each statement's depths: costly to come by, and the same in every mode."""
    return {}


def entry(conn, entries, sql, depth):
    """The cursor of a page that ends at this depth, fetched by OFFSET."""
    if (sql, depth) in entries:
        return entries[sql, depth]
    page = pages.page_of(conn.ask(wire.query(f"{sql.format(f'{PAGE} OFFSET {depth - PAGE}')} /* pgseek */")))
    assert page.has_more and page.next, page.action
    return entries.setdefault((sql, depth), page.next)


def expect_few(watch, page, most):
    assert len(page.rows) == PAGE and page.action == "keyset"
    assert watch.buffers and max(watch.buffers) <= most, f"{watch.buffers}, at most {most}: {watch.last}"


@pytest.mark.parametrize("mode", ["simple", "extended", "named"])
@pytest.mark.parametrize("name", FORMS)
def test_a_page_touches_few_buffers_at_any_depth(conn, entries, name, mode):
    form = FORMS[name]
    for depth in form.depths:
        token = entry(conn, entries, form.sql, depth)
        watch = Watch(conn)
        asker = pages.MODES[mode](watch, form.sql.format(PAGE))
        for _ in range(PAGES):
            page = asker.ask(token)
            expect_few(watch, page, 2 * form.figure)
            token = page.next
        token = page.prev
        for _ in range(PAGES - 1):
            page = asker.ask(token)
            expect_few(watch, page, 2 * (form.back or form.figure))
            token = page.prev


def test_the_original_touches_many(conn):
    """The measure itself: OFFSET shows what it should."""
    watch = Watch(conn)
    watch.ask(wire.query(f"SELECT name FROM deep.t ORDER BY a, b, id LIMIT {PAGE} OFFSET {DEEP}"))
    assert watch.buffers and max(watch.buffers) > 10_000
