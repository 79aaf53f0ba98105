"""Walks over random tables, compared with the full ordered result that the server itself gives.

    PGSEEK_ORACLE=2000 PGSEEK_SEED=100000 /usr/bin/python3 -m pytest tests/e2e/test_oracle.py

walks over more tables. Every failure names its seed.
"""
import os
import random

import pytest

import pages
import tables
import wire

COUNT = int(os.environ.get("PGSEEK_ORACLE", "60"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
SIZES = [1, 2, 3, 7, 20]
STATEMENTS = 3  # per table
CHUNKS = 10


@pytest.fixture(scope="module")
def writer(server):
    with server.connect() as conn:
        conn.execute("DROP SCHEMA IF EXISTS oracle CASCADE")
        conn.execute(tables.PREPARE)
        yield conn
        conn.execute("DROP SCHEMA oracle CASCADE")


@pytest.fixture(scope="module")
def direct(server):
    with server.wire() as conn:
        yield conn


@pytest.fixture
def through(proxy):
    with proxy.wire() as conn:
        yield conn


def share(chunk):
    return range(SEED + chunk * COUNT // CHUNKS, SEED + (chunk + 1) * COUNT // CHUNKS)


def everything(direct, statement, result):
    """The full ordered result and its RowDescription, from the server itself."""
    messages = direct.ask(wire.extended(statement.full, statement.params, result_formats=[result]))
    page = pages.page_of(messages)
    return page.rows, page.columns


def expect_description(got, expected, mode):
    """Names, types, typmods, table OIDs and column numbers are the original's; the format is what was asked for."""
    if mode == "simple":
        assert got == [column._replace(format=wire.TEXT) for column in expected]
    else:
        assert got == expected


def walk_both_ways(asker, expected, columns, size, mode):
    there = pages.forward(asker)
    assert [page.rows for page in there] == [expected[at:at + size] for at in range(0, max(len(expected), 1), size)]
    assert [page.action for page in there] == ["first"] + ["keyset"] * (len(there) - 1)
    assert [page.has_prev for page in there] == [False] + [True] * (len(there) - 1)
    assert [page.tag for page in there][-1] == f"SELECT {len(there[-1].rows)}" or mode == "portions"
    for page in there:
        expect_description(page.columns, columns, mode)
    assert there[0].prev == ""
    back = pages.backward(asker, there[-1].prev)
    assert [page.rows for page in back] == [page.rows for page in there[-2::-1]], "the way back"
    for page in back:
        assert page.has_more and pages.TOKEN.match(page.next)
        expect_description(page.columns, columns, mode)
    if len(there) > 2:  # and from the middle of the way back forward again
        middle = back[len(back) // 2]
        again = pages.rows_of(pages.forward(asker, middle.next))
        assert middle.rows + again == expected[-len(middle.rows + again):]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_walks_give_the_full_ordered_result(writer, direct, through, chunk):
    for seed in share(chunk):
        table, rng = tables.Table(seed), random.Random(f"walk {seed}")
        writer.execute(table.ddl())
        for number in range(STATEMENTS):
            statement, mode, size = tables.Statement(table, rng), rng.choice(list(pages.MODES)), rng.choice(SIZES)
            sql, params = statement.page(size)
            asker = None
            try:
                asker = pages.MODES[mode](through, sql, params)
                expected, columns = everything(direct, statement, getattr(asker, "result", wire.TEXT))
                walk_both_ways(asker, expected, columns, size, mode)
            except (AssertionError, wire.ServerError) as error:
                pytest.fail(f"seed {seed}, statement {number}, {mode}, page size {size}:\n{table_text(table)}\n{sql}\n{params}\n{error}", pytrace=False)
        writer.execute(f"DROP TABLE {table.name}")


def table_text(table):
    return f"{table.name}: k1 {table.key_types[0]}, k2 {table.key_types[1]}, id {table.id_type}{', unique with tenant' * table.composite}, {table.count} rows"


class Disturbance:
    """Another client that writes between two pages; it never changes a key of a row."""

    def __init__(self, writer, table, rng, mark):
        self.writer, self.table, self.rng, self.mark = writer, table, rng, mark
        self.deleted = set()

    def __call__(self, page):
        name = self.table.name
        if page.rows and self.rng.random() < 0.7:
            self.delete(page.rows[-1][self.mark].decode())
        if page.rows and self.rng.random() < 0.3:
            self.delete(page.rows[0][self.mark].decode())
        for _ in range(self.rng.randrange(4)):
            self.writer.execute(self.table.insert())
        if self.rng.random() < 0.5:
            self.writer.execute(f"UPDATE {name} SET note = 'changed', ref_id = (ref_id + 1) % 4 WHERE mark LIKE '%1'")
        if self.rng.random() < 0.2:
            doomed = self.writer.execute(f"SELECT mark FROM {name} ORDER BY random() LIMIT 1").fetchone()
            if doomed:
                self.delete(doomed[0])

    def delete(self, mark):
        self.writer.execute(f"DELETE FROM {self.table.name} WHERE mark = %s", [mark])
        self.deleted.add(mark)


def check_exactly_once(seen, before, deleted):
    """Rows that were there for the whole walk came exactly once and in their order; no row came twice."""
    assert len(seen) == len(set(seen)), f"repeated: {sorted(mark for mark in set(seen) if seen.count(mark) > 1)}"
    lasting = [mark for mark in before if mark not in deleted]
    kept = set(lasting)
    came = [mark for mark in seen if mark in kept]
    assert came == lasting, f"lost: {sorted(kept - set(came))}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_walks_among_writers_lose_and_repeat_nothing(writer, direct, through, chunk):
    for seed in share(chunk):
        table, rng = tables.Table(seed), random.Random(f"disturbed {seed}")
        writer.execute(table.ddl())
        statement, mode, size = tables.Statement(table, rng), rng.choice(["simple", "extended", "named"]), rng.choice(SIZES[1:])
        sql, params = statement.page(size)

        def marks(rows):
            return [row[statement.mark].decode() for row in rows]

        try:
            asker = pages.MODES[mode](through, sql, params)
            disturb = Disturbance(writer, table, rng, statement.mark)
            before = marks(everything(direct, statement, wire.TEXT)[0])
            there = pages.forward(asker, between=disturb)
            check_exactly_once(marks(pages.rows_of(there)), before, disturb.deleted)
            disturb.deleted.clear()
            end = there[-1]
            before = marks(everything(direct, statement, wire.TEXT)[0])
            back = pages.backward(asker, end.prev, between=disturb)
            seen = [mark for page in back for mark in reversed(marks(page.rows))][::-1]
            if end.rows and end.prev:
                first_of_end = marks(end.rows)[0]
                before = before[:before.index(first_of_end)] if first_of_end in before else before[:len(before) - len(end.rows)]
                check_exactly_once(seen, before, disturb.deleted)
        except (AssertionError, wire.ServerError) as error:
            pytest.fail(f"seed {seed}, {mode}, page size {size}:\n{table_text(table)}\n{sql}\n{params}\n{error}", pytrace=False)
        writer.execute(f"DROP TABLE {table.name}")


EDGES = [("LIMIT 0", 0), ("LIMIT 1", 1), ("LIMIT ALL", 9), ("LIMIT NULL", 9), ("LIMIT 9", 9), ("LIMIT 10", 9), ("LIMIT 8", 8),
         ("FETCH FIRST ROW ONLY", 1), ("FETCH FIRST 3 ROWS ONLY", 3), ("LIMIT 2 + 1", 3), ("LIMIT 3::int8", 3), ("LIMIT CAST('3' AS int4)", 3),
         ("OFFSET 2 LIMIT 3", 3), ("LIMIT 3 OFFSET 8", 1), ("LIMIT 3 OFFSET 9", 0), ("LIMIT 9223372036854775807", 9), ("LIMIT (3)", 3), ("limit 2.5", 3)]


@pytest.mark.parametrize("mode", ["simple", "extended"])
@pytest.mark.parametrize("limit, count", EDGES)
def test_limits_at_the_edges(writer, direct, through, mode, limit, count):
    sql = "SELECT i, 'x' || i AS x FROM oracle.edge ORDER BY i DESC"
    writer.execute("CREATE TABLE IF NOT EXISTS oracle.edge (i int4 PRIMARY KEY); INSERT INTO oracle.edge SELECT generate_series(1, 9) ON CONFLICT DO NOTHING")
    page = pages.MODES[mode](through, f"{sql} {limit}").ask()
    assert page.rows == pages.page_of(direct.ask(wire.query(f"{sql} {limit}"))).rows
    assert len(page.rows) == count
    assert page.tag == f"SELECT {count}"
    if page.action == "first":
        offset = 2 if limit.startswith("OFFSET 2") else 8 if limit.endswith("OFFSET 8") else 9 if limit.endswith("OFFSET 9") else 0
        assert page.has_more == (0 < count < 9 - offset) or count == 0
