"""What a proof rests on goes between two pages, deep inside joins, derived tables and views: no row is lost or repeated.

Each change lets rows come that the proof had ruled out, all of them behind the first page. Allowed are all rows of the
new order, once each, or a refusal; nothing else.
"""
import collections

import pytest

import pages
import wire

REFUSALS = ("PS004", "PS005")
BUILD = """
DROP SCHEMA IF EXISTS rests CASCADE; CREATE SCHEMA rests; SET search_path = rests;
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE a (id int4 PRIMARY KEY, b int4, f int4 NOT NULL, w text NOT NULL);
CREATE TABLE b (id int4 NOT NULL, u int4 NOT NULL, n int4);
CREATE UNIQUE INDEX b_u ON b (u); CREATE UNIQUE INDEX b_id ON b (id); CREATE UNIQUE INDEX b_n ON b (n);
ALTER TABLE b ALTER n SET NOT NULL;
CREATE TABLE bag (v int4 NOT NULL, g int4 NOT NULL);
CREATE TABLE word (w text PRIMARY KEY, x int4 NOT NULL);
INSERT INTO a SELECT i, i, i, 'w' || i FROM generate_series(1, 12) i;
INSERT INTO b SELECT i, i, i FROM generate_series(1, 12) i;
INSERT INTO bag SELECT i, i / 2 FROM generate_series(1, 12) i;
INSERT INTO word SELECT 'w' || i, i FROM generate_series(1, 12) i;
CREATE VIEW plain AS SELECT id, u FROM b;
CREATE VIEW joined AS SELECT a.id, b.u FROM a LEFT JOIN b ON b.id = a.b;
CREATE VIEW groups (g, n) AS SELECT g, count(*) FROM bag GROUP BY g;
"""
TWICE = "INSERT INTO b SELECT id, u, n FROM b WHERE id > 5"

# The statement; what happens behind its first page of two rows.
CASES = {
    "an index inside of a derived table": ("SELECT q.u FROM (SELECT u, id % 3 AS m FROM b) q ORDER BY q.u / 4", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "an index inside of a view": ("SELECT u FROM plain ORDER BY u / 4", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "an index inside of a CTE": ("WITH q AS (SELECT u FROM b) SELECT u FROM q ORDER BY u / 4", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "the index of the side that a LEFT JOIN extends": (
        "SELECT a.id, b.u FROM a LEFT JOIN b ON b.id = a.b ORDER BY a.id", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "the same inside of a view": ("SELECT id FROM joined ORDER BY id", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "a NOT NULL that makes a unique index a key": (
        "SELECT q.n, q.z FROM (SELECT n, 0 AS z FROM b) q ORDER BY q.z",
        "ALTER TABLE b ALTER n DROP NOT NULL; INSERT INTO b VALUES (20, 20, NULL), (21, 21, NULL), (22, 22, NULL)"),
    "a NOT NULL that a column has no NULL by": (
        "SELECT q.id FROM (SELECT id FROM b) q ORDER BY q.id", "DROP INDEX b_id; ALTER TABLE b ALTER id DROP NOT NULL; INSERT INTO b VALUES (NULL, 20, 20), (NULL, 21, 21)"),
    "the view itself": (
        "SELECT u FROM plain ORDER BY u", "CREATE OR REPLACE VIEW plain AS SELECT id, u FROM b UNION ALL SELECT id, u FROM b WHERE u > 5"),
    "a view of groups": (
        "SELECT g FROM groups ORDER BY g", "CREATE OR REPLACE VIEW groups (g, n) AS SELECT g, 1::int8 FROM bag"),
    "a table in a view gets a child": (
        "SELECT u FROM plain ORDER BY u", "CREATE TABLE b_child () INHERITS (b); INSERT INTO b_child SELECT id, u, n FROM b WHERE id > 5"),
    "the types of two columns that are equated": (
        "SELECT a.id, b.u FROM a JOIN b ON b.id = a.f ORDER BY a.id", f"DROP INDEX b_u, b_id, b_n; {TWICE}"),
    "the collation of two columns that are equated": (
        "SELECT a.id, word.x FROM a JOIN word ON word.w = a.w ORDER BY a.id",
        "ALTER TABLE a ALTER w TYPE text COLLATE ci; ALTER TABLE word DROP CONSTRAINT word_pkey; ALTER TABLE word ALTER w TYPE text COLLATE ci;"
        "INSERT INTO word SELECT upper(w), x FROM word WHERE x > 5"),
    "the columns that DISTINCT has": (
        "SELECT q.v, q.g FROM (SELECT DISTINCT * FROM bag) q ORDER BY q.g",
        "ALTER TABLE bag ADD COLUMN more int4; INSERT INTO bag SELECT v, g, 7 FROM bag WHERE g > 3"),
    "the columns that UNION has": (
        "SELECT q.v, q.g FROM (SELECT * FROM bag UNION SELECT * FROM bag) q ORDER BY q.g",
        "ALTER TABLE bag ADD COLUMN more int4; INSERT INTO bag SELECT v, g, 7 FROM bag WHERE g > 3"),
    "the name of a column": (
        "SELECT q.u FROM (SELECT * FROM b) q ORDER BY q.u", "ALTER TABLE b RENAME u TO old; ALTER TABLE b RENAME id TO u; DROP INDEX b_u, b_id, b_n; INSERT INTO b SELECT u, old, n FROM b WHERE u > 5"),
}


@pytest.fixture
def admin(server):
    with server.connect() as conn:
        conn.execute(BUILD)
        yield conn
        conn.execute("DROP SCHEMA rests CASCADE")


@pytest.mark.parametrize("protocol", [pages.Extended, pages.Named])
@pytest.mark.parametrize("name", CASES)
def test_no_row_is_lost_or_repeated(proxy, admin, name, protocol):
    sql, change = CASES[name]
    with proxy.wire() as conn:
        conn.rows(wire.query("SET search_path = rests"))
        asker = protocol(conn, f"{sql} LIMIT 2")
        for _ in range(2):  # whatever is kept is kept
            page = asker.ask()
        assert page.action == "first", page.action
        admin.execute(change)
        rows, token = list(page.rows), page.next
        try:
            while token:
                page = asker.ask(token)
                rows, token = rows + page.rows, page.next
        except wire.ServerError as error:
            assert error.sqlstate in REFUSALS, error
            return
    expected = [tuple(None if value is None else str(value).encode() for value in row) for row in admin.execute(sql).fetchall()]
    if protocol is pages.Named:  # binary: only how many
        assert len(rows) == len(expected), name
    else:
        assert collections.Counter(rows) == collections.Counter(expected), name
