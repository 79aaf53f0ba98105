"""Hostile and unlucky peers: what breaks one session must break only that one, and leave nothing behind."""
import os
import random
import signal
import socket
import struct
import threading
import time

import psycopg
import pytest

import cluster
import wire
from cluster import wait_until
from wire import bind, copy_data, execute, extended, flush, message, parse, query, sync

LOGIN = wire.startup(user="postgres", database="e2e", application_name="faulty")
BIG_RESULT = query("SELECT i, repeat('r', 1000) FROM generate_series(1, 1000000) i")


@pytest.fixture
def nothing_left(proxy, server):
    """After the test: no open file in the proxy and no process in the server that was not there before."""
    neighbour = proxy.wire()
    before = proxy.settled_files()
    yield proxy
    with server.connect() as watch:
        wait_until(lambda: watch.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'faulty'")
                   .fetchone() == (0,), "a server session is left behind", 60)
    wait_until(lambda: proxy.open_files() <= before, "open files are left behind", 60)
    assert neighbour.rows(query("SELECT 'undisturbed'")) == [[b"undisturbed"]]
    neighbour.close()


def faulty(proxy):
    return proxy.wire(application_name="faulty")


def ends(conn):
    """Waits until the proxy has closed the connection, and returns what it said."""
    received = bytearray()
    try:
        while piece := conn.sock.recv(65536):
            received += piece
    except ConnectionError:
        pass
    return bytes(received)


# ---- before the login ------------------------------------------------------------------------------------------------

STARTUPS = {
    "length 0": struct.pack("!i", 0),
    "length 4": struct.pack("!i", 4),
    "length 7": struct.pack("!ii", 7, wire.PROTOCOL_3_0),
    "no list": struct.pack("!ii", 8, wire.PROTOCOL_3_0),
    "negative": struct.pack("!ii", -1, wire.PROTOCOL_3_0),
    "10001 bytes": struct.pack("!ii", 10001, wire.PROTOCOL_3_0) + bytes(9993),
    "2 GB": struct.pack("!ii", 0x7fffffff, wire.PROTOCOL_3_0),
    "no user": wire.startup(database="e2e"),
    "no end": wire.startup_raw(wire.PROTOCOL_3_0, b"user\0postgres"),
    "no value": wire.startup_raw(wire.PROTOCOL_3_0, b"user\0postgres\0database\0"),
    "bytes behind the end": wire.startup_raw(wire.PROTOCOL_3_0, b"user\0postgres\0\0more\0"),
    "version 2": struct.pack("!ii", 296, 2 << 16) + bytes(288),
    "version 1": struct.pack("!ii", 9, 1 << 16) + b"\0",
    "version 9": struct.pack("!ii", 9, 9 << 16) + b"\0",
    "two SSLRequests": wire.SSL_REQUEST,
    "long SSLRequest": struct.pack("!iii", 12, 80877103, 0),
    "short cancel": struct.pack("!ii", 8, 80877102),
    "long cancel": struct.pack("!ii", 5000, 80877102) + bytes(4992),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(200),
}


@pytest.mark.parametrize("name", STARTUPS)
def test_malformed_startup(nothing_left, name):
    with nothing_left.wire(start=False) as conn:
        conn.send(STARTUPS[name])
        if name == "two SSLRequests":
            assert conn.read_bytes(1) == b"N"
            conn.send(wire.SSL_REQUEST)
        conn.sock.shutdown(socket.SHUT_WR)
        assert b"R\0\0\0\x08\0\0\0\0" not in ends(conn), "logged in"


@pytest.mark.parametrize("seed", range(4))
def test_random_startup(nothing_left, seed):
    rng = random.Random(seed)
    for _ in range(50):
        with nothing_left.wire(start=False) as conn:
            try:
                conn.send(rng.randbytes(rng.randrange(1, 200)))
                conn.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            ends(conn)


def test_connections_that_say_nothing(nothing_left):
    for how in ("close", "reset"):
        for _ in range(200):
            getattr(nothing_left.wire(start=False), how)()


def test_login_timeout(make_proxy):
    proxy = make_proxy(client_login_timeout=1)
    with proxy.wire(start=False) as silent, proxy.wire(start=False) as half, proxy.wire() as logged_in:
        half.send(LOGIN[:10])
        ends(silent)
        ends(half)
        assert logged_in.rows(query("SELECT 1")) == [[b"1"]]


def test_client_limit(make_proxy):
    proxy = make_proxy(max_client_conn=3)
    conns = [proxy.wire() for _ in range(3)]
    with pytest.raises(wire.ServerError) as refused:
        proxy.wire()
    assert refused.value.sqlstate == "53300"
    conns.pop().close()

    def has_room():
        try:
            conns.append(proxy.wire())
            return True
        except (wire.ServerError, EOFError, ConnectionError):
            return False

    wait_until(has_room, "a place that became free is not given away")
    for conn in conns:
        conn.close()


# ---- violations of the protocol --------------------------------------------------------------------------------------

VIOLATIONS = {
    "length 0": b"Q" + struct.pack("!i", 0),
    "length 3": b"Q" + struct.pack("!i", 3),
    "negative length": b"Q" + struct.pack("!i", -5),
    "length 3 of Bind": b"B" + struct.pack("!i", 3),
    "length 3 of Sync": b"S" + struct.pack("!i", 3),
    "length 3 of an unknown type": b"y" + struct.pack("!i", 3),
    "an unknown type": message("y", b"?"),
    "a server's type": message("Z", b"I"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violation_is_fatal_and_logged(nothing_left, name):
    logged = len(nothing_left.log())
    with faulty(nothing_left) as conn:
        conn.send(VIOLATIONS[name], bytes(100))
        said = ends(conn)
    assert b"SFATAL\0" in said and b"C08P01\0" in said
    assert len(nothing_left.log()) > logged, "no line in the log"


def test_violation_behind_a_good_query(nothing_left):
    """What was in order is answered first or not at all, never half."""
    with faulty(nothing_left) as conn:
        conn.send(query("SELECT 'good'"), VIOLATIONS["length 3"])
        said = ends(conn)
    assert b"C08P01\0" in said


MALFORMED = {
    "Query without end": message("Q", b"SELECT 1"),
    "empty Query": message("Q"),
    "Parse without end": message("P", b"name\0SELECT 1"),
    "Parse, list too short": message("P", b"\0SELECT 1\0" + struct.pack("!H", 5)),
    "Bind, nothing": message("B"),
    "Bind, counts lie": message("B", b"\0\0" + struct.pack("!HhH", 1, 0, 65535)),
    "Bind, value too long": message("B", b"\0\0" + struct.pack("!HHi", 0, 1, 1000) + b"x"),
    "Describe of nothing": message("D"),
    "Describe, wrong kind": message("D", b"X\0"),
    "Execute, short": message("E", b"\0\0"),
    "Close, wrong kind": message("C", b"X\0"),
    "Sync with a body": message("S", b"body"),
    "FunctionCall, short": message("F", b"\0\0\0"),
    "a password now": wire.password("late"),
    "CopyData now": copy_data(b"late"),
    "CopyDone now": wire.copy_done(),
    "bytes behind the NUL": message("Q", b"SELECT 1\0SELECT 2\0"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_message_is_the_servers_business(nothing_left, server, name):
    """Whatever PostgreSQL says to it, and whether it goes on, is what the client of pgseek sees."""
    answers = []
    for endpoint in (server, nothing_left):
        with faulty(endpoint) as conn:
            conn.send(MALFORMED[name], sync(), query("SELECT 'after'"), wire.terminate())
            answers.append(ends(conn))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("length", [0x7fffffff, 0x40000000, 0x3fffffff])
def test_oversized_length(nothing_left, length):
    """A length that nothing follows takes no memory, and the session ends with its client."""
    nothing_left.reset_peak_memory()
    before = nothing_left.memory_kib()
    with faulty(nothing_left) as conn:
        conn.send(b"Q" + struct.pack("!i", length) + b"SELECT 1")
        conn.sock.shutdown(socket.SHUT_WR)
        ends(conn)
    if not nothing_left.is_sanitized():
        assert nothing_left.memory_kib() - before < 16 * 1024


@pytest.mark.parametrize("seed", range(6))
def test_garbage_after_the_login(nothing_left, seed):
    rng = random.Random(seed)
    for _ in range(20):
        conn = faulty(nothing_left)
        try:
            for _ in range(rng.randrange(1, 10)):
                piece = rng.choice([rng.randbytes(rng.randrange(1, 300)), message(rng.choice("QPBDECSHFdcfp"), rng.randbytes(20)),
                                    extended("SELECT 1")[:rng.randrange(1, 40)]])
                conn.send(piece)
        except OSError:
            pass
        rng.choice([conn.close, conn.reset])()


def test_spoiled_messages(nothing_left):
    """A good stream with one byte changed, at every place."""
    stream = extended("SELECT $1::text", ["value"], name="s", portal="p", oids=[25]) + query("SELECT 1") + wire.terminate()
    for at in range(len(stream)):
        spoiled = bytearray(stream)
        spoiled[at] ^= 0x81
        with faulty(nothing_left) as conn:
            try:
                conn.send(bytes(spoiled))
                conn.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            ends(conn)


# ---- ends of connections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_leaves_at_any_byte(nothing_left, how):
    stream = LOGIN + extended("SELECT $1::text", ["value"]) + query("SELECT 1")
    for at in range(1, len(stream)):
        conn = nothing_left.wire(start=False)
        conn.send(stream[:at])
        if at % 3 == 0 and at > len(LOGIN):
            conn.until("Z")
        getattr(conn, how)()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_leaves_in_mid_result(nothing_left, how):
    for _ in range(10):
        conn = faulty(nothing_left)
        conn.send(BIG_RESULT)
        conn.read_bytes(100_000)
        getattr(conn, how)()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_leaves_in_mid_copy(nothing_left, how, server):
    for _ in range(10):
        conn = faulty(nothing_left)
        conn.ask(query("CREATE TEMP TABLE c (a text)"))
        conn.send(query("COPY c FROM STDIN"))
        conn.until("G")
        conn.send(copy_data(b"x\n" * 10000), copy_data(b"y" * 1000)[:500])
        getattr(conn, how)()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_client_leaves_while_the_server_works(nothing_left, server, how):
    """The server notices when it next writes; pg_sleep is cut short by its end, a loop by its next row."""
    conn = faulty(nothing_left)
    conn.send(query("SELECT pg_sleep(0.5)"), BIG_RESULT)
    getattr(conn, how)()


def test_client_says_all_and_shuts_its_side(either):
    """A half-closed client still gets its answer, as from the server itself."""
    with either.wire() as conn:
        conn.send(query("SELECT pg_sleep(0.1), repeat('h', 100000)"))
        conn.sock.shutdown(socket.SHUT_WR)
        assert wire.kinds(conn.ready()) == "T D C Z"
        assert conn.is_closed()


def test_bytes_behind_terminate_are_dropped(either):
    with either.wire() as conn:
        conn.send(wire.terminate(), query("SELECT 1"))
        assert ends(conn) == b""


def test_terminated_backend(nothing_left, server):
    """An administrator's FATAL arrives whole, and then the connection ends."""
    with faulty(nothing_left) as conn, server.connect() as admin:
        admin.execute("SELECT pg_terminate_backend(%s)", (conn.pid,))
        assert conn.until("E")[-1].fields()["C"] == "57P01"
        assert conn.is_closed()


def test_terminated_backend_in_mid_result(nothing_left, server):
    with faulty(nothing_left) as conn, server.connect() as admin:
        conn.send(BIG_RESULT)
        conn.read_bytes(100_000)
        admin.execute("SELECT pg_terminate_backend(%s)", (conn.pid,))
        ends(conn)


def test_killed_backend_in_mid_result(run_dir, make_proxy):
    """kill -9 takes all sessions of a server down, not those of the proxy: new ones work as soon as the server does."""
    doomed = cluster.Cluster(run_dir / "doomed")
    doomed.start()
    try:
        proxy = make_proxy(databases={"*": f"host={doomed.host} port={doomed.port}"})
        proxy.server = doomed
        with proxy.wire() as conn, proxy.wire() as idle:
            conn.send(BIG_RESULT)
            conn.read_bytes(100_000)
            with open(f"/proc/{conn.pid}/comm") as comm:
                assert "postgres" in comm.read()
            os.kill(conn.pid, signal.SIGKILL)
            ends(conn)
            ends(idle)

        def works_again():
            try:
                with proxy.connect() as fresh:
                    return fresh.execute("SELECT 1").fetchone()
            except psycopg.OperationalError:
                return False

        wait_until(works_again, "no new session after the server's recovery")
    finally:
        doomed.stop()


def test_server_that_is_not_there(make_proxy):
    proxy = make_proxy(databases={"*": f"host=127.0.0.1 port={cluster.free_port()}"})
    for _ in range(3):
        with pytest.raises(wire.ServerError) as refused:
            proxy.wire()
        assert refused.value.fields["S"] == "FATAL"
        assert refused.value.sqlstate.startswith("08")
    assert "event=" in proxy.log() or proxy.log()


def test_second_host(make_proxy, server):
    proxy = make_proxy(databases={"*": f"host=127.0.0.1,{server.host} port={cluster.free_port()},{server.port}"})
    with proxy.wire() as conn, proxy.wire(start=False) as canceller:
        assert conn.rows(query("SELECT 1")) == [[b"1"]]
        canceller.send(wire.cancel_request(conn.pid, conn.secret))
        assert canceller.is_closed()


# ---- servers that misbehave ------------------------------------------------------------------------------------------


class Impostor(cluster.Endpoint):
    """Says a given stream to whoever logs in, and then closes, resets or keeps silent."""

    def __init__(self, says, then="close"):
        self.says, self.then = says, then
        self.listener = socket.create_server((self.host, 0))
        self.port = self.listener.getsockname()[1]
        self.kept = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            try:
                sock.recv(65536)
                sock.sendall(self.says)
                if self.then == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if self.then == "keep":
                    self.kept.append(sock)
                else:
                    sock.close()
            except OSError:
                continue

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in self.kept:
            sock.close()


WELCOME = (message("R", bytes(4)) + message("S", b"server_version\x0015.0\0") + message("K", struct.pack("!ii", 77, 88))
           + message("Z", b"I"))
ANSWER = (message("T", b"\0\1one\0" + struct.pack("!IhIhih", 0, 0, 23, 4, -1, 0)) + message("D", b"\0\1\0\0\0\x011")
          + message("C", b"SELECT 1\0") + message("Z", b"I"))

SERVERS = {
    "nothing": b"",
    "garbage": b"\xff" * 1000,
    "length 3": WELCOME + b"D" + struct.pack("!i", 3) + bytes(50),
    "negative length": WELCOME + b"D" + struct.pack("!i", -1) + bytes(50),
    "N to a start": b"N",
    "unasked answer": WELCOME + ANSWER,
    "half a message": WELCOME + ANSWER[:20],
    "unknown type": WELCOME + message("?", b"what"),
    "secret of 4 KB": message("R", bytes(4)) + message("K", bytes(4096)) + message("Z", b"I"),
    "secret of nothing": message("R", bytes(4)) + message("K", b"\0") + message("Z", b"I"),
    "Z without body": message("R", bytes(4)) + message("Z"),
    "status without end": message("R", bytes(4)) + message("S", b"x") + message("Z", b"I"),
    "SASL without end": message("R", struct.pack("!i", 10) + b"SCRAM-SHA-256"),
}


@pytest.mark.parametrize("then", ["close", "reset"])
@pytest.mark.parametrize("name", SERVERS)
def test_misbehaving_server(make_proxy, server, name, then):
    impostor = Impostor(SERVERS[name], then)
    proxy = make_proxy(databases={"bad": f"host=127.0.0.1 port={impostor.port}",
                                  "*": f"host={server.host} port={server.port}"})
    with proxy.wire() as neighbour:
        before = proxy.settled_files()
        for _ in range(5):
            with proxy.wire(start=False) as conn:
                conn.send(wire.startup(user="postgres", database="bad"), query("SELECT 1"))
                ends(conn)
        wait_until(lambda: proxy.open_files() <= before, "open files are left behind")
        assert neighbour.rows(query("SELECT 1")) == [[b"1"]]
    impostor.close()


def test_server_leaves_at_any_byte(make_proxy, server):
    stream = WELCOME + ANSWER
    impostors = [Impostor(stream[:at], "close" if at % 2 else "reset") for at in range(len(stream))]
    lines = {f"cut{at}": f"host=127.0.0.1 port={impostor.port}" for at, impostor in enumerate(impostors)}
    proxy = make_proxy(databases={**lines, "*": f"host={server.host} port={server.port}"})
    with proxy.wire() as neighbour:
        before = proxy.settled_files()
        for at, impostor in enumerate(impostors):
            with proxy.wire(start=False) as conn:
                conn.send(wire.startup(user="postgres", database=f"cut{at}"), query("SELECT 1"))
                said = ends(conn)
                assert said[:at] == stream[:len(said[:at])] or said[:1] == b"E" or b"SFATAL" in said
            impostor.close()
        wait_until(lambda: proxy.open_files() <= before, "open files are left behind")
        assert neighbour.rows(query("SELECT 1")) == [[b"1"]]


def test_silent_server(make_proxy):
    """A server that accepts and says nothing holds its client, until the client leaves."""
    impostor = Impostor(b"", "keep")
    proxy = make_proxy(databases={"*": f"host=127.0.0.1 port={impostor.port}"})
    before = proxy.settled_files()
    conns = [proxy.wire(start=False) for _ in range(20)]
    for conn in conns:
        conn.send(LOGIN)
    wait_until(lambda: len(impostor.kept) == 20, "the server was not reached")
    for conn in conns:
        conn.close()
    wait_until(lambda: proxy.open_files() <= before, "open files are left behind")
    impostor.close()


# ---- the process -----------------------------------------------------------------------------------------------------


def test_stop_under_load(make_proxy):
    """SIGTERM in the midst of traffic: every client ends, the process ends with 0, nothing leaks."""
    proxy = make_proxy()
    stop = threading.Event()

    def load():
        try:
            with proxy.wire() as conn:
                while not stop.is_set():
                    conn.ask(extended("SELECT repeat('l', 10000)"))
        except (OSError, EOFError, wire.ServerError, ValueError):
            pass

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    proxy.stop()
    stop.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_stop_with_idle_and_waiting_clients(make_proxy):
    proxy = make_proxy()
    idle, waiting, half = proxy.wire(), proxy.wire(), proxy.wire(start=False)
    waiting.send(parse("SELECT 1"), bind(), execute(), flush())
    half.send(LOGIN[:9])
    proxy.stop()
    for conn in (idle, waiting, half):
        ends(conn)


def test_restart_on_the_same_port(make_proxy):
    proxy = make_proxy()
    with proxy.wire() as conn:
        conn.ask(query("SELECT 1"))
    proxy.restart()
    with proxy.wire() as conn:
        conn.ask(query("SELECT 1"))
