"""Drivers that log in as they are told and walk a tagged statement: one interface for libpq's, Python's, Node.js's and
Java's.

It knows each driver's spelling of TLS, certificates and channel binding, and must not know what should come of an
attempt. Where a driver lacks something, Client.can() says so.
"""
import asyncio
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import urllib.parse
from typing import NamedTuple, Optional

import asyncpg
import psycopg
import psycopg2

import certificates as certs
import cluster

HERE = pathlib.Path(__file__).parent
JDBC_JAR = pathlib.Path("/usr/share/java/postgresql.jar")
SIZE = 7
SELECT = f"SELECT id, body FROM secure_rows WHERE feed = 1 ORDER BY at DESC, id DESC LIMIT {SIZE}"
TAGGED = SELECT + " /* pgseek cursor=<cursor> */"
PLAIN, UNIX, TLS, DIRECT = "plain", "unix", "tls", "direct"
LEGS = (PLAIN, UNIX, TLS, DIRECT)
DISABLE, PREFER, REQUIRE = "disable", "prefer", "require"


class Attempt(NamedTuple):
    """Who logs in, from where and how."""

    host: str
    port: int
    user: str
    password: str
    database: str
    leg: str = PLAIN
    binding: str = DISABLE
    ca: Optional[str] = None  # TLS without it verifies nothing
    sslmode: str = "verify-full"
    client: Optional[certs.Pair] = None
    pkcs12: Optional[str] = None
    is_paged: bool = True

    @property
    def is_tls(self):
        return self.leg in (TLS, DIRECT)


class Outcome(NamedTuple):
    """The rows' ids in order, or what the driver says of the failure."""

    ids: Optional[list] = None
    sqlstate: str = ""
    text: str = ""


def walk(run, is_paged):
    """run(sql) gives rows. All pages, or the first where there is no pgseek."""
    ids, cursor = [], ""
    for _ in range(100):
        ids += [row[0] for row in run(TAGGED.replace("<cursor>", cursor))]
        cursor = run("SHOW pgseek.next_cursor")[0][0] if is_paged else None
        if not cursor:
            return ids
    raise AssertionError("the walk does not end")


# ---- libpq ------------------------------------------------------------------------------------------------------------


def libpq_options(attempt, **more):
    options = {"host": attempt.host, "port": attempt.port, "user": attempt.user, "password": attempt.password, "dbname": attempt.database,
               "channel_binding": attempt.binding, "gssencmode": "disable", "connect_timeout": 20, "sslcert": "/dev/null/none",
               "sslmode": attempt.sslmode if attempt.is_tls else "disable", **more}
    if attempt.is_tls and attempt.ca:
        options["sslrootcert"] = attempt.ca
    if attempt.is_tls and attempt.client:
        options.update(sslcert=attempt.client.cert, sslkey=attempt.client.key)
    if attempt.leg == DIRECT:
        options["sslnegotiation"] = "direct"
    return options


def libpq_dsn(attempt, **more):
    return " ".join(f"{name}='{str(value)}'" for name, value in
                    ((n, str(v).replace("\\", "\\\\").replace("'", "\\'")) for n, v in libpq_options(attempt, **more).items()))


def psycopg_login(attempt):
    try:
        with psycopg.connect(libpq_dsn(attempt), autocommit=True) as conn:
            return Outcome(walk(lambda sql: conn.execute(sql).fetchall(), attempt.is_paged))
    except psycopg.Error as error:
        return Outcome(sqlstate=error.sqlstate or "", text=str(error))


def psycopg2_login(attempt):
    conn = None
    try:
        conn = psycopg2.connect(libpq_dsn(attempt))
        conn.autocommit = True

        def run(sql):
            with conn.cursor() as cur:
                cur.execute(sql)
                return cur.fetchall()

        return Outcome(walk(run, attempt.is_paged))
    except psycopg2.Error as error:
        return Outcome(sqlstate=error.pgcode or "", text=str(error))
    finally:
        if conn:
            conn.close()


# psql cannot loop over pages, and interpolates nothing in comments: a session variable carries the cursor, for more pages
# than there are.
PSQL_PAGES = 4
PSQL_FIRST = SELECT + " /* pgseek */;\n"
PSQL_NEXT = ("SELECT current_setting('pgseek.next_cursor') AS c \\gset\n\\if `test -n \":c\" && echo 1 || echo 0`\n"
             "SET pgseek.cursor = :'c';\n" + PSQL_FIRST + "\\endif\n")


def psql_login(attempt, library=None, **more):
    script = PSQL_FIRST + (PSQL_NEXT * PSQL_PAGES if attempt.is_paged else "")
    run = subprocess.run(psql_command(attempt, **more), env=psql_env(library), input=script, capture_output=True, text=True, timeout=60)
    if run.returncode == 0:
        return Outcome([int(line.split("|")[0]) for line in run.stdout.splitlines()], text=run.stderr)
    said = re.search(r"(?:FATAL|ERROR):  ([0-9A-Z]{5}):", run.stderr)
    return Outcome(sqlstate=said.group(1) if said else "", text=run.stderr)


def psql_command(attempt, **more):
    """The program itself: Debian's wrapper in /usr/bin would choose a version of its own."""
    return [cluster.program_path("psql"), "-X", "-q", "-A", "-t", "-w", "-v", "ON_ERROR_STOP=1", "-d", libpq_dsn(attempt, **more)]


def psql_env(library=None):
    """`library`: the folder of another libpq."""
    return {**os.environ, "PGAPPNAME": "psql", "LC_ALL": "C.UTF-8", **({"LD_LIBRARY_PATH": str(library)} if library else {})}


# ---- asyncpg ----------------------------------------------------------------------------------------------------------


def ssl_context(attempt):
    if not attempt.is_tls:
        return False
    context = ssl.create_default_context(cafile=attempt.ca)
    context.check_hostname = bool(attempt.ca) and attempt.sslmode == "verify-full"
    if not attempt.ca:
        context.verify_mode = ssl.CERT_NONE
    if attempt.client:
        context.load_cert_chain(attempt.client.cert, attempt.client.key)
    if attempt.leg == DIRECT:
        context.set_alpn_protocols(["postgresql"])
    return context


def asyncpg_login(attempt):
    async def run():
        conn = await asyncpg.connect(host=attempt.host, port=attempt.port, user=attempt.user, password=attempt.password, database=attempt.database,
                                     ssl=ssl_context(attempt), direct_tls=attempt.leg == DIRECT, timeout=20)
        try:
            ids, cursor = [], ""
            while cursor is not None:
                ids += [row[0] for row in await conn.fetch(TAGGED.replace("<cursor>", cursor))]
                cursor = (await conn.fetchval("SHOW pgseek.next_cursor") or None) if attempt.is_paged else None
            return ids
        finally:
            await conn.close()

    try:
        return Outcome(asyncio.run(run()))
    except asyncpg.PostgresError as error:
        return Outcome(sqlstate=error.sqlstate or "", text=f"{error} {error.detail or ''} {error.hint or ''}")
    except (asyncpg.InterfaceError, OSError, asyncio.TimeoutError) as error:
        return Outcome(text=f"{type(error).__name__}: {error}")


# ---- Node.js and Java, which are started once -------------------------------------------------------------------------


class Lines:
    """A program that reads attempts and writes outcomes."""

    def __init__(self, command, env=None):
        self.command, self.env, self.process = command, {**os.environ, **(env or {})}, None

    def __call__(self, attempt):
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        fields = {"host": attempt.host, "port": attempt.port, "user": attempt.user, "password": attempt.password, "database": attempt.database,
                  "leg": attempt.leg, "binding": attempt.binding, "sslmode": attempt.sslmode, "sql": TAGGED, "pages": "yes" if attempt.is_paged else "no"}
        if attempt.ca:
            fields["ca"] = attempt.ca
        if attempt.client:
            fields.update(cert=attempt.client.cert, key=attempt.client.key)
        if attempt.pkcs12:
            fields.update(pkcs12=attempt.pkcs12, passphrase=certs.PASSPHRASE)
        self.process.stdin.write(urllib.parse.urlencode(fields) + "\n")
        self.process.stdin.flush()
        answer = dict(urllib.parse.parse_qsl(self.process.stdout.readline(), keep_blank_values=True))
        if "ids" in answer:
            return Outcome([int(number) for number in answer["ids"].split()])
        return Outcome(sqlstate=answer.get("sqlstate", ""), text=answer.get("text", "the program has ended"))

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(20)
            self.process = None


NODE_ENV = {"NODE_PATH": str(cluster.NODE_MODULES)}
NODE_PG = Lines(["node", HERE / "drivers" / "logins.js", "pg"], NODE_ENV)
POSTGRES_JS = Lines(["node", HERE / "drivers" / "logins.js", "postgres"], NODE_ENV)
PGJDBC = Lines(["java", "-Xshare:auto", "-cp", str(JDBC_JAR), HERE / "drivers" / "Logins.java"])


def stop_programs():
    for program in (NODE_PG, POSTGRES_JS, PGJDBC):
        program.stop()


# ---- the table --------------------------------------------------------------------------------------------------------


class Client(NamedTuple):
    name: str
    login: object
    legs: tuple  # that it can begin on
    bindings: tuple = (DISABLE,)  # values of channel_binding that it knows; only DISABLE: it never binds
    is_libpq: bool = False  # no SQLSTATE for what happens at a login, but for psql
    missing: object = lambda: None  # why it cannot run here

    def can(self, leg, binding):
        return leg in self.legs and binding in self.bindings


def _node_is_missing():
    return None if shutil.which("node") and cluster.NODE_MODULES.is_dir() else "Node.js and its drivers are not installed"


def _java_is_missing():
    return None if shutil.which("javac") and JDBC_JAR.exists() else "a JDK and pgjdbc are not installed"


ALL_BINDINGS = (DISABLE, PREFER, REQUIRE)
CLIENTS = {client.name: client for client in [
    Client("psql", psql_login, (PLAIN, UNIX, TLS), ALL_BINDINGS, True),
    Client("psycopg", psycopg_login, (PLAIN, UNIX, TLS), ALL_BINDINGS, True),
    Client("psycopg2", psycopg2_login, (PLAIN, UNIX, TLS), ALL_BINDINGS, True),
    Client("asyncpg", asyncpg_login, LEGS),
    Client("node-postgres", NODE_PG, LEGS, (DISABLE, PREFER), missing=_node_is_missing),
    Client("postgres.js", POSTGRES_JS, LEGS, missing=_node_is_missing),
    Client("pgjdbc", PGJDBC, (PLAIN, TLS), missing=_java_is_missing),
]}
