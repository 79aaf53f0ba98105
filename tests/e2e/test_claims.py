"""What the parser claims of joins and derived tables, asked of the data: keys without duplicates, columns without NULL,
columns that follow from others.

    PGSEEK_CLAIMS=20000 PGSEEK_SEED=7 /usr/bin/python3 -m pytest tests/e2e/test_claims.py
"""
import json
import os
import pathlib
import random
import subprocess

import psycopg
import pytest

import claims
import test_shape_walk

COUNT = int(os.environ.get("PGSEEK_CLAIMS", "600"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
CHUNKS = 6
LIMITS = "SET search_path = claims; SET statement_timeout = '3s'; SET jit = off; SET max_parallel_workers_per_gather = 0"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    out = tmp_path_factory.mktemp("claims") / "claim_walk"
    test_shape_walk.build(pathlib.Path(__file__).with_name("claim_walk.c"), out)
    return out


@pytest.fixture(scope="module")
def data(server):
    with server.connect() as conn:
        conn.execute(claims.SCHEMA)
        if server.version() >= 15:
            conn.execute(claims.NULLS_NOT_DISTINCT)
        conn.execute(LIMITS)
        yield conn
        conn.execute("DROP SCHEMA claims CASCADE")


class Claimant:
    """The parser, asked for its claims one statement after the other."""

    def __init__(self, program, server, seed):
        self.process = subprocess.Popen([program, server.dsn(), "claims", str(seed)], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def ask(self, sql):
        self.process.stdin.write(sql + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line.startswith("{"), line + (self.process.stderr.read() if not line else "")
        return json.loads(line)

    def close(self):
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors


def group_by(columns):
    return f" GROUP BY {', '.join(columns)}" if columns else ""


def of_derived(statement, claim):
    """What is claimed of the statement as a derived table, as queries that must find nothing."""
    if claim["opaque"]:
        return
    names = [f"o{i}" for i in range(claim["columns"])]
    source = f"({statement.sql}) q ({', '.join(names)})"
    for key in claim["keys"]:
        columns = [names[i] for i in key]
        yield f"key {columns}", f"SELECT {', '.join([*columns, 'count(*)'])} FROM {source}{group_by(columns)} HAVING count(*) > 1"
    if claim["not_null"]:
        null = " OR ".join(f"{names[i]} IS NULL" for i in claim["not_null"])
        yield f"no NULL in {claim['not_null']}", f"SELECT * FROM {source} WHERE {null}"


def of_level(statement, claim):
    """The same of the statement's own FROM."""
    head, source = statement.head, statement.source
    if claim["non_null"]:
        tests = ", ".join(f"({column}) IS NULL" for column in claim["non_null"])
        yield f"no NULL in {claim['non_null']}", f"{head}SELECT * FROM (SELECT ARRAY[{tests}] AS is_null FROM {source}) q WHERE true = ANY (is_null)"
    trials = claim["trials"]
    if claim["is_total"]:
        trials = [*trials, {"given": claim["total"], "known": [], "is_total": True}]
    for trial in trials:
        given = trial["given"]
        # One value, NULL counted as one, of each column that follows; and one row, if all is known.
        several = [f"count(DISTINCT {column}) + (count({column}) > 0 AND count({column}) < count(*))::int > 1"
                   for column in trial["known"] if column not in given]
        several += ["count(*) > 1"] if trial["is_total"] else []
        if several:
            yield f"from {given} follows {trial['known']}, all: {trial['is_total']}", \
                f"{head}SELECT {', '.join([*given, 'count(*)'])} FROM {source}{group_by(given)} HAVING {' OR '.join(several)}"


def is_valid(conn, sql):
    try:
        conn.execute(f"SELECT * FROM ({sql}) q LIMIT 0")
    except psycopg.Error:
        return False
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_claim_is_denied_by_the_data(program, server, data, chunk):
    claimant = Claimant(program, server, SEED + chunk)
    asked = 0
    for number in range(COUNT // CHUNKS):
        seed = SEED + chunk * (COUNT // CHUNKS) + number
        if number % 15 == 0:
            for line in claims.fill(random.Random(f"data {seed}")):
                data.execute(line)
        statement = claims.Statement(random.Random(seed))
        if not is_valid(data, statement.sql):
            continue
        claim = claimant.ask(statement.sql)
        for what, query in [*of_derived(statement, claim), *(of_level(statement, claim) if statement.source else ())]:
            asked += 1
            try:
                found = data.execute(query).fetchmany(2)
            except psycopg.errors.QueryCanceled:
                continue
            if found:
                pytest.fail(f"seed {seed}: {statement.sql}\n{what}\n{query}\n{found}", pytrace=False)
    claimant.close()
    assert asked > COUNT // CHUNKS, "hardly anything is claimed"
