"""Walks in every order form while others write: rows that stand for the whole walk come exactly once, in their order.

    PGSEEK_CHURN_SECONDS=60 /usr/bin/python3 -m pytest tests/e2e/test_order_churn.py -k by_the_clock

lets the writers run beside the walks instead of between their pages. Rows with an id below 1,000 stand; the writers
insert, change and delete others among them, and update columns of all rows that are not in any key.
"""
import os
import random
import threading
import time
from typing import NamedTuple

import pytest

import pages
import seek
import wire

SECONDS = int(os.environ.get("PGSEEK_CHURN_SECONDS", "0"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
STANDING = 60
OPERATIONS = 4  # between two pages
MOST = 40  # rows of the writers, so that every walk ends

SCHEMA = f"""
DROP SCHEMA IF EXISTS churn CASCADE;
CREATE SCHEMA churn;
CREATE TABLE churn.t (id int4 PRIMARY KEY, a int4 NOT NULL, n int4, s text COLLATE "C", at timestamptz NOT NULL, note text NOT NULL);
CREATE INDEX ON churn.t (a, n, id);
CREATE TABLE churn.child (id int4 PRIMARY KEY, t int4 NOT NULL, b int4, note text NOT NULL);
CREATE TABLE churn.part (LIKE churn.t, PRIMARY KEY (a, id)) PARTITION BY LIST (a);
CREATE TABLE churn.part0 PARTITION OF churn.part FOR VALUES IN (0);
CREATE TABLE churn.part1 PARTITION OF churn.part DEFAULT;
CREATE VIEW churn.v AS SELECT id, a, n FROM churn.t WHERE a < 9;
INSERT INTO churn.t SELECT i * 7 % 61, i % 3, nullif(i % 4, 0), (ARRAY['x', 'y', NULL])[1 + i % 3], timestamptz '2026-01-01' + i % 5 * interval '1 s', 'note' FROM generate_series(1, {STANDING}) i;
INSERT INTO churn.part SELECT * FROM churn.t;
INSERT INTO churn.child SELECT i, i % 61, nullif(i % 3, 0), 'note' FROM generate_series(1, 50) i WHERE i % 61 > 0;
"""


class Form(NamedTuple):
    """A statement whose first `identity` columns tell its rows apart, and ORDER BY apart from it."""
    core: str
    order: str
    identity: int = 1
    tail: str = ""


FORMS = {
    "plain": Form("SELECT id, note FROM churn.t", "a"),
    "mixed": Form("SELECT id, note FROM churn.t", "a, at DESC, id"),
    "mixed, last": Form("SELECT id FROM churn.t", "at DESC, id"),
    "nulls last": Form("SELECT id FROM churn.t", "n, id"),
    "nulls first": Form("SELECT id, n FROM churn.t", "n NULLS FIRST, a DESC"),
    "nulls in the middle": Form("SELECT id FROM churn.t", "a DESC, n DESC NULLS LAST, s NULLS FIRST"),
    "all nullable": Form("SELECT id FROM churn.t", "s DESC NULLS LAST, n NULLS FIRST"),
    "expression": Form("SELECT id, note FROM churn.t", "a % 2, coalesce(s, 'z') DESC"),
    "alias": Form("SELECT id, n AS a, -a AS n FROM churn.t", "n, a NULLS FIRST"),
    "collate": Form("SELECT id FROM churn.t", 's COLLATE "POSIX" DESC'),
    "locking": Form("SELECT id FROM churn.t", "a, n DESC, id", 1, " FOR NO KEY UPDATE"),
    "join": Form("SELECT t.id, c.id, c.note FROM churn.t t JOIN churn.child c ON c.t = t.id", "t.a, c.b DESC", 2),
    "left join": Form("SELECT t.id, c.id, t.note FROM churn.t t LEFT JOIN churn.child c ON c.t = t.id", "c.b NULLS FIRST, t.n", 2),
    "derived table": Form("SELECT q.id FROM (SELECT id, a, n FROM churn.t WHERE a < 7) q", "q.n DESC, q.a"),
    "with": Form("WITH q AS (SELECT id, a, n FROM churn.t) SELECT q.id FROM q", "q.n, q.a DESC"),
    "view": Form("SELECT id FROM churn.v", "n DESC, a"),
    "group by": Form("SELECT a, n, count(*) FROM churn.t GROUP BY a, n", "n DESC, a", 2),
    "distinct": Form("SELECT DISTINCT n, s FROM churn.t", "s, n DESC", 2),
    "union": Form("SELECT id, n FROM churn.t UNION SELECT id, n FROM churn.part", "n, id DESC", 2),
    "partitioned": Form("SELECT id, note FROM churn.part", "a DESC, n, id", 1),
}


class Writer:
    """Another client. Its rows have ids of their own; it never changes a key of a standing row."""

    def __init__(self, conn, seed, number=0):
        self.conn, self.rng, self.mine = conn, random.Random(f"writer {seed}"), []
        self.next = 1_000 + number * 1_000_000

    def step(self):
        draw = self.rng.random()
        if draw < 0.45 and len(self.mine) < MOST:
            self.insert()
        elif draw < 0.6 and self.mine:
            self.delete(self.mine.pop(self.rng.randrange(len(self.mine))))
        elif draw < 0.75 and self.mine:
            self.move(self.rng.choice(self.mine))
        else:
            table = self.rng.choice(["churn.t", "churn.child", "churn.part"])
            self.conn.execute(f"UPDATE {table} SET note = 'changed ' || id WHERE id % 7 = {self.rng.randrange(7)}")

    def keys(self):
        rng = self.rng
        values = [rng.randrange(4), rng.choice(["NULL", "1", "2", "3", "9"]), rng.choice(["NULL", "'x'", "'y'", "'z'"]), f"timestamptz '2026-01-01' + {rng.randrange(6)} * interval '1 s'"]
        return ", ".join(map(str, values))

    def insert(self):
        self.next += 1
        keys = self.keys()
        self.conn.execute(f"INSERT INTO churn.t VALUES ({self.next}, {keys}, 'new'); INSERT INTO churn.part VALUES ({self.next}, {keys}, 'new');"
                          f"INSERT INTO churn.child VALUES ({self.next}, {self.next}, {self.rng.choice(['NULL', '1', '2'])}, 'new')")
        self.mine.append(self.next)

    def delete(self, row):
        self.conn.execute("; ".join(f"DELETE FROM churn.{table} WHERE id = {row}" for table in ("t", "part", "child")))

    def move(self, row):
        """A row that does not stand changes all its keys; for the reader it becomes another row."""
        self.mine.remove(row)
        self.delete(row)
        self.insert()


@pytest.fixture
def writer(server):
    with server.connect() as conn:
        conn.execute("SET client_min_messages = warning; " + SCHEMA)
        yield Writer(conn, SEED)
        conn.execute("DROP SCHEMA churn CASCADE")


@pytest.fixture
def through(proxy):
    with proxy.wire() as conn:
        yield conn


def standing(server, form):
    """The rows that stand, by their ranks: asked for while there are no others."""
    with server.wire() as direct:
        grouped = "GROUP" in form.core or "DISTINCT" in form.core or "UNION" in form.core or "AS a" in form.core
        sql = f"SELECT q.*, rank() OVER (ORDER BY {form.order}) FROM ({form.core}) q" if grouped else form.core.replace(" FROM", f", rank() OVER (ORDER BY {form.order}) FROM", 1)
        if form.core.startswith("WITH"):
            head, rest = form.core.split(") SELECT ")
            sql = f"{head}) SELECT " + rest.replace(" FROM", f", rank() OVER (ORDER BY {form.order}) FROM", 1)
        if "(SELECT id, a, n" in form.core and not form.core.startswith("WITH"):
            sql = f"SELECT q.id, rank() OVER (ORDER BY {form.order}) FROM" + form.core.split(" FROM", 1)[1]
        return seek.ranks_of([(*row[:form.identity], row[-1]) for row in direct.rows(wire.query(sql))])


def expect_exactly_once(pages_seen, form, ranks, what):
    came = [row[:form.identity] for page in pages_seen for row in page.rows]
    twice = [row for row in set(came) if came.count(row) > 1]
    assert not twice, f"{what}, repeated: {seek.show(twice)}"
    known = {row for group in ranks.values() for row in group}
    seek.check_ranks([row for row in came if row in known], ranks)


def walk_both_ways(asker, form, ranks, between):
    first = asker.ask()
    assert first.action == "first"
    there = pages.forward(asker, between=between)
    expect_exactly_once(there, form, ranks, "forward")
    back, cursor = [], there[-1].prev
    for _ in range(10_000):
        if not cursor:
            break
        between(None)
        back.insert(0, asker.ask(cursor))
        cursor = back[0].prev
    expect_exactly_once([*back, there[-1]], form, ranks, "backward")


MODES = ["simple", "extended", "named"]


def asker_of(through, mode, form, size):
    asker = pages.MODES[mode](through, f"{form.core} ORDER BY {form.order} LIMIT {size}{form.tail}")
    asker.result = wire.TEXT
    return asker


@pytest.mark.parametrize("name", FORMS)
def test_rows_that_stand_come_exactly_once(server, writer, through, name):
    form = FORMS[name]
    ranks = standing(server, form)
    for round_, size in enumerate((2, 3, 7)):
        asker = asker_of(through, MODES[round_], form, size)
        try:
            walk_both_ways(asker, form, ranks, lambda page: [writer.step() for _ in range(OPERATIONS)])
        except wire.ServerError as error:
            pytest.fail(f"{form} {error} {error.fields.get('D')}", pytrace=False)


@pytest.mark.skipif(not SECONDS, reason="PGSEEK_CHURN_SECONDS is not set")
def test_walks_beside_writers_by_the_clock(server, writer, through):
    ranks = {name: standing(server, form) for name, form in FORMS.items()}
    stop, faults = threading.Event(), []

    def write(number):
        try:
            with server.connect() as conn:
                own = Writer(conn, f"{SEED} {number}", number)
                while not stop.is_set():
                    own.step()
        except Exception as error:  # noqa: BLE001 - told by the main thread
            faults.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    walks, end = 0, time.monotonic() + SECONDS
    try:
        while time.monotonic() < end and not faults:
            for name, form in FORMS.items():
                asker = asker_of(through, MODES[walks % 3], form, 2 + walks % 5)
                walk_both_ways(asker, form, ranks[name], lambda page: None)
                walks += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults
    print(f"{walks} walks")


# ---- keys that change: the table of docs/CONSISTENCY.md ----------------------------------------------------------------

MOVES = {"ascending": ("score, id", 1), "descending": ("score DESC, id", -1), "nulls first": ("score NULLS FIRST, id DESC", 1), "after another key": ("grp, score DESC NULLS LAST, id", -1)}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("change, count", [("ahead to ahead", 1), ("behind to behind", 1), ("ahead to behind", 0), ("behind to ahead", 2), ("filtered out ahead", 0), ("filtered in ahead", 1)])
def test_a_key_that_changes(server, writer, through, name, change, count):
    """Row 5 of 9 or row 1 of 9 moves after the first page of three."""
    order, sign = MOVES[name]
    conn = writer.conn
    conn.execute("CREATE TABLE churn.moving (id int4 PRIMARY KEY, grp int4 NOT NULL, score int4, shown bool NOT NULL)")
    conn.execute("INSERT INTO churn.moving SELECT i, 0, %s * i * 10, true FROM generate_series(1, 9) i", [sign])
    row, to = {"ahead to ahead": (8, 45), "behind to behind": (1, 15), "ahead to behind": (8, 15), "behind to ahead": (1, 85)}.get(change, (8, 80))
    if change == "filtered in ahead":
        conn.execute("UPDATE churn.moving SET shown = false WHERE id = 8")
    asker = pages.Extended(through, f"SELECT id FROM churn.moving WHERE shown ORDER BY {order} LIMIT 3")

    def move(page):
        if page.rows[0] == (b"1",) and not page.has_prev:
            conn.execute("UPDATE churn.moving SET score = %s, shown = %s WHERE id = %s", [sign * to, change != "filtered out ahead", row])

    first = asker.ask()
    assert first.action == "first"
    came = [int(value) for value, in pages.rows_of(pages.forward(asker, between=move))]
    assert came.count(row) == count
    others = [value for value in came if value != row]
    assert others == [value for value in range(1, 10) if value != row]
