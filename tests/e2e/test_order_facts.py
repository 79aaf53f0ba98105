"""Facts that change under a walk: NOT NULL and unique indexes that go, types and views that become others.

    PGSEEK_FACTS=400 PGSEEK_SEED=1000 /usr/bin/python3 -m pytest tests/e2e/test_order_facts.py

runs longer. A cursor that was made before is then honoured exactly, in the order that the statement has now, or it is
refused with PS004 or PS005; a page without a cursor is right in any case.
"""
import os
import random

import pytest

import seek
import selects
import test_order_property as property_test
import wire
import worlds
from test_order_property import bench  # noqa: F401 - a fixture

WORLDS = int(os.environ.get("PGSEEK_FACTS", "30"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = 5
STATEMENTS = 12  # of each world
REFUSALS = {"PS004", "PS005"}
MOVING = {"group", "window"}  # whose keys change with the rows


def columns_of(bench, table, condition):
    rows = bench.rows(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped AND {condition} ORDER BY attnum", [])
    return [row[0].decode() for row in rows]


def drop_not_null(bench, rng, table):
    names = [name for name in columns_of(bench, table, "attnotnull") if name not in ("id", "n")]
    if not names:
        return []
    name = rng.choice(names)
    return [f"ALTER TABLE {table} ALTER COLUMN {name} DROP NOT NULL", f"CREATE TABLE copy AS SELECT * FROM {table} LIMIT 1",
            f"UPDATE copy SET {name} = NULL", "UPDATE copy SET id = 'fresh'", f"INSERT INTO {table} SELECT * FROM copy", "DROP TABLE copy"]


def drop_constraint(bench, rng, table):
    found = bench.rows(f"SELECT conname FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype IN ('p', 'u') ORDER BY conname", [])
    if not found:
        return []
    return [f"ALTER TABLE {table} DROP CONSTRAINT {rng.choice(found)[0].decode()}", f"INSERT INTO {table} SELECT * FROM {table} LIMIT 2"]


def add_child(bench, rng, table):
    return [f"CREATE TABLE {table}_late () INHERITS ({table})", f"INSERT INTO {table}_late SELECT * FROM ONLY {table} LIMIT 3"]


def change_type(bench, rng, table):
    names = columns_of(bench, table, "atttypid IN ('int4'::regtype, 'int2'::regtype)")
    return [f"ALTER TABLE {table} ALTER COLUMN {rng.choice(names)} TYPE {rng.choice(['int8', 'numeric'])}"] if names else []


def change_collation(bench, rng, table):
    names = columns_of(bench, table, "atttypid = 'text'::regtype")
    collation = rng.choice(['kinds.de', 'pg_catalog."C"'])
    return [f"ALTER TABLE {table} ALTER COLUMN {rng.choice(names)} TYPE text COLLATE {collation}"] if names else []


def swap_tables(bench, rng, table):
    return [f"ALTER TABLE {table} RENAME TO gone", f"CREATE TABLE {table} AS SELECT * FROM gone", f"INSERT INTO {table} SELECT * FROM gone LIMIT 2"]


def set_not_null(bench, rng, table):
    names = columns_of(bench, table, "NOT attnotnull")
    return [f"UPDATE {table} SET {names[0]} = DEFAULT WHERE false", f"DELETE FROM {table} WHERE {names[0]} IS NULL", f"ALTER TABLE {table} ALTER COLUMN {names[0]} SET NOT NULL"] if names else []


def add_index(bench, rng, table):
    return [f"CREATE UNIQUE INDEX ON {table} (id, n, m)"]


CHANGES = [drop_not_null, drop_constraint, drop_constraint, add_child, change_type, change_collation, swap_tables, set_not_null, add_index]


class Walk:
    """A statement that is rewritten, with every row's cursor from before the change."""

    def __init__(self, bench, select, number):
        self.select, self.number = select, number
        sql, params = select.text()
        self.sql = f"{sql} LIMIT {{}}{select.tail}"
        self.pager = seek.Pager(bench.through, self.sql, params, property_test.mode_of(number))
        page = self.pager.ask()
        self.rows, self.cursors = page.rows, page.cursors
        self.is_rewritten = bool(page.action) and not page.action.startswith("pass") and len(page.rows) <= 60

    def check(self, bench):
        """The rows as they are now, and the old cursors against them."""
        try:
            names = bench.names(self.sql.format(1))
            ranks = property_test.ranked(bench, self.select, names)
        except wire.ServerError:
            return "gone"
        try:
            now = self.pager.ask()
        except wire.ServerError as error:
            if error.sqlstate == "0A000" and "cached plan" in str(error):
                return "gone"  # the client's own statement has another result now
            raise
        seek.check_ranks(now.rows, ranks)
        outcome = "refused"
        for row, cursor in list(zip(self.rows, self.cursors))[:8]:
            try:
                page = self.pager.ask(cursor, 3)
            except wire.ServerError as error:
                if error.sqlstate not in REFUSALS:
                    raise
                continue
            outcome = "honoured"
            places = [i for i, other in enumerate(now.rows) if other == row]
            if places and page.rows not in [now.rows[i + 1:i + 4] for i in places]:
                raise seek.Mismatch(f"after {seek.show([row])} in {seek.show(now.rows, 60)}\n came {seek.show(page.rows)}")
        return outcome


def apply(bench, statements, rng):
    for sql in statements:
        sql = sql.replace("'fresh'", str(rng.randrange(1000, 30000)))
        answer = bench.direct.ask(wire.query(sql))
        if any(message.kind == "E" for message in answer):
            return sql
    return None


def check_world(bench, seed, outcomes):
    rng, world = random.Random(f"facts {seed}"), worlds.World(seed, with_roles=False)
    bench.enter(world)
    walks = []
    for number in range(STATEMENTS):
        select = selects.Generator(world, random.Random(f"facts {seed} {number}")).select()
        try:
            walk = Walk(bench, select, number)
        except wire.ServerError:
            continue
        if walk.is_rewritten and not select.features & MOVING:
            walks.append(walk)
    for _ in range(2):
        change, table = rng.choice(CHANGES), rng.choice(world.tables)
        statements = change(bench, rng, table)
        apply(bench, statements, rng)
        for walk in walks:
            try:
                outcome = walk.check(bench)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            except (seek.Mismatch, wire.ServerError) as error:
                detail = getattr(error, "fields", {}).get("D", "")
                pytest.fail(f"world {seed}, case {walk.number}, {property_test.mode_of(walk.number)}: {error} {detail}\n{walk.sql} {walk.select.text()[1]}\nafter {statements}\n{world.ddl}", pytrace=False)
    bench.leave(world)


def test_another_tie_breaker_is_another_order(bench, proxy):  # noqa: F811
    bench.direct.ask(wire.query("CREATE TABLE public.tied (id int4 NOT NULL, n int4 NOT NULL, m int4 NOT NULL, UNIQUE (id, m), UNIQUE (n, id));"
                                "INSERT INTO public.tied SELECT i, 3, 1 FROM generate_series(1, 6) i"))
    try:
        pager = seek.Pager(bench.through, "SELECT id FROM public.tied ORDER BY id % 1 LIMIT {}")
        first = pager.ask(size=2)
        bench.direct.ask(wire.query("ALTER TABLE public.tied ALTER m DROP NOT NULL"))
        with pytest.raises(wire.ServerError) as refused:
            pager.ask(first.next, 4)
        assert refused.value.sqlstate == "PS004"
        assert len(pager.ask(size=6).rows) == 6
    finally:
        bench.direct.ask(wire.query("DROP TABLE public.tied"))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_old_cursors_are_exact_or_refused(bench, proxy, chunk):  # noqa: F811
    outcomes = {}
    for seed in range(SEED + chunk, SEED + WORLDS, CHUNKS):
        check_world(bench, seed, outcomes)
    print(outcomes)
    assert outcomes.get("honoured")
