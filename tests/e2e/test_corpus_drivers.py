"""The corpus through real drivers: each walks a slice of it forward, with values bound as the driver binds them."""
import ast
import asyncio
import base64
import collections
import datetime
import re
import shutil
import subprocess

import asyncpg
import psycopg
import psycopg2
import pytest

import corpus
from test_corpus import shop  # noqa: F401  the filled database
from test_drivers import DRIVERS, JDBC_JAR

SIZE = 7
MORE = {"order_nullable_three", "order_expression_case", "group_by_aggregate_order", "distinct_on_two", "join_full", "window_list", "inner_grouped", "inner_empty",
        "lock_mixed", "cte_twice"}
SLICE = [case for case in corpus.read_all() if case.verdict == "rewrite" and not case.options and not case.collect and (re.match(r"s\d\d", case.name) or case.name in MORE)]
EACH = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SLICE])


def values(case, limit):
    """The parameters as Python's own types, so that a driver chooses their form."""
    text = case.get("params").replace(":limit", str(limit)).replace(":offset", "0")
    return [typed(value) for value in ast.literal_eval("[" + re.sub(r"\bnull\b", "None", text) + "]")]


def typed(value):
    return datetime.datetime.fromisoformat(value) if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d \d\d:", value) else value


def named(case, limit):
    """The statement with psycopg's names for parameters."""
    sql = re.sub(r"\$(\d+)", r"%(p\1)s", case.text(limit, 0).replace("%", "%%"))
    return sql, {f"p{number}": value for number, value in enumerate(values(case, limit), 1)}


def same_rows(got, expected):
    assert collections.Counter(map(repr, got)) == collections.Counter(map(repr, expected))


def walk(ask, following):
    """ask(cursor) gives rows, following() the next cursor."""
    rows, cursor = [], None
    for _ in range(100):
        rows += ask(cursor)
        cursor = following()
        if not cursor:
            return rows
    raise AssertionError("the walk does not end")


def whole(conn, case, run):
    """The result that the server itself gives to the same driver."""
    if case.session:
        run(conn, case.session)
    sql, params = named(case, corpus.ALL)
    return run(conn, sql, params)


def psycopg_run(conn, sql, params=None):
    cursor = conn.execute(sql, params)
    return cursor.fetchall() if cursor.description else []


@EACH
@pytest.mark.parametrize("binding", ["server", "client"])
def test_psycopg(shop, proxy, case, binding):  # noqa: F811
    factory = psycopg.ClientCursor if binding == "client" else None
    with shop.connect(dbname=corpus.DATABASE, cursor_factory=factory) as direct, proxy.connect(dbname=corpus.DATABASE, cursor_factory=factory) as conn:
        expected = whole(direct, case, psycopg_run)
        if case.session:
            conn.execute(case.session)
        sql, params = named(case, SIZE)
        same_rows(walk(lambda cursor: psycopg_run(conn, f"{sql} /* pgseek cursor=%(cursor)s */", {**params, "cursor": cursor}),
                       lambda: conn.info.parameter_status("pgseek.next_cursor")), expected)


def psycopg2_run(conn, sql, params=None):
    with conn.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


@EACH
def test_psycopg2(shop, proxy, case):  # noqa: F811
    direct, conn = psycopg2.connect(shop.dsn(dbname=corpus.DATABASE)), psycopg2.connect(proxy.dsn(dbname=corpus.DATABASE))
    direct.autocommit = True  # what is locked is not to wait for us
    try:
        expected = whole(direct, case, psycopg2_run)
        if case.session:
            psycopg2_run(conn, case.session)
        sql, params = named(case, SIZE)
        same_rows(walk(lambda cursor: psycopg2_run(conn, f"{sql} /* pgseek cursor=%(cursor)s */", {**params, "cursor": cursor}),
                       lambda: conn.get_parameter_status("pgseek.next_cursor")), expected)
    finally:
        direct.close()
        conn.close()


async def asyncpg_walk(proxy, case):
    conn = await asyncpg.connect(host=proxy.host, port=proxy.port, user="postgres", database=corpus.DATABASE, ssl=False)
    try:
        if case.session:
            await conn.execute(case.session)
        params, rows, cursor = values(case, SIZE), [], None
        while True:
            rows += await conn.fetch(f"{case.text(SIZE, 0)} /* pgseek cursor=${len(params) + 1} */", *params, cursor)
            cursor = getattr(conn.get_settings(), "pgseek.next_cursor")
            if not cursor:
                return [tuple(row.values()) for row in rows]
    finally:
        await conn.close()


async def asyncpg_whole(server, case):
    conn = await asyncpg.connect(host=server.host, port=server.port, user="postgres", database=corpus.DATABASE, ssl=False)
    try:
        if case.session:
            await conn.execute(case.session)
        return [tuple(row.values()) for row in await conn.fetch(case.text(corpus.ALL, 0), *values(case, corpus.ALL))]
    finally:
        await conn.close()


@EACH
def test_asyncpg(shop, proxy, case):  # noqa: F811
    same_rows(asyncio.run(asyncpg_walk(proxy, case)), asyncio.run(asyncpg_whole(shop, case)))


def jdbc(endpoint, cases, limit, tag):
    def encoded(text):
        return base64.b64encode(text.encode()).decode()

    lines = [f"{encoded(case.session)} {encoded(tag + case.literal(limit, 0))}" for case in cases]
    run = subprocess.run(["java", "-cp", JDBC_JAR, DRIVERS / "PgjdbcCorpus.java"], input="\n".join(lines), env=endpoint.env(PGDATABASE=corpus.DATABASE),
                         capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stderr
    return [line.split() for line in run.stdout.splitlines()]


def test_pgjdbc(shop, proxy):  # noqa: F811
    """Literals, so that pgjdbc's own question marks are not met; the cursor is a session variable."""
    if not shutil.which("javac") or not JDBC_JAR.exists():
        pytest.skip("a JDK and pgjdbc are not installed")
    cases = [case for case in SLICE if "?" not in case.sql]
    walked, expected = jdbc(proxy, cases, SIZE, "/* pgseek */ "), jdbc(shop, cases, corpus.ALL, "")
    wrong = [case.name for case, got, right in zip(cases, walked, expected, strict=True) if sorted(got) != sorted(right)]
    assert not wrong
