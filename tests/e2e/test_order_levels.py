"""Random pages inside a statement: the level with LIMIT stands in a derived table or CTE, and the outside joins,
filters, groups, aggregates and sorts again.

    PGSEEK_LEVELS=5000 PGSEEK_SEED=1000 /usr/bin/python3 -m pytest -s tests/e2e/test_order_levels.py

runs longer. Each page must be what the server gives for the same statement with OFFSET; the level's own order is total.
"""
import collections
import os
import random

import pytest

import pages
import seek
import wire
import worlds
from test_order_property import bench  # noqa: F401 - a fixture

CASES = int(os.environ.get("PGSEEK_LEVELS", "400"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = 5
PER_WORLD = 20
MOST_PAGES = 30

# {i}: the level with LIMIT. {t}: another relation. {o}: an ORDER BY of the outside, total or none.
OUTSIDES = {
    "left join": "SELECT q.*, y.id AS yid, y.n AS yn FROM ({i}) q LEFT JOIN {t} y ON y.n = q.m{o}",
    "join that drops": "SELECT q.id, y.id AS yid FROM ({i}) q JOIN {t} y ON y.m = q.n{o}",
    "filter": "SELECT q.* FROM ({i}) q WHERE q.n > 0{p}",
    "cte": "WITH q AS ({i}) SELECT q.id, q.m, (SELECT count(*) FROM {t} y WHERE y.n = q.n) AS c FROM q{p}",
    "cte joined twice": "WITH q AS ({i}) SELECT a.id, b.id FROM q a JOIN q b ON a.n = b.n ORDER BY a.id, b.id",
    "other cte": "WITH z AS (SELECT id, n FROM {t}), q AS ({i}) SELECT q.id, z.id FROM q LEFT JOIN z ON z.n = q.m ORDER BY q.id DESC, z.id",
    "aggregate": "SELECT count(*), coalesce(sum(q.n), 0), array_agg(q.id) FROM ({i}) q",
    "json": "SELECT coalesce(json_agg(q), '[]') FROM ({i}) q",
    "json rows": "SELECT coalesce(json_agg(row_to_json(q)), '[]') AS rows, count(q) AS n FROM (SELECT * FROM ({i}) z) q",
    "group by": "SELECT q.n, count(*), min(q.m) FROM ({i}) q GROUP BY q.n ORDER BY q.n NULLS FIRST",
    "distinct": "SELECT DISTINCT q.n, q.m FROM ({i}) q ORDER BY q.m DESC, q.n",
    "two levels out": "SELECT * FROM (SELECT r.id, r.n AS x FROM (SELECT q.* FROM ({i}) q) r WHERE r.m IS NOT NULL OR r.id > 0) s{s}",
    "bare": "SELECT * FROM ({i}) q{p}",
    "star and names": "SELECT q.n AS id, q.id AS n, q.* FROM ({i}) AS q{p}",
    "window outside": "SELECT q.id, row_number() OVER (ORDER BY q.id), count(*) OVER () FROM ({i}) q ORDER BY q.id",
    "in parentheses": "SELECT y.id, q.id FROM {t} y RIGHT JOIN (({i})) q ON y.n = q.n AND y.m = q.m{o}",
    "lateral outside": "SELECT q.id, l.id FROM ({i}) q LEFT JOIN LATERAL (SELECT y.id FROM {t} y WHERE y.n = q.n) l ON true ORDER BY q.id, l.id",
}
TOTAL = {"{o}": [" ORDER BY q.id, y.id", " ORDER BY y.id DESC NULLS LAST, q.id", " ORDER BY q.n, q.id DESC, y.id NULLS FIRST"],
         "{p}": [" ORDER BY q.id", " ORDER BY q.m DESC NULLS LAST, q.id DESC", ""], "{s}": [" ORDER BY s.id DESC", ""]}


class KeyedWorld(worlds.JoinWorld):
    """Every table has id as its primary key and more rows."""

    def table(self, number):
        rng, name = self.rng, f"t{number}"
        rows = ", ".join(f"({i}, {rng.choice(['NULL', 0, 1, 2])}, {rng.choice(['NULL', 0, 1, 2])}, '{rng.choice('abAB')}')" for i in rng.sample(range(1, 30), rng.choice([0, 1, 4, 9, 13])))
        self.tables.append(name)
        strict = rng.choice(["", " NOT NULL"])
        rows = rows.replace("NULL", "0") if strict else rows
        return f"CREATE TABLE {name} (id int4 PRIMARY KEY, n int4{strict}, m int4{strict}, s text COLLATE \"C\" NOT NULL);" + (f"INSERT INTO {name} VALUES {rows};" if rows else "")

    def views(self, rng):
        return []


class Nested:
    """One statement: `sql` has {} for what follows the level's ORDER BY."""

    def __init__(self, rng):
        self.outside = rng.choice(list(OUTSIDES))
        self.params = []
        text = OUTSIDES[self.outside]
        for place, choices in TOTAL.items():
            text = text.replace(place, rng.choice(choices))
        self.has_order = " ORDER BY" in text or self.outside in ("aggregate", "json", "json rows")
        self.sql = text.replace("{t}", f"t{rng.randrange(1, 5)}").replace("{i}", self.inside(rng))

    def inside(self, rng):
        table = f"t{rng.randrange(1, 5)}"
        columns = rng.choice(["x.id, x.n, x.m", "x.*", "x.m, x.id, x.n, x.s", "x.id, x.n, x.m, upper(x.s) AS n2", "x.id, x.n + 0 AS n, x.m"])
        keys = [rng.choice(["x.n", "x.m", "x.s", "lower(x.s)", "x.n % 2", "coalesce(x.m, 5)"]) + rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]) for _ in range(rng.choice([0, 1, 1, 2]))]
        where = ""
        if rng.random() < 0.4:
            self.params.append(rng.randrange(2))
            where = rng.choice([" WHERE x.id > $1", " WHERE x.n >= $1", " WHERE (x.m = $1 OR x.id > 3)"])
        elif rng.random() < 0.2:
            where = " WHERE EXISTS (SELECT FROM t1 e WHERE e.n = x.n)"
        return f"SELECT {columns} FROM {table} x{where} ORDER BY {', '.join(keys + ['x.id' + rng.choice(['', ' DESC'])])} {{}}"

    def page(self, size, offset=0):
        return self.sql.format(f"LIMIT {size}" + (f" OFFSET {offset}" if offset else ""))


def rows_of(conn, sql, params):
    return [tuple(row) for row in conn.rows(wire.parse(sql), wire.bind(params), wire.execute(), wire.sync())]


def same(nested, came, due):
    return came == due if nested.has_order else sorted(came, key=seek.sort_key) == sorted(due, key=seek.sort_key)


def check(bench, nested, size, mode):
    """What became of it, or an AssertionError."""
    asker = pages.MODES[mode](bench.through, nested.page(size), nested.params)
    asker.result = wire.TEXT
    first = asker.ask()
    if not first.action or first.action.startswith("pass"):
        assert same(nested, first.rows, rows_of(bench.direct, nested.page(size), nested.params)), "passed, and other rows"
        return first.action or "no action"
    there = [first]
    while there[-1].has_more:
        assert there[-1].next and len(there) < MOST_PAGES, "no end"
        there.append(asker.ask(there[-1].next))
    for number, page in enumerate(there):
        due = rows_of(bench.direct, nested.page(size, number * size), nested.params)
        assert same(nested, page.rows, due), f"page {number + 1} of {len(there)}, size {size}: expected {seek.show(due)}\n   came {seek.show(page.rows)}"
        assert page.has_prev == (number > 0), f"page {number + 1}: has_prev {page.has_prev}"
    beyond = rows_of(bench.direct, nested.page(size, len(there) * size), nested.params)
    empty = rows_of(bench.direct, nested.page(0), nested.params)
    assert same(nested, beyond, empty), f"{len(there)} pages came, and there are more rows: {seek.show(beyond)}"
    cursor = there[-1].prev
    for number in range(len(there) - 2, -1, -1):
        assert cursor, f"no prev cursor before page {number + 2}"
        page = asker.ask(cursor)
        assert same(nested, page.rows, there[number].rows), f"back to page {number + 1}, size {size}: expected {seek.show(there[number].rows)}\n   came {seek.show(page.rows)}"
        assert page.has_prev == (number > 0) and page.has_more, f"back to page {number + 1}: has_prev {page.has_prev}, has_more {page.has_more}"
        again = asker.ask(page.next)
        assert same(nested, again.rows, there[number + 1].rows), f"on again from page {number + 1}: expected {seek.show(there[number + 1].rows)}\n   came {seek.show(again.rows)}"
        cursor = page.prev
    return "rewritten"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_pages_inside_a_statement(bench, proxy, chunk):  # noqa: F811
    outcomes = collections.Counter()
    for seed in range(SEED + chunk, SEED + max(CASES // PER_WORLD, CHUNKS), CHUNKS):
        world = KeyedWorld(seed, with_roles=False)
        bench.enter(world)
        for number in range(PER_WORLD):
            rng = random.Random(f"level {seed} {number}")
            nested, size, mode = Nested(rng), rng.choice([1, 2, 3, 7]), rng.choice(["simple", "extended", "named"])
            try:
                outcomes[check(bench, nested, size, mode)] += 1
            except (AssertionError, wire.ServerError) as error:
                text = f"world {seed}, case {number}, {nested.outside}, {mode}: {error} {getattr(error, 'fields', {}).get('D', '')}\n{nested.page(size)}\n{nested.params}\n{world.ddl}"
                bench.leave(world)
                pytest.fail(text, pytrace=False)
        bench.leave(world)
    print(dict(outcomes))
    assert outcomes["rewritten"]
