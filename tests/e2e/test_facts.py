"""Traps of the catalog: what looks like a key or like NOT NULL and is none, and what is one all the same.

Each case is a table and what `pgseek explain` says to a page of it: the whole key, or the reason why there is none.
"""
import re
import subprocess

import pytest

import cluster

NONE = "no_total_order"


class Case:
    def __init__(self, name, ddl, sql, expected, since=0):
        self.name, self.ddl, self.sql, self.expected, self.since = name, ddl, sql, expected, since


CASES = [
    Case("primary key", "CREATE TABLE t (id int PRIMARY KEY, a int)", "SELECT a FROM t ORDER BY a", "a, id"),
    Case("unique, nullable", "CREATE TABLE t (id int UNIQUE, a int)", "SELECT a FROM t ORDER BY a", NONE),
    Case("unique, NOT NULL", "CREATE TABLE t (id int UNIQUE NOT NULL, a int)", "SELECT a FROM t ORDER BY a", "a, id"),
    Case("NULLS NOT DISTINCT", "CREATE TABLE t (id int, a int, UNIQUE NULLS NOT DISTINCT (id))", "SELECT a FROM t ORDER BY a", "a, id", 15),
    Case("deferrable", "CREATE TABLE t (id int NOT NULL UNIQUE DEFERRABLE, a int)", "SELECT a FROM t ORDER BY a", NONE),
    Case("partial", "CREATE TABLE t (id int NOT NULL, a int); CREATE UNIQUE INDEX ON t (id) WHERE a > 0", "SELECT a FROM t ORDER BY a", NONE),
    Case("expression", "CREATE TABLE t (id int NOT NULL, a int); CREATE UNIQUE INDEX ON t (abs(id))", "SELECT a FROM t ORDER BY a", NONE),
    Case("INCLUDE", "CREATE TABLE t (id int NOT NULL, a int, b int); CREATE UNIQUE INDEX ON t (id) INCLUDE (b)", "SELECT a FROM t ORDER BY a", "a, id"),
    Case("exclusion", "CREATE TABLE t (id int NOT NULL, a int, EXCLUDE USING btree (id WITH =))", "SELECT a FROM t ORDER BY a", NONE),
    Case("WITHOUT OVERLAPS", "CREATE EXTENSION IF NOT EXISTS btree_gist;"
         "CREATE TABLE t (id int, during daterange, a int, PRIMARY KEY (id, during WITHOUT OVERLAPS))", "SELECT a FROM t ORDER BY a", NONE, 18),
    Case("not valid", "CREATE TABLE t (id int UNIQUE, a int); ALTER TABLE t ADD CONSTRAINT n NOT NULL id NOT VALID",
         "SELECT a FROM t ORDER BY a", NONE, 18),
    Case("another equality", "CREATE TYPE pair AS (x int, y numeric);"
         "CREATE TABLE t (id pair NOT NULL, a int); CREATE UNIQUE INDEX ON t (id record_image_ops)", "SELECT a FROM t ORDER BY a", NONE),
    Case("invalid", "CREATE TABLE t (id int NOT NULL, a int) PARTITION BY LIST (id); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);"
         "CREATE UNIQUE INDEX ON ONLY t (id)", "SELECT a FROM t ORDER BY a", NONE),
    Case("partitioned", "CREATE TABLE t (id int, a int, PRIMARY KEY (id)) PARTITION BY LIST (id); CREATE TABLE t1 PARTITION OF t DEFAULT",
         "SELECT a FROM t ORDER BY a", "a, id"),
    Case("a partition alone", "CREATE TABLE t (id int, a int, PRIMARY KEY (id)) PARTITION BY LIST (id); CREATE TABLE t1 PARTITION OF t DEFAULT",
         "SELECT a FROM t1 ORDER BY a", "a, id"),
    Case("children", "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE TABLE child () INHERITS (t)", "SELECT a FROM t ORDER BY a", "inheritance"),
    Case("children, ONLY", "CREATE TABLE t (id int PRIMARY KEY, a int); CREATE TABLE child () INHERITS (t)", "SELECT a FROM ONLY t ORDER BY a", "a, id"),
    Case("a child", "CREATE TABLE p (id int PRIMARY KEY, a int); CREATE TABLE t (UNIQUE (id)) INHERITS (p)", "SELECT a FROM t ORDER BY a", "a, id"),
    Case("foreign table", "CREATE EXTENSION IF NOT EXISTS postgres_fdw; CREATE SERVER IF NOT EXISTS elsewhere FOREIGN DATA WRAPPER postgres_fdw;"
         "CREATE FOREIGN TABLE t (id int NOT NULL, a int) SERVER elsewhere", "SELECT a FROM t ORDER BY a, id", None),
    Case("materialized view", "CREATE TABLE b (id int PRIMARY KEY, a int); CREATE MATERIALIZED VIEW t AS SELECT * FROM b; CREATE UNIQUE INDEX ON t (id)",
         "SELECT a FROM t ORDER BY a", None),
    Case("domain over NOT NULL", "CREATE DOMAIN solid AS int NOT NULL; CREATE TABLE t (id solid UNIQUE, a int)", "SELECT a FROM t ORDER BY a", NONE),
    Case("domain of domain", "CREATE DOMAIN d1 AS int; CREATE DOMAIN d2 AS d1; CREATE TABLE t (id d2 PRIMARY KEY, a int)",
         "SELECT a FROM t ORDER BY a", "a, id"),
    Case("unique under another collation", "CREATE TABLE t (id text COLLATE \"C\" PRIMARY KEY, a int)",
         "SELECT a FROM t ORDER BY a, id COLLATE \"und-x-icu\"", "a, id COLLATE \"und-x-icu\""),
    Case("ordered by a nondeterministic collation", "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
         "CREATE TABLE t (id text COLLATE \"C\" PRIMARY KEY, a int)", "SELECT a FROM t ORDER BY a, id COLLATE loose", "a, id COLLATE loose, id"),
    Case("nondeterministic column, deterministic index", "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
         "CREATE TABLE t (id text COLLATE loose NOT NULL, a int); CREATE UNIQUE INDEX ON t (id COLLATE \"C\")", "SELECT a FROM t ORDER BY a", NONE),
    Case("view over the primary key", "CREATE TABLE b (id int PRIMARY KEY, a int); CREATE VIEW t AS SELECT a AS x, id AS y FROM b",
         "SELECT x FROM t ORDER BY x", "x, y"),
    Case("view that aggregates", "CREATE TABLE b (id int PRIMARY KEY, a int); CREATE VIEW t AS SELECT a, count(*) AS n FROM b GROUP BY a",
         "SELECT n FROM t ORDER BY n", "n, a"),
    Case("view that doubles", "CREATE TABLE b (id int PRIMARY KEY, a int); CREATE VIEW t AS SELECT id, a FROM b UNION ALL SELECT id, a FROM b",
         "SELECT a FROM t ORDER BY a", NONE),
]


@pytest.fixture
def schema(server):
    with server.connect() as conn:
        conn.execute("DROP SCHEMA IF EXISTS traps CASCADE; CREATE SCHEMA traps; SET search_path = traps, public; SET client_min_messages = error")
        yield conn
        conn.execute("DROP SCHEMA traps CASCADE")


def explain(server, sql):
    """The columns of the key, or the reason."""
    done = subprocess.run([str(cluster.pgseek_bin()), "explain", "-d", server.dsn(options="-c search_path=traps,public"), f"{sql} LIMIT 5"],
                          capture_output=True, text=True)
    key = re.search(r"^key +(.*?)( \(tie-breaker.*\))?$", done.stdout, re.M)
    reason = re.search(r"^reason +(\w+)$", done.stdout, re.M)
    assert key or reason, done.stdout + done.stderr
    return re.sub(r"\b[tb]\.|\"t\"\.|\"(\w+)\"(?!-)", r"\1", key.group(1)) if key else reason.group(1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_trap(server, schema, case):
    if schema.info.server_version // 10000 < case.since:
        pytest.skip(f"PostgreSQL {case.since} has it")
    schema.execute(case.ddl)
    said = explain(server, case.sql)
    if case.expected is None:  # some reason, no key
        assert re.fullmatch(r"\w+_\w+", said), said
    else:
        assert said == case.expected
