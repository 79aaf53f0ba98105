"""Real drivers: each pages to the end by every cursor channel that it can use, prepared and not, in and out of
transactions, pipelined where it can."""
import asyncio
import json
import pathlib
import re
import shutil
import subprocess

import asyncpg
import psycopg
import psycopg2
import pytest

HERE = pathlib.Path(__file__).parent
DRIVERS = HERE / "drivers"
NODE_MODULES = HERE / "node" / "node_modules"
JDBC_JAR = pathlib.Path("/usr/share/java/postgresql.jar")
FEED, SIZE = 1, 7
SELECT = "SELECT id, body FROM driver_rows WHERE feed = {} ORDER BY at DESC, id DESC LIMIT {}"


@pytest.fixture(scope="module")
def expected(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS driver_rows; CREATE TABLE driver_rows (id int8 PRIMARY KEY, feed int4 NOT NULL, at timestamptz NOT NULL, body text NOT NULL)")
        conn.execute("INSERT INTO driver_rows SELECT i, i % 2, timestamptz '2026-01-01' + make_interval(mins => i / 9), 'body ' || i FROM generate_series(1, 60) i")
        ids = [row[0] for row in conn.execute("SELECT id FROM driver_rows WHERE feed = 1 ORDER BY at DESC, id DESC")]
        assert len(ids) == 30
        yield ids
        conn.execute("DROP TABLE driver_rows")


def walk(ask, read):
    """ask(cursor) gives rows, read(rows) the next cursor."""
    ids, cursor = [], None
    for _ in range(100):
        rows = ask(cursor)
        ids += [row[0] for row in rows]
        cursor = read(rows)
        if not cursor:
            return ids
    raise AssertionError("the walk does not end")


def comment(cursor, more=""):
    return f" /* pgseek {f'cursor={cursor}' if cursor else ''} {more} */"


def from_columns(rows):
    return rows[-1][2] if rows and rows[-1][3] else None


# ---- psycopg 3 --------------------------------------------------------------------------------------------------------

BOUND = SELECT.format("%s", "%s") + " /* pgseek cursor=%s */"
PLAIN = SELECT.format("%s", "%s") + " /* pgseek */"


def psycopg_channels(conn):
    def rows(sql, params=None, **options):
        return conn.execute(sql, params, **options).fetchall()

    def status(_=None):
        return conn.info.parameter_status("pgseek.next_cursor")

    def set_config(cursor, local=False):
        return rows("SELECT set_config('pgseek.cursor', %s, %s)", [cursor or "", local])

    def in_pipeline(cursor):
        with conn.pipeline() as pipeline:
            conn.execute("SELECT 1")
            set_config(cursor)
            page = conn.execute(PLAIN, [FEED, SIZE])
            conn.execute("SELECT 2")
            pipeline.sync()
            return page.fetchall()

    def piped_parameter(cursor):
        with conn.pipeline():
            conn.execute("SELECT 1")
            return conn.execute(BOUND, [FEED, SIZE, cursor]).fetchall()

    def streamed(cursor):
        with conn.cursor() as cur:
            return list(cur.stream(BOUND, [FEED, SIZE, cursor]))

    def local(cursor):
        with conn.transaction():
            set_config(cursor, True)
            return rows(PLAIN, [FEED, SIZE])

    def in_transaction(ask):
        def run(cursor):
            with conn.transaction():
                return ask(cursor)
        return run

    def after_set(cursor):
        conn.execute(f"SET pgseek.cursor = '{cursor or ''}'")
        return rows(PLAIN, [FEED, SIZE])

    def binary(cursor):
        with conn.cursor(binary=True) as cur:
            return cur.execute(BOUND, [FEED, SIZE, cursor]).fetchall()

    def client_side(cursor):
        return psycopg.ClientCursor(conn).execute(BOUND, [FEED, SIZE, cursor]).fetchall()

    def by_parameter(cursor):
        return rows(BOUND, [FEED, SIZE, cursor])

    def prepared(cursor):
        return rows(BOUND, [FEED, SIZE, cursor], prepare=True)

    def noticed(cursor):
        return rows(SELECT.format(FEED, SIZE) + comment(cursor, "deliver=notice"))

    def notice(_):
        said = conn.last_notice
        return said.get("pgseek.next_cursor", said.get("next_cursor"))

    conn.add_notice_handler(lambda said: setattr(conn, "last_notice", json.loads(said.message_detail)))
    return {
        "parameter": (by_parameter, status),
        "parameter, prepared": (prepared, status),
        "parameter, binary": (binary, status),
        "parameter, in a transaction": (in_transaction(by_parameter), status),
        "parameter, prepared, in a transaction": (in_transaction(prepared), status),
        "parameter, in a pipeline": (piped_parameter, status),
        "parameter, streamed": (streamed, status),
        "interpolated": (client_side, status),
        "comment": (lambda cursor: rows(SELECT.format(FEED, SIZE) + comment(cursor)), status),
        "SET": (after_set, lambda _: rows("SHOW pgseek.next_cursor")[0][0]),
        "set_config in a pipeline": (in_pipeline, status),
        "set_config local": (local, lambda _: rows("SELECT current_setting('pgseek.next_cursor')")[0][0]),
        "notice": (noticed, notice),
        "columns": (lambda cursor: rows(SELECT.format(FEED, SIZE) + comment(cursor, "deliver=columns")), from_columns),
        "columns, parameter": (lambda cursor: rows(BOUND.replace("pgseek", "pgseek deliver=columns"), [FEED, SIZE, cursor]), from_columns),
    }


class Connection(psycopg.Connection):
    last_notice = None


PSYCOPG = ["parameter", "parameter, prepared", "parameter, binary", "parameter, in a transaction", "parameter, prepared, in a transaction", "parameter, in a pipeline",
           "parameter, streamed", "interpolated", "comment", "SET", "set_config in a pipeline", "set_config local", "notice", "columns", "columns, parameter"]


@pytest.mark.parametrize("channel", PSYCOPG)
def test_psycopg(proxy, expected, channel):
    with Connection.connect(proxy.dsn(), autocommit=True) as conn:
        assert walk(*psycopg_channels(conn)[channel]) == expected


def test_psycopg_pages_in_one_pipeline(proxy, expected):
    """Several first pages and other statements in one pipeline: each has its own rows."""
    with proxy.connect() as conn, conn.pipeline():
        cursors = []
        for size in (1, 3, 7):
            cursors.append((size, conn.execute(BOUND, [FEED, size, None])))
            conn.execute("SELECT 1")
        for size, cursor in cursors:
            assert [row[0] for row in cursor.fetchall()] == expected[:size]


# ---- psycopg2 ---------------------------------------------------------------------------------------------------------


def psycopg2_channels(conn):
    def rows(sql, params=None):
        with conn.cursor() as cur:
            cur.execute(sql, params)
            return cur.fetchall() if cur.description else []

    def status(_=None):
        return conn.get_parameter_status("pgseek.next_cursor")

    def after(set_cursor):
        def ask(cursor):
            set_cursor(cursor or "")
            return rows(PLAIN, [FEED, SIZE])
        return ask

    def notice(_):
        return re.search(r'next_cursor"\s*:\s*"([^"]*)"', conn.notices[-1]).group(1)

    # psycopg2 quotes what it writes into the comment too, and writes NULL for None.
    return {
        "interpolated": (lambda cursor: rows(BOUND, [FEED, SIZE, cursor]), status),
        "comment": (lambda cursor: rows(SELECT.format(FEED, SIZE) + comment(cursor)), status),
        "SET": (after(lambda cursor: rows("SET pgseek.cursor = %s", [cursor])), lambda _: rows("SHOW pgseek.next_cursor")[0][0]),
        "set_config": (after(lambda cursor: rows("SELECT set_config('pgseek.cursor', %s, false)", [cursor])), lambda _: rows("SELECT current_setting('pgseek.next_cursor')")[0][0]),
        "notice": (lambda cursor: rows(SELECT.format(FEED, SIZE) + comment(cursor, "deliver='notice,status'")), lambda _: notice(_) if status() else None),
        "columns": (lambda cursor: rows(SELECT.format(FEED, SIZE) + comment(cursor, "deliver=columns")), from_columns),
    }


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("channel", ["interpolated", "comment", "SET", "set_config", "notice", "columns"])
def test_psycopg2(proxy, expected, channel, autocommit):
    conn = psycopg2.connect(proxy.dsn())
    conn.autocommit = autocommit
    try:
        assert walk(*psycopg2_channels(conn)[channel]) == expected
    finally:
        conn.close()


# ---- asyncpg ----------------------------------------------------------------------------------------------------------

NUMBERED = SELECT.format("$1", "$2") + " /* pgseek cursor=$3 */"


async def walk_async(ask, read):
    ids, cursor = [], None
    for _ in range(100):
        rows = await ask(cursor)
        ids += [row[0] for row in rows]
        cursor = await read(rows)
        if not cursor:
            return ids
    raise AssertionError("the walk does not end")


async def asyncpg_channels(conn):
    notices = []
    conn.add_log_listener(lambda _, message: notices.append(message))
    prepared = await conn.prepare(NUMBERED)

    async def status(_=None):
        return getattr(conn.get_settings(), "pgseek.next_cursor")

    async def show(_):
        return await conn.fetchval("SHOW pgseek.next_cursor")

    async def by_parameter(cursor):
        return await conn.fetch(NUMBERED, FEED, SIZE, cursor)

    async def in_transaction(cursor):
        async with conn.transaction():
            return await by_parameter(cursor)

    async def in_savepoint(cursor):
        async with conn.transaction():
            async with conn.transaction():
                return await prepared.fetch(FEED, SIZE, cursor)

    async def in_portions(cursor):
        async with conn.transaction():
            return [row async for row in conn.cursor(NUMBERED, FEED, SIZE, cursor, prefetch=3)]

    async def variable(cursor):
        await conn.fetchval("SELECT set_config('pgseek.cursor', $1, false)", cursor or "")
        return await conn.fetch(SELECT.format("$1", "$2") + " /* pgseek */", FEED, SIZE)

    async def set_statement(cursor):
        await conn.execute(f"SET pgseek.cursor = '{cursor or ''}'")
        return await conn.fetch(SELECT.format("$1", "$2") + " /* pgseek */", FEED, SIZE)

    async def noticed(cursor):
        return await conn.fetch(SELECT.format(FEED, SIZE) + comment(cursor, "deliver='notice,status'"))

    async def notice(_):
        return (await status()) and re.search(r'next_cursor"\s*:\s*"([^"]*)"', notices[-1].detail).group(1)

    async def columns(cursor):
        return await conn.fetch(SELECT.format(FEED, SIZE) + comment(cursor, "deliver=columns"))

    async def last_column(rows):
        return from_columns(rows)

    return {
        "parameter": (by_parameter, status), "parameter, prepared": (lambda cursor: prepared.fetch(FEED, SIZE, cursor), show),
        "parameter, in a transaction": (in_transaction, status), "parameter, in a savepoint": (in_savepoint, status), "parameter, in portions": (in_portions, status),
        "comment": (lambda cursor: conn.fetch(SELECT.format(FEED, SIZE) + comment(cursor)), status), "set_config": (variable, show), "SET": (set_statement, show),
        "notice": (noticed, notice), "columns": (columns, last_column),
    }


@pytest.mark.parametrize("channel", ["parameter", "parameter, prepared", "parameter, in a transaction", "parameter, in a savepoint", "parameter, in portions", "comment",
                                     "set_config", "SET", "notice", "columns"])
def test_asyncpg(proxy, expected, channel):
    async def run():
        conn = await asyncpg.connect(host=proxy.host, port=proxy.port, user="postgres", database="e2e", ssl=False)
        try:
            assert await walk_async(*(await asyncpg_channels(conn))[channel]) == expected
        finally:
            await conn.close()
    asyncio.run(run())


def test_asyncpg_moves_in_a_page(proxy, expected):
    """cursor.forward() is SQL on the portal of a page: right rows or a refusal, never one row too many."""
    async def run():
        conn = await asyncpg.connect(host=proxy.host, port=proxy.port, user="postgres", database="e2e", ssl=False)
        try:
            async with conn.transaction():
                cursor = await conn.cursor(NUMBERED, FEED, SIZE, None)
                await cursor.fetch(1)
                try:
                    await cursor.forward(2)
                except asyncpg.PostgresError as error:
                    assert error.sqlstate == "PS005"
                    return
                assert [row[0] for row in await cursor.fetch(100)] == expected[3:SIZE]
        finally:
            await conn.close()
    asyncio.run(run())


# ---- Node.js and Java -------------------------------------------------------------------------------------------------


def check(walks, expected, least):
    assert len(walks) >= least
    wrong = {name: ids for name, ids in walks.items() if ids != expected}
    assert not wrong, json.dumps(wrong, indent=1)


@pytest.mark.parametrize("program, least", [("node_pg.js", 13), ("postgres_js.js", 14)])
def test_node(proxy, expected, program, least):
    if not shutil.which("node") or not NODE_MODULES.is_dir():
        pytest.skip("Node.js and its drivers are not installed")
    run = subprocess.run(["node", DRIVERS / program], env=proxy.env(NODE_PATH=str(NODE_MODULES)), capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    check(json.loads(run.stdout), expected, least)


def test_pgjdbc(proxy, expected):
    if not shutil.which("javac") or not JDBC_JAR.exists():
        pytest.skip("a JDK and pgjdbc are not installed")
    run = subprocess.run(["java", "-cp", JDBC_JAR, DRIVERS / "Pgjdbc.java"], env=proxy.env(), capture_output=True, text=True, timeout=180)
    assert run.returncode == 0, run.stderr
    walks = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    refused = walks.pop("simple, parameter is refused")
    assert refused.startswith("PS000"), refused
    check({name: json.loads(ids) if ids.startswith("[") else ids for name, ids in walks.items()}, expected, 34)
