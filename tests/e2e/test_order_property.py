"""The property: any statement over any schema is either walked exactly, or passed with a reason and its own rows.

    PGSEEK_PROPERTY=100000 PGSEEK_SEED=5000 /usr/bin/python3 -m pytest -s tests/e2e/test_order_property.py

runs longer. The server itself says what is right: the whole result, with rank() over the meaning of ORDER BY. A failing
statement is made smaller while it still fails; the report names world and case, which are seeds.
"""
import collections
import copy
import os
import random
import re
import time

import pytest

import seek
import selects
import wire
import worlds

CASES = int(os.environ.get("PGSEEK_PROPERTY", "1200"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = int(os.environ.get("PGSEEK_CHUNKS", "10"))
PER_WORLD = 40
MOST_ROWS = 250
BOUNDARIES = 6
JOIN_BOUNDARIES = 20
SIZES = [1, 2, 3, 7]
SHRINK_SECONDS = 40
MODES = ["simple", "unnamed", "unnamed", "named", "named", "named", "named", "named"]  # by what they cost


class Skip(Exception):
    """Nothing can be said about this statement."""


class Fault(AssertionError):
    """pgseek is wrong. `kind` stays the same while the statement is made smaller."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Bench:
    """Both ways to the server, set to one world after the other."""

    def __init__(self, direct, through):
        self.direct, self.through = direct, through

    def enter(self, world):
        for message in self.direct.ask(wire.query(world.ddl + " ANALYZE;")):
            if message.kind == "E":
                raise wire.ServerError(message)
        self.adjust(self.direct, world, world.settings)
        self.adjust(self.through, world, world.settings + world.plans)

    @staticmethod
    def adjust(conn, world, settings):
        for setting in ["RESET ROLE", "RESET ALL", "SET jit = off", f"SET search_path = {world.schema}, public", *settings] + [f"SET ROLE {world.role}"] * bool(world.role):
            for message in conn.ask(wire.query(setting)):
                if message.kind == "E":
                    raise wire.ServerError(message)

    def leave(self, world):
        for sql in ("RESET ROLE", "RESET ALL", "SET client_min_messages = error", world.drop()):
            self.direct.ask(wire.query(sql))

    def rows(self, sql, params):
        return self.direct.rows(wire.parse(sql), wire.bind(params), wire.execute(), wire.sync())

    def names(self, sql):
        """The output columns' names."""
        for message in self.direct.ask(wire.parse(sql), wire.describe("S"), wire.sync()):
            if message.kind == "E":
                raise wire.ServerError(message)
            if message.kind == "T":
                return [column.name for column in message.columns()]
        return []


def meaning(select, names):
    """ORDER BY's items as output positions, or as expressions over the input."""
    meant = []
    for item in select.order:
        if item.kind == "position":
            meant.append((item.position or int(item.text), None, item.tail))
        elif item.kind == "name" and item.text in names:
            meant.append((names.index(item.text) + 1, None, item.tail))
        else:
            meant.append((None, item.text, item.tail))
    return meant


def ranked(bench, select, names):
    """The whole result by ranks, from the server."""
    meant = meaning(select, names)
    hidden = [expr for _, expr, _ in meant if expr]
    inner, params = select.text([f"{expr} AS e{i}" for i, expr in enumerate(hidden)], order="ON" in select.distinct)
    numbers = iter(range(len(hidden)))
    order = [(f"q.c{position}" if position else f"q.e{next(numbers)}") + tail for position, _, tail in meant]
    columns = [f"c{i + 1}" for i in range(len(names))] + [f"e{i}" for i in range(len(hidden))]
    rows = bench.rows(f"SELECT q.*, rank() OVER (ORDER BY {', '.join(order)}) FROM ({inner}) q({', '.join(columns)})", params)
    return seek.ranks_of([(*row[:len(names)], row[-1]) for row in rows])


def expect_server_error(bench, select, error):
    """What the server refuses it refuses through pgseek as well, with the same code."""
    sql, params = select.text()
    try:
        seek.Pager(bench.through, f"{sql} LIMIT {{}}{select.tail}", params, "unnamed").ask()
    except wire.ServerError as refused:
        if refused.sqlstate != error.sqlstate:
            raise Fault("error", f"{refused} instead of {error}") from None
        return f"error {error.sqlstate}"
    raise Fault("no error", str(error))


def check(bench, select, number):
    """What became of one statement: "rewritten", "pass: ...", "error ...". A Fault when it is wrong."""
    sql, params = select.text()
    try:
        names = bench.names(sql + " LIMIT 1" + select.tail)
        whole = [tuple(row) for row in bench.rows(sql + select.tail, params)]
    except wire.ServerError as error:
        return expect_server_error(bench, select, error)
    if len(whole) > MOST_ROWS:
        raise Skip("rows")
    try:
        ranks = ranked(bench, select, names)
        seek.check_ranks(whole, ranks)
    except (wire.ServerError, seek.Mismatch) as error:
        raise Skip(f"the test itself: {error}") from None
    return walk(bench, select, ranks, number)


def walk(bench, select, ranks, number):
    sql, params = select.text()
    rng = random.Random(number)
    locking = bool(select.tail)
    step = "first page"
    try:
        pager = seek.Pager(bench.through, f"{sql} LIMIT {{}}{select.tail}", params, mode_of(number))
        everything = pager.ask(size=1000)
        if everything.action is None or everything.action.startswith("pass"):
            seek.check_ranks(everything.rows, ranks)
            return everything.action or "no action"
        seek.check_ranks(everything.rows, ranks)
        step = "seek"
        rows, count = everything.rows, len(everything.rows)
        offset = rng.randrange(len(SIZES))

        def size_of(i):
            return SIZES[(i + offset) % len(SIZES)]

        seek.check_first_pages(pager, rows, SIZES, locking)
        boundaries = rng.sample(range(count), min(count, JOIN_BOUNDARIES if "tree" in "".join(select.features) else BOUNDARIES))
        seek.check_seeks(pager, rows, everything.cursors, boundaries, size_of, locking)
        pager.close()
        if not params:  # the same statement in the other protocol takes the same cursors
            other = seek.Pager(bench.through, f"{sql} LIMIT {{}}{select.tail}", params, "unnamed" if pager.mode == "simple" else "simple")
            seek.check_seeks(other, rows, everything.cursors, boundaries[:2], size_of, locking)
        return "rewritten"
    except seek.Mismatch as error:
        raise Fault(step, str(error)) from None
    except wire.ServerError as error:
        raise Fault(f"error {error.sqlstate}", f"{step}: {error} {error.fields.get('D', '')}") from None


def outcome_of(bench, select, number):
    """What check() says, or the Fault."""
    try:
        return check(bench, select, number)
    except Skip as skip:
        return f"skipped, {str(skip)[:60]}"
    except Fault as fault:
        return fault


def fails(bench, select, number, kind):
    outcome = outcome_of(bench, select, number)
    return isinstance(outcome, Fault) and outcome.kind == kind


def shrink(bench, world, select, number, kind):
    """The smallest statement, and then the fewest rows, that still fail in this way."""
    end = time.monotonic() + SHRINK_SECONDS
    again = True
    while again and time.monotonic() < end:
        again = False
        for less in select.smaller():
            if fails(bench, less, number, kind):
                select, again = less, True
                break
    if world.role:
        return select
    for table in world.tables:
        for (place,) in bench.direct.rows(wire.query(f"SELECT tableoid::regclass || ' WHERE ctid = ''' || ctid || '''' FROM {table}")):
            if time.monotonic() > end:
                break
            there = place.decode().split(" WHERE ")[0]
            bench.direct.ask(wire.query(f"CREATE TABLE kept AS SELECT * FROM ONLY {place.decode()}; DELETE FROM ONLY {place.decode()}"))
            if not fails(bench, select, number, kind):
                bench.direct.ask(wire.query(f"INSERT INTO {there} SELECT * FROM kept"))
            bench.direct.ask(wire.query("DROP TABLE kept"))
    return select


def report(bench, world, select, number, fault):
    """What is needed to see it again: the tables in question, their present rows, the statement."""
    sql, params = select.text()
    lines = [line for line in world.ddl.splitlines() if not line.startswith(("INSERT", "CREATE SCHEMA"))]
    wanted = set(re.findall(r"\b[tv]\d\b", sql))
    for line in lines:
        view = re.match(r"CREATE (MATERIALIZED )?VIEW (v\d)", line)
        if view and view.group(2) in wanted:
            wanted |= set(re.findall(r"\bt\d\b", line))
    text = [f"world {world.schema}, case {number}: {fault}", ""] + world.settings + world.plans + [f"SET ROLE {world.role}"] * bool(world.role)
    text += [line for line in lines if re.search(r"\b([tv]\d)(_\w+)?\b", line) and re.search(r"\b([tv]\d)(_\w+)?\b", line).group(1) in wanted]
    for table in sorted(wanted & set(world.tables)) * (not world.role):
        for place, row in bench.direct.rows(wire.query(f"SELECT x.tableoid::regclass, x::text FROM {table} x")):
            text.append(f"{place.decode()}: {row.decode()}")
    return "\n".join([*text, f"{sql} LIMIT n{select.tail}", f"parameters {params}, {mode_of(number)}"])


def mode_of(number):
    return MODES[number % len(MODES)]


class Tally:
    """What became of all statements."""

    def __init__(self):
        self.outcomes = collections.Counter()
        self.features = collections.defaultdict(collections.Counter)

    def count(self, select, outcome):
        self.outcomes[outcome] += 1
        for feature in select.features:
            self.features[feature][outcome] += 1

    def lines(self):
        total = sum(self.outcomes.values())
        yield f"{total} statements: " + ", ".join(f"{outcome} {count}" for outcome, count in self.outcomes.most_common())
        for feature, outcomes in sorted(self.features.items()):
            passed = [(o, n) for o, n in outcomes.most_common() if o.startswith("pass")]
            yield f"  {feature:18} rewritten {outcomes['rewritten']:5}  " + ", ".join(f"{o[6:]} {n}" for o, n in passed[:6])


@pytest.fixture(scope="module")
def tally():
    tally = Tally()
    yield tally
    print("\n" + "\n".join(tally.lines()))


@pytest.fixture(scope="module")
def bench(server, proxy_of_the_run):
    with server.wire() as direct, proxy_of_the_run.wire() as through:
        answer = direct.ask(wire.query("SET client_min_messages = error; " + worlds.KINDS))
        assert not any(message.kind == "E" for message in answer), [message.fields() for message in answer if message.kind == "E"]
        yield Bench(direct, through)
        direct.ask(wire.query("RESET search_path"), syncs=1)
        direct.ask(wire.query("DROP SCHEMA kinds CASCADE"))


def run_world(bench, tally, world, cases):
    """Counts what becomes of (number, statement) pairs; the first Fault is made small and told."""
    bench.enter(world)
    for number, select in cases:
        outcome = outcome_of(bench, select, number)
        if isinstance(outcome, Fault):
            small = shrink(bench, world, copy.deepcopy(select), number, outcome.kind)
            again = outcome_of(bench, small, number)
            text = report(bench, world, small, number, again if isinstance(again, Fault) else outcome)
            bench.leave(world)
            pytest.fail(text, pytrace=False)
        tally.count(select, outcome)
    bench.leave(world)


def seeds(chunk, share):
    """The worlds of one chunk; `share` of all cases."""
    return range(SEED + chunk, SEED + max(int(CASES * share) // PER_WORLD, CHUNKS), CHUNKS)


def generator(world, seed, number):
    return selects.Generator(world, random.Random(f"case {seed} {number}"))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_statement_is_walked_exactly_or_passed(bench, tally, proxy, chunk):
    for seed in seeds(chunk, 0.7):
        world = worlds.World(seed)
        run_world(bench, tally, world, ((number, generator(world, seed, number).select()) for number in range(PER_WORLD)))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_join_is_walked_exactly_or_passed(bench, tally, proxy, chunk):
    for seed in seeds(chunk, 0.3):
        world = worlds.JoinWorld(seed)
        run_world(bench, tally, world, ((number, generator(world, seed, number).joined()) for number in range(PER_WORLD)))
