"""Total order by proof: whatever key order pgseek claims for a join, no two rows of the data share it.

Each row's own cursor (deliver=columns) is only signed here, so that its key values can be read.

    PGSEEK_JOINS=20000 PGSEEK_SEED=7 /usr/bin/python3 -m pytest tests/e2e/test_joins.py
"""
import base64
import os
import random
import struct

import pytest

import joins
import pages
import wire

COUNT = int(os.environ.get("PGSEEK_JOINS", "600"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = 12
INDETERMINATE = "42P22"  # a comparison without a collation: whether it is reached depends on the server's plan
HEAD, PARTS, TAIL = 1 + 4 + 1, 8 + 5 * 16, 32  # of a signed token: proxy/page/cursor.c


@pytest.fixture(scope="module")
def signing(server, run_dir):
    """A pgseek whose cursors can be read."""
    import cluster
    proxy = cluster.Proxy(run_dir / "joins", server).start(cursor_protection="sign")
    yield proxy
    proxy.stop()


@pytest.fixture(scope="module")
def writer(server):
    with server.connect() as conn:
        conn.execute(joins.SCHEMA)
        if server.version() >= 15:
            conn.execute(joins.NULLS_NOT_DISTINCT)
        yield conn
        conn.execute("DROP SCHEMA joins CASCADE")


def keys_of(token):
    """The key values in a signed token, as bytes."""
    raw = base64.urlsafe_b64decode(token + b"=" * (-len(token) % 4))
    payload = raw[HEAD:-TAIL]
    values, at = [], PARTS + 1
    for _ in range(payload[PARTS]):
        _, length = struct.unpack_from("!Ii", payload, at)
        at += 8
        values.append(None if length < 0 else payload[at:at + length])
        at += max(length, 0)
    assert at == len(payload), "the token's layout is another"
    return tuple(values)


def ask(conn, sql):
    """The rows without what was delivered beside them, the keys of each, and the action; or the SQLSTATE."""
    try:
        page = pages.page_of(conn.ask(wire.extended(f"{sql} /* pgseek deliver='status,columns' */")))
    except wire.ServerError as error:
        return error.sqlstate, None, None
    rows = [row[:-2] for row in page.rows]
    if page.action.startswith("pass"):
        return rows, None, page.action
    return rows, [keys_of(row[-2]) for row in page.rows], page.action


def check(through, direct, sql):
    """Runs a statement both ways; returns why it was passed, or None."""
    rows, keys, action = ask(through, sql)
    try:
        expected = pages.page_of(direct.ask(wire.extended(sql))).rows
    except wire.ServerError as error:
        assert rows == error.sqlstate, f"{rows} where the server says {error.sqlstate}"
        return "error"
    if rows == INDETERMINATE:
        return "error"
    assert sorted(rows, key=repr) == sorted(expected, key=repr), "other rows"
    if keys is None:
        return action
    seen = {}
    for row, key in zip(rows, keys):
        assert key not in seen, f"two rows with the key {key}: {seen[key]} and {row}"
        seen[key] = row
    return None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_claimed_key_has_a_duplicate(request, writer, server, signing, chunk):
    with server.wire() as direct, signing.wire() as through:
        for number in range(COUNT // CHUNKS):
            seed = SEED + chunk * (COUNT // CHUNKS) + number
            if number % 20 == 0:
                for line in joins.fill(random.Random(f"data {seed}")):
                    writer.execute(line)
            tree = joins.Tree(seed)
            try:
                outcome = check(through, direct, tree.sql)
            except AssertionError as error:
                pytest.fail(f"seed {seed}: {tree.sql}\n{error}", pytrace=False)
            count = request.config.stash.setdefault(joins.OUTCOMES, {})
            count[outcome or "claimed"] = count.get(outcome or "claimed", 0) + 1


# What a naive rule says and the data denies: rewrite by another key or not at all. `naive` shows the duplicate.
NAMED = {
    "a nullable unique index is no key": (
        "CREATE TABLE n1 (k int4 UNIQUE, v int4 NOT NULL); INSERT INTO n1 VALUES (NULL, 1), (NULL, 1)",
        "SELECT v FROM n1 ORDER BY k", "SELECT k FROM n1", "no_total_order"),
    "the right key of a left join": (
        "CREATE TABLE n2 (id int4 PRIMARY KEY); CREATE TABLE n2r (id int4 PRIMARY KEY); INSERT INTO n2 VALUES (1), (2); INSERT INTO n2r VALUES (9)",
        "SELECT r.id FROM n2 l LEFT JOIN n2r r ON r.id = l.id ORDER BY r.id", "SELECT r.id FROM n2 l LEFT JOIN n2r r ON r.id = l.id", None),
    "the left key of a left join to a column that is not unique": (
        "CREATE TABLE n3 (id int4 PRIMARY KEY); CREATE TABLE n3r (id int4 PRIMARY KEY, l int4 NOT NULL); INSERT INTO n3 VALUES (1); INSERT INTO n3r VALUES (1, 1), (2, 1)",
        "SELECT l.id FROM n3 l LEFT JOIN n3r r ON r.l = l.id ORDER BY l.id", "SELECT l.id FROM n3 l LEFT JOIN n3r r ON r.l = l.id", None),
    "the left key of a full join on a unique column": (
        "CREATE TABLE n4 (id int4 PRIMARY KEY); CREATE TABLE n4r (id int4 PRIMARY KEY); INSERT INTO n4 VALUES (1); INSERT INTO n4r VALUES (2), (3)",
        "SELECT l.id FROM n4 l FULL JOIN n4r r ON r.id = l.id ORDER BY l.id", "SELECT l.id FROM n4 l FULL JOIN n4r r ON r.id = l.id", None),
    "NULLS NOT DISTINCT on both sides of a full join": (
        "CREATE TABLE n5 (k int4 UNIQUE NULLS NOT DISTINCT, x int4 NOT NULL); CREATE TABLE n5r (k int4 UNIQUE NULLS NOT DISTINCT, x int4 NOT NULL); INSERT INTO n5 VALUES (NULL, 1); INSERT INTO n5r VALUES (NULL, 2)",
        "SELECT l.k FROM n5 l FULL JOIN n5r r ON r.x = l.x ORDER BY l.k", "SELECT l.k, r.k FROM n5 l FULL JOIN n5r r ON r.x = l.x", "no_total_order"),
    "an int8 key equated with a float8": (
        "CREATE TABLE n6 (k int8 PRIMARY KEY); CREATE TABLE n6r (id int4 PRIMARY KEY, f float8 NOT NULL); INSERT INTO n6 VALUES (9007199254740992), (9007199254740993); INSERT INTO n6r VALUES (1, 9007199254740992)",
        "SELECT r.id FROM n6r r JOIN n6 l ON l.k = r.f ORDER BY r.id", "SELECT r.id FROM n6r r JOIN n6 l ON l.k = r.f", None),
    "a key equated under another collation": (
        "CREATE COLLATION n7ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE n7 (k text PRIMARY KEY, t int4 NOT NULL); CREATE TABLE n7r (id int4 PRIMARY KEY); INSERT INTO n7 VALUES ('a', 1), ('A', 1); INSERT INTO n7r VALUES (1)",
        "SELECT r.id FROM n7 l JOIN n7r r ON l.k = 'a' COLLATE n7ci ORDER BY r.id", "SELECT r.id FROM n7 l JOIN n7r r ON l.k = 'a' COLLATE n7ci", None),
    "a key that a filter pins under another collation": (
        "CREATE COLLATION n8ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE n8 (k text, no int4, PRIMARY KEY (k, no)); INSERT INTO n8 VALUES ('a', 1), ('A', 1)",
        "SELECT no FROM n8 WHERE k = 'a' COLLATE n8ci ORDER BY no", "SELECT no FROM n8 WHERE k = 'a' COLLATE n8ci", None),
    "LATERAL (VALUES ...) adds rows": (
        "CREATE TABLE n9 (id int4 PRIMARY KEY); INSERT INTO n9 VALUES (1)",
        "SELECT l.id FROM n9 l, LATERAL (VALUES (l.id), (l.id)) v(x) ORDER BY l.id", "SELECT l.id FROM n9 l, LATERAL (VALUES (l.id), (l.id)) v(x)", "from_function"),
    "the parent's primary key with children": (
        "CREATE TABLE n10 (id int4 PRIMARY KEY); CREATE TABLE n10c () INHERITS (n10); INSERT INTO n10 VALUES (1); INSERT INTO n10c VALUES (1)",
        "SELECT id FROM n10 ORDER BY id", "SELECT id FROM n10", "inheritance"),
    "a unique index with a predicate": (
        "CREATE TABLE n11 (k int4 NOT NULL, v int4 NOT NULL); CREATE UNIQUE INDEX ON n11 (k) WHERE v > 0; INSERT INTO n11 VALUES (1, 0), (1, 0)",
        "SELECT k FROM n11 ORDER BY k", "SELECT k FROM n11", "no_total_order"),
    "a unique index on an expression": (
        "CREATE TABLE n12 (k int4 NOT NULL, v int4 NOT NULL); CREATE UNIQUE INDEX ON n12 (k, (v % 10)); INSERT INTO n12 VALUES (1, 1), (1, 2)",
        "SELECT k FROM n12 ORDER BY k", "SELECT k FROM n12", "no_total_order"),
    "a unique key that is deferrable": (
        "CREATE TABLE n13 (k int4 NOT NULL UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO n13 VALUES (1)",
        "SELECT k FROM n13 ORDER BY k", None, "no_total_order"),
    "a unique key under an order that holds more equal": (
        "CREATE COLLATION n14ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE n14 (k text PRIMARY KEY); INSERT INTO n14 VALUES ('a'), ('A')",
        "SELECT k FROM n14 ORDER BY k COLLATE n14ci", None, None),
    "an INCLUDE column belongs to no key": (
        "CREATE TABLE n15 (k int4 NOT NULL, v int4 NOT NULL, w int4 NOT NULL); CREATE UNIQUE INDEX ON n15 (k, v) INCLUDE (w); INSERT INTO n15 VALUES (1, 1, 5), (1, 2, 5)",
        "SELECT w FROM n15 ORDER BY k, w", "SELECT k, w FROM n15", None),
    "an index whose operator class tells more apart": (
        "CREATE TYPE n16t AS (x numeric); CREATE TABLE n16 (k n16t NOT NULL); CREATE UNIQUE INDEX ON n16 (k record_image_ops); INSERT INTO n16 VALUES (ROW(1.0)), (ROW(1.00))",
        "SELECT 1 FROM n16 n ORDER BY n.k", "SELECT k FROM n16", "no_total_order"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_naive_rules_claim(writer, server, signing, name):
    setup, sql, naive, reason = NAMED[name]
    if "NULLS NOT DISTINCT" in setup and server.version() < 15:
        pytest.skip("NULLS NOT DISTINCT came with PostgreSQL 15")
    writer.execute(f"DROP SCHEMA IF EXISTS named CASCADE; CREATE SCHEMA named; SET search_path = named, public; {setup}")
    if naive:
        (count, distinct), = writer.execute(f"SELECT count(*), count(DISTINCT q) FROM ({naive}) q").fetchall()
        assert distinct < count, "the data does not show what it is to show"
    with server.wire() as direct, signing.wire() as through:
        for conn in (direct, through):
            conn.rows(wire.query("SET search_path = named, public"))
        outcome = check(through, direct, f"{sql} LIMIT 100")
        assert outcome == f"pass: {reason}" if reason else outcome is None or outcome.startswith("pass: ")
        walked = pages.forward(pages.Extended(through, f"{sql} LIMIT 1")) if outcome is None else []
        assert len(pages.rows_of(walked)) == (len(pages.page_of(direct.ask(wire.extended(sql))).rows) if walked else 0)
