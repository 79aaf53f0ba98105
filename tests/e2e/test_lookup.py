"""auth_query over connections that are kept: how many a server sees, and that no answer differs from one over a new
connection, whatever the last question left behind and whatever became of the server meanwhile.

What is asked, and what a stranger learns from it, is test_auth.py's.
"""
import concurrent.futures
import contextlib
import pathlib
import re
import socket
import struct
import threading

import psycopg
import pytest

import cluster
import scram
import secure
import wire

USER, PASSWORD = "scram_user", cluster.PASSWORDS["scram_user"]
OURS = "pgseek auth_query"
ASKED = "SELECT rolname, rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1"


@pytest.fixture(scope="module")
def asked(run_dir):
    """A server of this module's own: it is stopped, and its roles change."""
    server = cluster.Cluster(run_dir / "asked")
    try:
        yield server.start(log_connections="on")
    finally:
        server.stop()


@pytest.fixture
def start(asked, make_proxy):
    """start(databases=None, **settings): a proxy with one worker that asks `asked`."""
    def run(databases=None, **settings):
        return make_proxy(databases or {"*": f"host=127.0.0.1 port={asked.port}"},
                          **{"workers": 1, "auth_type": "scram-sha-256", "auth_user": "postgres", "auth_dbname": "postgres", **settings})
    return run


@pytest.fixture
def connections(asked):
    """How many connections for look-ups the server has seen since the test began."""
    def seen():
        return len(re.findall(f"connection authorized: .*application_name={OURS}", asked.log.read_text()))
    before = seen()
    return lambda: seen() - before


@pytest.fixture
def admin(asked):
    with asked.connect(dbname="postgres") as conn:
        yield conn


def log_in(proxy, user=USER, password=PASSWORD, **options):
    with proxy.connect(user=user, password=password, **options) as conn:
        assert conn.execute("SELECT current_user").fetchone() == (user,)


def refusal(proxy, **options):
    with pytest.raises(psycopg.OperationalError) as caught:
        log_in(proxy, **options)
    return str(caught.value)


def kept(admin):
    return [pid for (pid,) in admin.execute("SELECT pid FROM pg_stat_activity WHERE application_name = %s", (OURS,))]


def end_kept(admin):
    """They are gone when this returns, and the proxy has not been told to look."""
    assert kept(admin)
    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", (OURS,))
    cluster.wait_until(lambda: not kept(admin), "a kept connection is still there")


# ---- how many ---------------------------------------------------------------------------------------------------------


def test_one_connection_serves_many(start, connections):
    proxy = start()
    for _ in range(10):
        log_in(proxy)
        assert "password authentication failed" in refusal(proxy, password="wrong")
        assert "password authentication failed" in refusal(proxy, user=secure.NOBODY)
    assert connections() == 1


def test_a_crowd_shares_two(start, connections, admin):
    proxy = start()
    with concurrent.futures.ThreadPoolExecutor(16) as crowd:
        for done in [crowd.submit(log_in, proxy) for _ in range(64)]:
            done.result()
    assert connections() <= 2
    assert 1 <= len(kept(admin)) <= 2


def test_others_databases_are_asked_in_their_own(start, connections, admin):
    """Without auth_dbname each database has connections of its own; no more than two are kept."""
    proxy = start({name: f"host=127.0.0.1 port={cluster_port(admin)} dbname={name}" for name in ("postgres", "template1", cluster.DATABASE)}, auth_dbname=None)
    for asked, name in enumerate(("postgres", "template1", cluster.DATABASE), 1):
        log_in(proxy, dbname=name)
        assert connections() == asked
        assert len(kept(admin)) <= 2


def cluster_port(admin):
    return admin.execute("SHOW port").fetchone()[0]


def test_strangers_who_hang_up_leave_a_connection(start, connections, admin):
    """Else each of them would make the server begin a process."""
    proxy = start(auth_query=f"{ASKED} AND pg_catalog.pg_sleep(0.05) IS NOT NULL")
    rounds = 8
    for _ in range(rounds):
        with proxy.wire(start=False) as conn:
            conn.send(wire.startup(user=USER, database="postgres"))
            cluster.wait_until(lambda: admin.execute("SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND wait_event = 'PgSleep'", (OURS,)).fetchone(),
                               "it is not asked for")
    assert connections() < rounds


# ---- a session like a new one -----------------------------------------------------------------------------------------

# Answers, and leaves behind all that a session can have; fails where anything of the kind is there already.
UNTIDY = """
DROP FUNCTION IF EXISTS public.untidy(text);
CREATE OR REPLACE FUNCTION public.untidy(who text, OUT rolname text, OUT rolpassword text) LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('search_path') <> 'pg_catalog' OR current_setting('statement_timeout') <> '15s' OR current_setting('work_mem') = '77MB'
       OR coalesce(current_setting('untidy.x', true), '') <> '' OR current_user <> 'postgres' OR session_user <> 'postgres'
       OR to_regclass('pg_temp.untidy_rows') IS NOT NULL OR EXISTS (SELECT FROM pg_prepared_statements) OR EXISTS (SELECT FROM pg_cursors WHERE name <> '')
       OR EXISTS (SELECT FROM pg_listening_channels()) OR EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) THEN
        RAISE EXCEPTION 'something was left behind';
    END IF;
    SELECT a.rolname, a.rolpassword INTO rolname, rolpassword FROM pg_authid a WHERE a.rolname = who;
    CREATE TEMP TABLE untidy_rows ();
    EXECUTE 'PREPARE untidy AS SELECT 1; DECLARE untidy CURSOR WITH HOLD FOR SELECT 1; LISTEN untidy; NOTIFY untidy';
    PERFORM pg_advisory_lock(1), set_config('search_path', 'evil', false), set_config('statement_timeout', '1min', false), set_config('work_mem', '77MB', false),
            set_config('untidy.x', 'x', false);
    RAISE WARNING 'noise of %', who;
    {}
END $$"""
ROLES = {"the same role": "", "another role": "PERFORM set_config('role', 'app', false);", "another user": "EXECUTE 'SET SESSION AUTHORIZATION app';"}


@pytest.mark.parametrize("role", ROLES)
def test_nothing_is_left_behind(start, connections, admin, role):
    admin.execute(UNTIDY.format(ROLES[role]))
    proxy = start(auth_query="SELECT * FROM public.untidy($1)")
    for _ in range(4):
        log_in(proxy)
    assert connections() == 1
    cluster.wait_until(lambda: not admin.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone(), "a lock stays")
    assert "noise" not in proxy.log() and "something" not in proxy.log()


def test_what_fails_is_asked_anew(start, connections, admin):
    """A question that only a new connection can answer; one that none can is asked twice at most."""
    admin.execute("CREATE TABLE IF NOT EXISTS public.askers (pid int)")
    admin.execute("CREATE OR REPLACE FUNCTION public.once(name text, OUT rolname text, OUT rolpassword text) LANGUAGE plpgsql AS $$ BEGIN"
                  " IF name = 'never' OR EXISTS (SELECT FROM public.askers WHERE pid = pg_backend_pid()) THEN RAISE EXCEPTION 'not again'; END IF;"
                  " INSERT INTO public.askers VALUES (pg_backend_pid());"
                  " SELECT a.rolname, a.rolpassword INTO rolname, rolpassword FROM pg_authid a WHERE a.rolname = name; END $$")
    proxy = start(auth_query="SELECT * FROM public.once($1)")
    for _ in range(3):
        log_in(proxy)
    assert connections() == 3
    assert "auth_query failed" not in proxy.log()
    assert "authentication is not possible" in refusal(proxy, user="never")
    assert proxy.log().count("auth_query failed: not again") == 1
    assert connections() == 4 and not kept(admin)


# ---- servers that change ----------------------------------------------------------------------------------------------


def test_a_connection_that_was_ended(start, connections, admin):
    proxy = start()
    for expected in (1, 2, 3):
        log_in(proxy)
        assert connections() == expected
        end_kept(admin)
    assert "auth_query failed" not in proxy.log()


def test_a_server_that_was_restarted(start, asked, connections):
    proxy = start()
    log_in(proxy)
    asked.stop()
    assert "authentication is not possible" in refusal(proxy)
    asked._launch()
    log_in(proxy)
    assert connections() == 2


def test_the_next_host_is_asked(start, asked, connections, admin):
    """The first one goes, and comes back: new connections go to the first that accepts."""
    door = pathlib.Path(asked.socket_dir) / f".s.PGSQL.{asked.port}"
    proxy = start({"*": f"host={asked.socket_dir},127.0.0.1 port={asked.port} sslmode=disable"})

    def came_by():
        return admin.execute("SELECT array_agg(client_addr IS NOT NULL) FROM pg_stat_activity WHERE application_name = %s", (OURS,)).fetchone()[0]

    log_in(proxy)
    assert came_by() == [False]
    door.rename(door.with_suffix(".away"))
    try:
        log_in(proxy)
        assert connections() == 1
        end_kept(admin)
        log_in(proxy)
        assert connections() == 2 and came_by() == [True]
    finally:
        door.with_suffix(".away").rename(door)
    end_kept(admin)
    log_in(proxy)
    assert came_by() == [False]


def test_a_password_that_was_changed(start, asked, connections, admin, run_dir, monkeypatch):
    """The old connection is as good as before; a new one takes the password that the file has then."""
    passwords = secure.private_file(run_dir / "pgpass", "")
    monkeypatch.setenv("PGPASSFILE", str(passwords))

    def change(password):
        passwords.write_text(f"127.0.0.1:{asked.port}:postgres:asker:{password}\n")

    hba = asked.data / "pg_hba.conf"
    before = hba.read_text()
    admin.execute("DROP ROLE IF EXISTS asker; CREATE ROLE asker LOGIN SUPERUSER PASSWORD 'first'")
    hba.write_text("host all asker 127.0.0.1/32 scram-sha-256\n" + before)
    admin.execute("SELECT pg_reload_conf()")
    cluster.wait_until(lambda: admin.execute("SELECT 1 FROM pg_hba_file_rules WHERE user_name = '{asker}'").fetchone(), "the rules are not read")
    try:
        change("first")
        proxy = start(auth_user="asker")
        log_in(proxy)
        admin.execute("ALTER ROLE asker PASSWORD 'second'")
        log_in(proxy)
        assert connections() == 1
        change("wrong")
        end_kept(admin)
        assert "authentication is not possible" in refusal(proxy)
        assert "auth_query failed" in proxy.log() and "password authentication failed" in proxy.log()
        change("second")
        log_in(proxy)
    finally:
        hba.write_text(before)
        admin.execute("SELECT pg_reload_conf()")


def test_a_reload_closes_what_was_kept(start, connections, admin):
    """Without a question: what has changed may be the password, or whom TLS trusts."""
    proxy = start()
    log_in(proxy)
    old = kept(admin)
    assert len(old) == 1
    proxy.settings["auth_query"] = "SELECT 'nobody'::text, NULL::text WHERE $1::text IS NOT NULL"
    proxy.write_conf()
    proxy.reload()
    cluster.wait_until(lambda: not kept(admin), "the connection is still there")
    assert "authentication is not possible" in refusal(proxy)
    assert "the row of another user" in proxy.log()


def test_a_reload_while_it_is_asked(start, connections, admin):
    """What was begun under the old settings is not kept under the new ones."""
    proxy = start(auth_query=f"{ASKED} AND pg_catalog.pg_sleep(0.5) IS NOT NULL")
    with concurrent.futures.ThreadPoolExecutor(1) as background:
        first = background.submit(log_in, proxy)
        cluster.wait_until(lambda: kept(admin), "it is not asked for")
        proxy.settings["auth_query"] = ASKED
        proxy.write_conf()
        before = proxy.log().count("reloaded")
        proxy.reload()
        cluster.wait_until(lambda: proxy.log().count("reloaded") > before, "it does not reload")
        first.result()
    cluster.wait_until(lambda: not kept(admin), "the old connection is kept")
    log_in(proxy)
    assert connections() == 2


def test_a_stop_closes_what_was_kept(start, admin):
    proxy = start()
    log_in(proxy)
    assert len(kept(admin)) == 1
    proxy.stop()
    cluster.wait_until(lambda: not kept(admin), "the connection is still there")


def test_a_database_can_be_dropped(start, admin):
    """DROP DATABASE waits a few seconds for others to go: long enough for a connection in the client's own database."""
    admin.execute("DROP DATABASE IF EXISTS dropped")
    admin.execute("CREATE DATABASE dropped")
    proxy = start({"dropped": f"host=127.0.0.1 port={cluster_port(admin)}"}, auth_dbname=None)
    log_in(proxy, dbname="dropped")
    admin.execute("DROP DATABASE dropped")
    assert not kept(admin)


# ---- servers that lie -------------------------------------------------------------------------------------------------


class Oracle(contextlib.AbstractContextManager):
    """A server that lets everybody in and answers questions as `script` says: a function of (self, conn, number of the
    connection, number of the question on it). Sweeps it obeys."""

    def __init__(self, script, *parameters):
        self.script, self.parameters = script, parameters
        self.asked = []  # how many questions came on each connection of ours
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def __exit__(self, *_):
        self.over.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, sock):
        with wire.Wire(sock) as conn, contextlib.suppress(EOFError, OSError):
            (length,) = struct.unpack("!i", conn.read_bytes(4))
            packet = conn.read_bytes(length - 4)
            conn.send(scram.request(scram.OK), *(wire.message("S", f"{name}\0{value}\0".encode()) for name, value in self.parameters),
                      wire.message("K", struct.pack("!ii", 1, 2)), wire.message("Z", b"I"))
            if OURS.encode() in packet:
                self._answer(conn)
            else:
                conn.until("X")

    def _answer(self, conn):
        number = len(self.asked)
        self.asked.append(0)
        while True:
            last = conn.until("S", "Q", "X")[-1]
            if last.kind == "X":
                return
            if last.kind == "Q":
                assert last.body == b"DISCARD ALL\0"
                conn.send(wire.message("C", b"DISCARD ALL\0"), wire.message("Z", b"I"))
                continue
            self.asked[number] += 1
            self.script(self, conn, number, self.asked[number])

    @staticmethod
    def row():
        columns = b"".join(name + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0) for name in (b"rolname\0", b"rolpassword\0"))
        values = b"".join(struct.pack("!i", len(value)) + value for value in (USER.encode(), secure.scram_secret(PASSWORD).encode()))
        return b"".join([wire.message("1"), wire.message("2"), wire.message("T", struct.pack("!h", 2) + columns), wire.message("D", struct.pack("!h", 2) + values)])

    def answers(self, conn, *_, status=b"I", more=b""):
        conn.send(self.row(), wire.message("C", b"SELECT 1\0"), more, wire.message("Z", status))

    def is_silent(self, *_):
        self.over.wait()


@pytest.fixture
def against(make_proxy):
    """against(oracle): a proxy in front of it."""
    def run(oracle):
        return make_proxy({"*": f"host=127.0.0.1 port={oracle.port} sslmode=disable"}, workers=1, auth_type="scram-sha-256", auth_user="asker", auth_dbname="d")
    return run


def attempt(proxy, user=USER, password=PASSWORD):
    with scram.connect(proxy) as conn:
        return scram.log_in(conn, user, "d", scram.Prover(password))


def at_second(act):
    """Honest, but for the second question on the first connection."""
    return lambda oracle, conn, number, question: (act if (number, question) == (0, 2) else Oracle.answers)(oracle, conn)


def breaks_off(oracle, conn):
    conn.send(oracle.row()[:-9])
    conn.close()


def says_goodbye(oracle, conn):
    conn.send(wire.message("E", b"SFATAL\0VFATAL\0C57P01\0Mgoing\0\0"))
    conn.close()


FAILURES = {"breaks off": breaks_off, "says goodbye": says_goodbye, "hangs up": lambda oracle, conn: conn.close(), "resets": lambda oracle, conn: conn.reset(),
            "says nothing any more": Oracle.is_silent, "answers something else": lambda oracle, conn: conn.send(wire.message("t", b"\0\0"))}


@pytest.mark.parametrize("how", FAILURES)
def test_a_kept_connection_that_fails_is_no_failure(against, how):
    with Oracle(at_second(FAILURES[how])) as oracle:
        proxy = against(oracle)
        for asked in ([1], [2, 1], [2, 2]):
            assert attempt(proxy)[-1].kind == "Z"
            assert oracle.asked == asked
        assert "auth_query failed" not in proxy.log()


@pytest.mark.parametrize("status", [b"T", b"E"])
def test_an_open_transaction_is_not_kept(against, status):
    with Oracle(lambda oracle, conn, *_: oracle.answers(conn, status=status)) as oracle:
        proxy = against(oracle)
        for asked in ([1], [1, 1], [1, 1, 1]):
            assert attempt(proxy)[-1].kind == "Z"
            assert oracle.asked == asked


def test_an_answer_has_an_end(against):
    """libpq keeps what a server says of its parameters, and rows of any length."""
    def talks(oracle, conn, *_):
        with contextlib.suppress(OSError):
            for i in range(4000):
                conn.send(wire.message("S", b"p%d\0" % i + b"x" * 20000 + b"\0"))
        oracle.answers(conn)

    with Oracle(talks) as oracle:
        proxy = against(oracle)
        heard = attempt(proxy)
        assert heard[-1].kind == "E" and heard[-1].fields()["C"] == "08006"
        cluster.wait_until(lambda: "auth_query failed: the server sends too much" in proxy.log(), "the log does not say why")


def test_nobody_has_the_count_that_the_server_gives(against):
    """PostgreSQL 16 and later say how many iterations new passwords get; nobody need log in before a stranger sees it."""
    def knows_none(oracle, conn, *_):
        conn.send(wire.message("1"), wire.message("2"), wire.message("T", struct.pack("!h", 2) + 2 * (b"c\0" + struct.pack("!ihihih", 0, 0, 25, -1, -1, 0))),
                  wire.message("C", b"SELECT 0\0"), wire.message("Z", b"I"))

    for parameters, expected in (((("scram_iterations", "12345"),), b"12345"), ((("scram_iterations", "0"),), b"4096"), ((), b"4096")):
        with Oracle(knows_none, *parameters) as oracle:
            challenge = attempt(against(oracle), secure.NOBODY)[1].body[4:]
            assert dict(part.split(b"=", 1) for part in challenge.split(b","))[b"i"] == expected
