"""From the first byte to the first ReadyForQuery: encryption requests, authentication, addresses, cancel requests."""
import threading
import time

import psycopg
import pytest

import cluster
import wire
from cluster import wait_until

ROLES = ["md5_user", "scram_user"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("unix", [False, True])
def test_password(either, role, unix):
    host = either.socket_dir if unix else either.host
    with either.connect(host=host, user=role, password=cluster.PASSWORDS[role]) as conn:
        assert conn.execute("SELECT current_user").fetchone() == (role,)


@pytest.mark.parametrize("role", ROLES)
def test_wrong_password(either, role):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        either.connect(user=role, password="wrong")


@pytest.mark.parametrize("role", ROLES)
def test_missing_password(either, role):
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        either.connect(user=role, password="")


def test_unknown_database_and_role(either):
    for options, sqlstate in (({"database": "missing"}, "3D000"), ({"user": "nobody_here"}, "28000")):
        with pytest.raises(wire.ServerError) as refused:
            either.wire(**options)
        assert refused.value.sqlstate == sqlstate
        assert refused.value.fields["S"] == "FATAL"


def test_protocol_4(either):
    with either.wire(start=False) as conn:
        with pytest.raises(wire.ServerError) as refused:
            conn.start(4 << 16, user="postgres", database="e2e")
    assert (refused.value.fields["S"], refused.value.sqlstate) == ("FATAL", "0A000")


def test_database_defaults_to_the_user(either):
    with either.wire(start=False) as conn:
        conn.start(user="postgres")
        assert conn.rows(wire.query("SELECT current_database()")) == [[b"postgres"]]


def test_startup_parameters_arrive(either):
    with either.connect(options="-c work_mem=3MB", application_name="by name", client_encoding="LATIN1") as conn:
        shown = conn.execute("SELECT current_setting('work_mem'), current_setting('application_name'), "
                             "current_setting('client_encoding')").fetchone()
    assert shown == ("3MB", "by name", "LATIN1")


def test_encryption_requests_are_answered_no(proxy):
    with proxy.wire(start=False) as conn:
        conn.send(wire.GSS_REQUEST)
        assert conn.read_bytes(1) == b"N"
        conn.send(wire.SSL_REQUEST)
        assert conn.read_bytes(1) == b"N"
        conn.start(user="postgres", database="e2e")
        assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]


def test_encryption_request_on_a_unix_socket(proxy):
    with proxy.wire(start=False, unix=True) as conn:
        conn.send(wire.SSL_REQUEST)
        assert conn.read_bytes(1) == b"N"
        conn.start(user="postgres", database="e2e")


@pytest.mark.parametrize("mode,works", [("disable", True), ("allow", True), ("prefer", True), ("require", False)])
def test_sslmode(proxy, mode, works):
    if works:
        proxy.connect(sslmode=mode).close()
        return
    with pytest.raises(psycopg.OperationalError, match="server does not support SSL"):
        proxy.connect(sslmode=mode)


def test_bytes_behind_an_encryption_request_end_the_connection(proxy):
    """What came in the clear must never be taken for what was said under encryption."""
    for request in (wire.SSL_REQUEST, wire.GSS_REQUEST):
        with proxy.wire(start=False) as conn:
            conn.send(request + wire.startup(user="postgres", database="e2e") + wire.query("SELECT 1"))
            received = b""
            try:
                while piece := conn.sock.recv(65536):
                    received += piece
            except ConnectionError:
                pass
            assert b"R\0\0\0\x08" not in received, "logged in with bytes from behind an SSLRequest"


@pytest.mark.parametrize("first", [b"", wire.SSL_REQUEST])
def test_a_client_that_ends_before_it_begins_hears_nothing(either, first):
    """node-postgres says Terminate at once when end() stands behind connect(); an error would be its program's end."""
    with either.wire(start=False) as conn:
        if first:
            conn.send(first)
            assert conn.read_bytes(1) == b"N"
        conn.send(wire.message("X"))
        with pytest.raises(EOFError, match="0 of 1 bytes"):
            conn.read_bytes(1)


def test_startup_one_byte_at_a_time(proxy):
    with proxy.wire(start=False) as conn:
        conn.send_slowly(wire.SSL_REQUEST)
        assert conn.read_bytes(1) == b"N"
        conn.send_slowly(wire.startup(user="postgres", database="e2e", application_name="slow"))
        conn.ready()
        conn.send_slowly(wire.extended("SELECT current_setting('application_name')"))
        assert b"slow" in conn.ready()[3].body


def test_first_query_in_the_same_packet(either):
    """A client that needs no password may not wait for the answer to its start."""
    with either.wire(start=False) as conn:
        conn.send(wire.startup(user="postgres", database="e2e"), wire.query("SELECT 42"), wire.terminate())
        messages = conn.ready(2)
        assert [m.row() for m in messages if m.kind == "D"] == [[b"42"]]
        assert conn.is_closed()


def test_unix_sockets_on_both_legs(make_proxy, server):
    proxy = make_proxy(databases={"*": f"host={server.socket_dir} port={server.port}"}, listen_addr="")
    with proxy.wire(unix=True) as conn:
        assert conn.rows(wire.query("SELECT inet_server_addr()")) == [[None]]
    for role in ROLES:
        proxy.connect(host=proxy.socket_dir, user=role, password=cluster.PASSWORDS[role]).close()


@pytest.mark.skipif(not cluster.HAS_IPV6, reason="no ::1 on this machine")
def test_ipv6_on_both_legs(make_proxy, server):
    proxy = make_proxy(databases={"*": f"host=::1 port={server.port}"}, listen_addr="127.0.0.1, ::1")
    for host in ("127.0.0.1", "::1"):
        with proxy.connect(host=host) as conn:
            assert conn.execute("SELECT family(inet_server_addr())").fetchone() == (6,)


def test_host_by_name(make_proxy, server):
    proxy = make_proxy(databases={"*": f"host=localhost port={server.port}"})
    proxy.connect().close()


def test_database_lines(make_proxy, server):
    """A line may rename the database; a name without a line is refused as the server refuses an unknown database."""
    proxy = make_proxy(databases={"alias": f"host={server.host} port={server.port} dbname=e2e"})
    with proxy.connect(dbname="alias") as conn:
        assert conn.execute("SELECT current_database()").fetchone() == ("e2e",)
    with pytest.raises(wire.ServerError) as refused:
        proxy.wire(database="other")
    assert refused.value.fields["S"] == "FATAL"
    assert refused.value.sqlstate == "3D000"


# ---- cancel requests -------------------------------------------------------------------------------------------------


def test_cancel_with_psycopg(either):
    with either.connect() as conn:
        threading.Timer(0.2, conn.cancel).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("SELECT pg_sleep(60)")
        assert conn.execute("SELECT 1").fetchone() == (1,)


def test_cancel_request_is_answered_by_a_close(proxy, server):
    with proxy.wire() as conn, proxy.wire(start=False) as canceller:
        conn.send(wire.query("SELECT pg_sleep(60)"))
        with server.connect() as watch:
            wait_until(lambda: watch.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'",
                                             (conn.pid,)).fetchone(), "the query does not run")
        canceller.send(wire.cancel_request(conn.pid, conn.secret))
        assert canceller.is_closed()
        assert [m.fields()["C"] for m in conn.ready() if m.kind == "E"] == ["57014"]


def test_cancel_behind_an_ssl_request(proxy):
    """libpq since 17 asks for encryption on the cancel connection too."""
    with proxy.wire() as conn, proxy.wire(start=False) as canceller:
        canceller.send(wire.SSL_REQUEST)
        assert canceller.read_bytes(1) == b"N"
        canceller.send(wire.cancel_request(conn.pid, conn.secret))
        assert canceller.is_closed()


def test_wrong_cancel_keys_do_nothing(proxy):
    with proxy.wire() as conn:
        wrong = [(conn.pid, bytes(4)), (conn.pid + 100000, conn.secret), (conn.pid, b""), (conn.pid, bytes(256)),
                 (conn.pid, bytes(257)), (0, b"")]
        conn.send(wire.query("SELECT pg_sleep(0.3), 'undisturbed'"))
        for pid, secret in wrong:
            with proxy.wire(start=False) as canceller:
                canceller.send(wire.cancel_request(pid, secret))
                assert canceller.is_closed()
        assert wire.kinds(conn.ready()) == "T D C Z"


def test_cancel_storm(proxy):
    """Cancels of many sessions at once reach each its own."""
    conns = [proxy.connect() for _ in range(20)]
    failed = []

    def sleep(conn):
        try:
            conn.execute("SELECT pg_sleep(60)")
        except psycopg.errors.QueryCanceled:
            failed.append(conn)

    threads = [threading.Thread(target=sleep, args=(conn,)) for conn in conns]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < deadline, "a cancel request was lost"
        for conn in conns:
            if conn not in failed:
                conn.cancel()
        for thread in threads:
            thread.join(0.01)
    assert len(failed) == 20
    for conn in conns:
        conn.close()
