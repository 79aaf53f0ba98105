"""What docs/CONSISTENCY.md says of each form of statement: a walk by one row, with a write of others behind its first page.

The expected rows are written down, since what is promised is not always what a single statement would give.
"""
from typing import NamedTuple

import pytest

import pages
import wire

SCHEMA = """
DROP SCHEMA IF EXISTS consistency CASCADE;
CREATE SCHEMA consistency;
CREATE TABLE consistency.p (id int4 PRIMARY KEY, at int4 NOT NULL, n int4, name text NOT NULL);
CREATE TABLE consistency.c (id int4 PRIMARY KEY, p int4 NOT NULL);
INSERT INTO consistency.p VALUES (1, 10, NULL, 'a'), (2, 20, 5, 'b'), (3, 30, 6, 'b'), (4, 40, NULL, 'c');
INSERT INTO consistency.c VALUES (1, 1), (2, 2), (3, 3);
CREATE VIEW consistency.v AS SELECT id, at FROM consistency.p WHERE id < 4;
"""


class Case(NamedTuple):
    sql: str
    write: str
    rows: list


CASES = {
    "a row ahead comes, one behind does not": Case("SELECT id FROM p ORDER BY at LIMIT 1", "INSERT INTO p VALUES (8, 5, 0, 'x'), (9, 35, 0, 'x')", ["1", "2", "3", "9", "4"]),
    "the cursor's own row goes": Case("SELECT id FROM p ORDER BY at LIMIT 1", "DELETE FROM p WHERE id = 1", ["1", "2", "3", "4"]),
    "a key moves forward": Case("SELECT id FROM p ORDER BY at LIMIT 1", "UPDATE p SET at = 35 WHERE id = 1", ["1", "2", "3", "1", "4"]),
    "a key moves back": Case("SELECT id FROM p ORDER BY at LIMIT 1", "UPDATE p SET at = 5 WHERE id = 3", ["1", "2", "4"]),
    "a value becomes NULL": Case("SELECT id FROM p ORDER BY n LIMIT 1", "UPDATE p SET n = NULL WHERE id = 2", ["2", "3", "1", "2", "4"]),
    "NULL becomes a value": Case("SELECT id FROM p ORDER BY n LIMIT 1", "UPDATE p SET n = 1 WHERE id = 1", ["2", "3", "4"]),
    "the column that joins": Case("SELECT p.id FROM p JOIN c ON c.p = p.id ORDER BY p.at LIMIT 1", "UPDATE c SET p = 3 WHERE id = 1", ["1", "2", "3", "3"]),
    "the first partner, NULLs last": Case("SELECT p.id FROM p LEFT JOIN c ON c.p = p.id WHERE p.id = 4 OR p.at < 15 ORDER BY p.at DESC, c.id LIMIT 1",
                                          "INSERT INTO c VALUES (9, 4)", ["4", "1"]),
    "the first partner, NULLs first": Case("SELECT p.id FROM p LEFT JOIN c ON c.p = p.id WHERE p.id = 4 OR p.at < 15 ORDER BY p.at DESC, c.id NULLS FIRST LIMIT 1",
                                           "INSERT INTO c VALUES (9, 4)", ["4", "4", "1"]),
    "groups, by themselves": Case("SELECT name, count(*) FROM p GROUP BY name ORDER BY name LIMIT 1", "INSERT INTO p VALUES (9, 1, 1, 'a'), (8, 1, 1, 'c')", ["a 1", "b 2", "c 2"]),
    "groups, by an aggregate": Case("SELECT name FROM p GROUP BY name ORDER BY count(*), name LIMIT 1", "INSERT INTO p VALUES (9, 1, 1, 'a'), (8, 1, 1, 'a')", ["a", "c", "b", "a"]),
    "DISTINCT": Case("SELECT DISTINCT name FROM p ORDER BY name LIMIT 1", "DELETE FROM p WHERE id IN (2, 4)", ["a", "b"]),
    "DISTINCT ON": Case("SELECT DISTINCT ON (name) name, id FROM p ORDER BY name, at LIMIT 1", "DELETE FROM p WHERE id = 2", ["a 1", "b 3", "c 4"]),
    "UNION": Case("SELECT id FROM p UNION SELECT p FROM c ORDER BY id LIMIT 1", "INSERT INTO c VALUES (8, 4), (9, 7)", ["1", "2", "3", "4", "7"]),
    "a window": Case("SELECT id, row_number() OVER (ORDER BY id) AS r, count(*) OVER () FROM p ORDER BY id LIMIT 1", "INSERT INTO p VALUES (0, 1, 1, 'x')",
                     ["1 1 4", "2 3 5", "3 4 5", "4 5 5"]),
    "a level inside": Case("SELECT q.id, c.id FROM (SELECT id FROM p ORDER BY id LIMIT 1) q JOIN c ON c.p = q.id ORDER BY c.id", "DELETE FROM c WHERE p = 2; INSERT INTO c VALUES (9, 3)",
                           ["1 1", "3 3", "3 9"]),
    "a view that is replaced": Case("SELECT id FROM v ORDER BY at LIMIT 1", "CREATE OR REPLACE VIEW v AS SELECT id, at FROM p WHERE id <> 2", ["1", "3", "4"]),
}


@pytest.fixture
def through(server, proxy):
    with server.connect() as other:
        other.execute("SET client_min_messages = warning; " + SCHEMA)
        other.execute("SET search_path = consistency")
        with proxy.wire() as conn:
            conn.ask(wire.query("SET search_path = consistency"))
            yield conn, other
        other.execute("DROP SCHEMA consistency CASCADE")


def rows(page):
    return [" ".join("" if value is None else value.decode() for value in row) for row in page.rows]


def walk(conn, sql, write):
    seen, token = [], ""
    for number in range(20):
        page = pages.page_of(conn.ask(wire.query(f"{sql} /* pgseek cursor='{token}' */")))
        assert page.action == ("keyset" if number else "first")
        seen += rows(page)
        token = page.next
        if not token:
            return seen
        if number == 0:
            write()
    raise AssertionError(f"the walk does not end: {seen}")


@pytest.mark.parametrize("name", CASES)
def test_a_write_behind_the_first_page(through, name):
    conn, other = through
    case = CASES[name]
    assert walk(conn, case.sql, lambda: other.execute(case.write)) == case.rows


@pytest.mark.parametrize("name", [name for name in CASES if name != "a view that is replaced"])
def test_one_snapshot_shows_no_write(through, name):
    conn, other = through
    case = CASES[name]
    before = walk(conn, case.sql, lambda: None)
    conn.ask(wire.query("BEGIN ISOLATION LEVEL REPEATABLE READ"))
    assert walk(conn, case.sql, lambda: other.execute(case.write)) == before
    conn.ask(wire.query("COMMIT"))
