"""TLS on both legs: what is asked for, what is refused, what is carried, and what stays when certificates change."""
import contextlib
import hashlib
import re
import socket
import ssl
import struct
import subprocess
import threading

import psycopg
import pytest

import certificates as certs
import cluster
import secure
import wire

# ---- the proxy in front of the server with TLS -----------------------------------------------------------------------


def client_tls(certificates, name="proxy", **more):
    pair = certificates[name]
    return {"client_tls_sslmode": "prefer", "client_tls_cert_file": pair.cert, "client_tls_key_file": pair.key, **more}


def lines_of(server):
    """All server legs, and the modes that turn round."""
    there = f"host=127.0.0.1 port={server.port} dbname={cluster.DATABASE}"
    ca = server.certificates.ca
    return {**secure.database_lines(server), "allow": f"{there} sslmode=allow", "prefer": f"{there} sslmode=prefer",
            "verify_ca": f"{there} sslmode=verify-ca sslrootcert={ca}"}


@pytest.fixture(scope="module")
def tls_proxy(run_dir, secure_server, certificates):
    proxy = secure.start_proxy(run_dir, secure_server, lines_of(secure_server), verbose=1, **client_tls(certificates))
    yield proxy
    proxy.stop()


@pytest.fixture
def make_tls_proxy(run_dir, secure_server, certificates):
    """make_tls_proxy(databases=None, **settings): one of the test's own."""
    started = []

    def make(databases=None, **settings):
        started.append(secure.start_proxy(run_dir, secure_server, databases or lines_of(secure_server), **settings))
        return started[-1]

    yield make
    for proxy in started:
        proxy.stop()


def connect(proxy, dbname="plain", user="by_trust", **options):
    return proxy.connect(user=user, dbname=dbname, **{"host": "localhost", "gssencmode": "disable", "channel_binding": "disable", **options})


def failure(proxy, *args, **options):
    """The message of an attempt that must fail."""
    with pytest.raises(psycopg.OperationalError) as caught:
        connect(proxy, *args, **options).close()
    return str(caught.value)


def server_leg(conn):
    """Whether the server's connection of this session is encrypted, as the server says."""
    return conn.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()[0]


def lines_with(proxy, text):
    return [line for line in proxy.log().splitlines() if text in line]


def wait_for_line(proxy, text, count=1):
    cluster.wait_until(lambda: len(lines_with(proxy, text)) >= count, f"the log does not say {text!r}")
    return lines_with(proxy, text)


def still_serves(proxy, **options):
    with connect(proxy, **options) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


# ---- a client by hand -------------------------------------------------------------------------------------------------


def context(certificates, alpn=("postgresql",), version=None, client=None):
    made = ssl.create_default_context(cafile=str(certificates.ca))
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if version:
        made.minimum_version = made.maximum_version = version
    if client:
        made.load_cert_chain(certificates[client].cert, certificates[client].key)
    return made


def by_request(proxy, tls, **more):
    """A TLS socket behind SSLRequest."""
    sock = proxy.socket()
    sock.sendall(wire.SSL_REQUEST)
    assert sock.recv(1) == b"S"
    return tls.wrap_socket(sock, server_hostname="localhost", **more)


def directly(proxy, tls, **more):
    return tls.wrap_socket(proxy.socket(), server_hostname="localhost", **more)


def log_in(sock, database="plain", user="by_trust"):
    conn = wire.Wire(sock)
    conn.start(user=user, database=database)
    return conn


def until_closed(sock):
    """All that comes until the end."""
    got = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLError):
        while chunk := sock.recv(65536):
            got += chunk
    return got


# ---- both legs --------------------------------------------------------------------------------------------------------

LEGS = {"plain": False, "unix": False, "require": True, "full": True, "verify_ca": True, "allow": False, "prefer": True, "direct": True}


@pytest.mark.parametrize("sslmode", ["disable", "require", "verify-full"])
@pytest.mark.parametrize("leg", LEGS)
def test_every_leg_is_what_it_says(tls_proxy, certificates, leg, sslmode):
    if leg not in tls_proxy.databases:
        pytest.skip("this server has no direct TLS")
    with connect(tls_proxy, leg, sslmode=sslmode, sslrootcert=certificates.ca) as conn:
        assert bool(conn.pgconn.ssl_in_use) == (sslmode != "disable")
        assert bool(server_leg(conn)) == LEGS[leg]
        assert conn.execute("SELECT sum(i) FROM generate_series(1, 1000) i").fetchone() == (500500,)


def test_the_log_names_both(tls_proxy):
    still_serves(tls_proxy, dbname="full", sslmode="require")
    assert re.search(r"login attempt: db=full user=by_trust tls=TLSv1\.3/TLS_\w+", tls_proxy.log())
    assert re.search(r"full/by_trust@\S+ new connection to server localhost:\d+ tls=TLSv1\.3/TLS_\w+", tls_proxy.log())


@pytest.mark.parametrize("sslmode", ["disable", "require"])
@pytest.mark.parametrize("leg, user, is_tls", [("allow", "with_tls", True), ("allow", "without_tls", False), ("prefer", "with_tls", True),
                                               ("prefer", "without_tls", False)])
def test_what_the_server_refuses_is_tried_the_other_way(tls_proxy, leg, user, is_tls, sslmode):
    with connect(tls_proxy, leg, user, sslmode=sslmode) as conn:
        assert bool(server_leg(conn)) == is_tls


@pytest.mark.parametrize("leg, user, is_tls", [("allow", "with_tls", True), ("prefer", "without_tls", False)])
def test_the_second_try_behind_a_proof(make_tls_proxy, run_dir, certificates, leg, user, is_tls):
    """The client has proved itself to the proxy, and learns nothing of the first try."""
    secrets = secure.private_file(run_dir / f"second-{user}.txt", secure.userlist({user: secure.scram_secret(secure.password_of(user))}))
    proxy = make_tls_proxy(auth_type="scram-sha-256", auth_file=secrets, **client_tls(certificates))
    with connect(proxy, leg, user, sslmode="require", password=secure.password_of(user), channel_binding="require") as conn:
        assert bool(server_leg(conn)) == is_tls
    assert "password authentication failed" in failure(proxy, leg, user, sslmode="require", password="wrong")


@pytest.mark.parametrize("leg, user", [("require", "without_tls"), ("plain", "with_tls")])
def test_what_is_demanded_is_not_tried_otherwise(tls_proxy, leg, user):
    assert "pg_hba.conf rejects connection" in failure(tls_proxy, leg, user, sslmode="require")


def test_a_server_without_tls(make_tls_proxy, server):
    there = f"host=127.0.0.1 port={server.port} dbname={cluster.DATABASE}"
    proxy = make_tls_proxy({"must": f"{there} sslmode=require", "may": f"{there} sslmode=prefer"})
    message = failure(proxy, "must", cluster.SUPERUSER, sslmode="disable")
    assert "127.0.0.1" in message and "does not offer TLS" in message and "sslmode" in message
    still_serves(proxy, dbname="may", user=cluster.SUPERUSER, sslmode="disable")


# ---- who must have TLS ------------------------------------------------------------------------------------------------


def test_clear_text_may_be_refused(make_tls_proxy, certificates):
    proxy = make_tls_proxy(**client_tls(certificates, client_tls_sslmode="require"))
    message = failure(proxy, sslmode="disable")
    assert "28000" in message or "without TLS" in message
    assert "sslmode=require" in message
    still_serves(proxy, sslmode="require")
    still_serves(proxy, host=proxy.socket_dir, sslmode="disable")


@pytest.mark.parametrize("mode, client, user, why", [
    ("verify-ca", "alice", "alice", None), ("verify-ca", "bob", "alice", None),
    ("verify-ca", None, "alice", "no certificate"), ("verify-ca", "alice_of_other_ca", "alice", "verify failed"),
    ("verify-ca", "alice_expired", "alice", "expired"), ("verify-full", "alice", "alice", None),
    ("verify-full", "bob", "alice", 'for "bob"'), ("verify-full", "alice_and_bob", "alice", 'for ""'),
    ("verify-full", "alice_nul", "alice", 'for ""'), ("verify-full", "nobody", "alice", 'for ""'),
    ("prefer", None, "alice", None), ("prefer", "alice_expired", "alice", "expired")])
def test_certificates_of_clients(make_tls_proxy, certificates, mode, client, user, why):
    proxy = make_tls_proxy(**client_tls(certificates, client_tls_sslmode=mode, client_tls_ca_file=certificates.ca))
    options = {"sslmode": "require"}
    if client:
        options.update(sslcert=certificates[client].cert, sslkey=certificates[client].key)
    if not why:
        still_serves(proxy, user=user, **options)
        return
    message = failure(proxy, "plain", user, **options)
    lines = wait_for_line(proxy, "closing because: ")
    assert len(lines) == 1 and why in lines[0] and re.search(r"@(127.0.0.1|\[::1\]):\d+ ", lines[0])
    if mode == "verify-full":
        assert 'certificate authentication failed for user "alice"' in message and '"bob"' not in message


def test_a_certificate_without_a_name_is_nobodys(make_tls_proxy, certificates, secure_server):
    """Where the line names the user for the server, an empty one of the client's must not fit a certificate without one."""
    lines = {"plain": f"{secure.database_lines(secure_server)['plain']} user=by_trust"}
    proxy = make_tls_proxy(lines, **client_tls(certificates, client_tls_sslmode="verify-full", client_tls_ca_file=certificates.ca))
    for client in ("nobody", "alice_and_bob"):
        with by_request(proxy, context(certificates, client=client)) as sock:
            conn = wire.Wire(sock)
            conn.send(wire.startup(user="", database="plain"))
            error = conn.read()
            assert error.kind == "E" and error.fields()["C"] == "28000", error
    with by_request(proxy, context(certificates, client="alice")) as sock:
        log_in(sock, user="alice")


def test_a_name_that_the_server_would_cut_is_nobodys(make_tls_proxy, certificates):
    """64 bytes fit a certificate, and PostgreSQL takes 63 of them for a user: another one."""
    certificates.make("long", certs.RECIPES["alice"]._replace(common="x" * 64))
    proxy = make_tls_proxy(**client_tls(certificates, client_tls_sslmode="verify-full", client_tls_ca_file=certificates.ca))
    pair = certificates["long"]
    assert "certificate authentication failed" in failure(proxy, "plain", "x" * 64, sslmode="require", sslcert=pair.cert, sslkey=pair.key)


# ---- direct TLS -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("begin", [by_request, directly])
def test_a_client_by_hand(tls_proxy, certificates, begin, version):
    with begin(tls_proxy, context(certificates, version=version)) as sock:
        assert sock.selected_alpn_protocol() == "postgresql"
        with log_in(sock, "full") as conn:
            assert conn.rows(wire.query("SELECT 41 + 1")) == [[b"42"]]


@pytest.mark.parametrize("alpn, begin, is_taken", [((), by_request, True), ((), directly, False), (("http/1.1",), by_request, False),
                                                   (("http/1.1",), directly, False), (("h2", "postgresql"), directly, True)])
def test_alpn(tls_proxy, certificates, alpn, begin, is_taken):
    if is_taken:
        with begin(tls_proxy, context(certificates, alpn)) as sock, log_in(sock) as conn:
            assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
        return
    before = len(lines_with(tls_proxy, "TLS handshake failed"))
    with contextlib.suppress(ssl.SSLError, ConnectionResetError), begin(tls_proxy, context(certificates, alpn)) as sock:
        sock.sendall(wire.startup(user="by_trust", database="plain"))
        assert until_closed(sock) == b""
    assert "ALPN" in wait_for_line(tls_proxy, "TLS handshake failed", before + 1)[-1]


def test_no_tls_on_a_unix_socket(tls_proxy):
    with tls_proxy.socket(unix=True) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert until_closed(sock) == b""
    with tls_proxy.socket(unix=True) as sock:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"N"
        with log_in(sock) as conn:
            assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
    wait_for_line(tls_proxy, "a TLS handshake on a Unix socket")


def test_no_tls_where_it_is_not_offered(make_tls_proxy):
    proxy = make_tls_proxy()
    with proxy.socket() as sock:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"N"
        with log_in(sock) as conn:
            assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
    with proxy.socket() as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        assert until_closed(sock) == b""
    wait_for_line(proxy, "TLS is not offered (client_tls_sslmode)")


# ---- what nobody should send ------------------------------------------------------------------------------------------

STARTUP = wire.startup(user="by_trust", database="plain")
IN_ONE_READ = {"startup": STARTUP, "one byte": b"\0", "ClientHello": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", "SSLRequest": wire.SSL_REQUEST}


@pytest.mark.parametrize("behind", IN_ONE_READ)
@pytest.mark.parametrize("request_", [wire.SSL_REQUEST, wire.GSS_REQUEST], ids=["SSL", "GSS"])
def test_bytes_behind_a_request(tls_proxy, request_, behind):
    before = len(lines_with(tls_proxy, "bytes behind an encryption request"))
    with tls_proxy.socket() as sock:
        sock.sendall(request_ + IN_ONE_READ[behind])
        assert until_closed(sock) == b""
    wait_for_line(tls_proxy, "bytes behind an encryption request", before + 1)
    still_serves(tls_proxy, sslmode="require")


@pytest.mark.parametrize("request_", [wire.SSL_REQUEST, wire.GSS_REQUEST], ids=["SSL", "GSS"])
@pytest.mark.parametrize("begin", [by_request, directly])
def test_a_request_inside_tls(tls_proxy, certificates, begin, request_):
    with begin(tls_proxy, context(certificates)) as sock:
        sock.sendall(request_)
        assert until_closed(sock) == b""


@pytest.mark.parametrize("junk, why", [(STARTUP, "not TLS"), (b"GET / HTTP/1.1\r\n\r\n", "http request"), (b"\x16\x03\x01\x00\x05hello", "")])
def test_clear_text_in_place_of_a_handshake(tls_proxy, junk, why):
    before = len(lines_with(tls_proxy, "TLS handshake failed"))
    with tls_proxy.socket() as sock:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"S"
        sock.sendall(junk)
        answer = until_closed(sock)
        assert answer == b"" or answer[0] == 21  # an alert; nothing of PostgreSQL's
    assert why in wait_for_line(tls_proxy, "TLS handshake failed", before + 1)[-1]


def test_old_versions(tls_proxy, certificates):
    before = len(lines_with(tls_proxy, "TLS handshake failed"))
    hello = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{tls_proxy.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0",
                            "-starttls", "postgres"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert hello.returncode != 0
    assert "unsupported protocol" in wait_for_line(tls_proxy, "TLS handshake failed", before + 1)[-1]


def test_no_renegotiation(tls_proxy):
    program = ["openssl", "s_client", "-connect", f"127.0.0.1:{tls_proxy.port}", "-tls1_2", "-alpn", "postgresql"]
    said = subprocess.run(program, input=b"R\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout
    assert b"RENEGOTIATING" in said and b"no renegotiation" in said
    still_serves(tls_proxy, sslmode="require")


def test_who_only_looks_is_not_logged(make_tls_proxy, certificates):
    proxy = make_tls_proxy(**client_tls(certificates))
    for _ in range(3):
        proxy.socket().close()
    still_serves(proxy, sslmode="require")
    assert len(lines_with(proxy, "closing because")) <= 1  # the last one's


# ---- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", wire.SSL_REQUEST, wire.SSL_REQUEST + b"\x16\x03\x01", b"\x16\x03\x01\x02"], ids=["nothing", "request", "start", "direct"])
def test_a_handshake_has_its_time(make_tls_proxy, certificates, sent):
    proxy = make_tls_proxy(**client_tls(certificates, client_login_timeout=1))
    with proxy.socket() as sock:
        sock.sendall(sent[:8])
        if sent.startswith(wire.SSL_REQUEST):
            assert sock.recv(1) == b"S"
            sock.sendall(sent[8:])
        assert b"client_login_timeout" in until_closed(sock) if not sent else until_closed(sock) == b""
    wait_for_line(proxy, "client_login_timeout")


def test_a_server_has_its_time(make_tls_proxy):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy = make_tls_proxy({"*": f"host=127.0.0.1 port={silent.getsockname()[1]} sslmode=require"}, server_connect_timeout=1)
        assert "timed out while beginning TLS" in failure(proxy, sslmode="disable")


# ---- what is carried --------------------------------------------------------------------------------------------------

BULK_ROWS, ROW_BYTES = 2000, 100_000  # 200 MB


@pytest.mark.parametrize("leg", ["plain", "full"])
def test_much_of_both_ways(tls_proxy, leg):
    row = (b"0123456789abcdef" * (ROW_BYTES // 16 + 1))[:ROW_BYTES - 1]
    with connect(tls_proxy, leg, sslmode="require") as conn:
        conn.execute("CREATE TEMP TABLE bulk (body text)")
        with conn.cursor().copy("COPY bulk FROM STDIN") as copy:
            for _ in range(BULK_ROWS):
                copy.write(row + b"\n")
        assert conn.execute("SELECT count(*), sum(length(body)) FROM bulk").fetchone() == (BULK_ROWS, BULK_ROWS * len(row))
        got, digest = 0, hashlib.sha256()
        with conn.cursor().copy("COPY bulk TO STDOUT") as copy:
            for chunk in copy:
                got += len(chunk)
                digest.update(chunk)
        assert got == BULK_ROWS * ROW_BYTES
        assert digest.digest() == hashlib.sha256((row + b"\n") * BULK_ROWS).digest()


def test_a_slow_reader_does_not_fill_the_memory(make_tls_proxy, secure_server, certificates):
    proxy = make_tls_proxy(**client_tls(certificates))
    with by_request(proxy, context(certificates)) as sock, log_in(sock, "full") as conn:
        proxy.reset_peak_memory()
        before = proxy.memory_kib()
        conn.send(wire.query("SELECT repeat('x', 100000) FROM generate_series(1, 1000)"))
        with secure_server.connect() as direct:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'by_trust' AND wait_event = 'ClientWrite'"
            cluster.wait_until(lambda: direct.execute(waits).fetchone()[0] == 1, "the server does not wait for its reader")
        most = 32768 if proxy.is_sanitized() else 2048  # of 100 MB; a sanitizer keeps what was freed for a while
        assert proxy.memory_kib() - before < most
        got = 0
        while got < 100_000_000:
            got += len(sock.recv(1 << 20))


def test_a_cancel_request_goes_as_its_session(tls_proxy):
    with connect(tls_proxy, "full", sslmode="require") as conn:
        def cancel_soon():
            with connect(tls_proxy, "plain", "lookup", sslmode="disable") as watch:
                busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND usename = 'by_trust'"
                cluster.wait_until(lambda: watch.execute(busy).fetchone()[0] == 1, "nobody sleeps")
            conn.cancel()

        canceller = threading.Thread(target=cancel_soon)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("SELECT pg_sleep(60)")
        canceller.join()
        assert conn.execute("SELECT 1").fetchone() == (1,)
    lines = [line for line in lines_with(tls_proxy, "new connection to server localhost") if re.search(r"C-\d+: /@", line)]
    assert lines and all("tls=TLSv1.3/" in line for line in lines)


# ---- tickets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed(make_tls_proxy, certificates, version):
    proxy = make_tls_proxy(**client_tls(certificates, client_tls_sslmode="verify-full", client_tls_ca_file=certificates.ca))
    tls = context(certificates, version=version, client="alice")

    def visit(session=None):
        with by_request(proxy, tls, session=session) as sock, log_in(sock, user="alice") as conn:
            assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
            return sock.session_reused, sock.session

    was_reused, session = visit()
    assert not was_reused
    for _ in range(8):  # on whichever worker
        was_reused, session = visit(session)
        assert was_reused
    proxy.reload()
    wait_for_line(proxy, "reloaded")
    assert visit(session)[0] is False  # a new context has new keys
    with by_request(proxy, tls, session=None) as sock:  # and who the client is comes from the ticket, too
        with log_in(sock, user="alice"):
            pass


# ---- reload -----------------------------------------------------------------------------------------------------------


def test_certificates_are_renewed_by_a_reload(make_tls_proxy, certificates):
    proxy = make_tls_proxy(**client_tls(certificates, "shared"))
    old = secure.shown_certificate(proxy)
    with connect(proxy, sslmode="require") as before:
        certificates.renew("shared")
        assert secure.shown_certificate(proxy) == old
        proxy.reload()
        cluster.wait_until(lambda: secure.shown_certificate(proxy) != old, "the certificate stays")
        assert before.execute("SELECT 1").fetchone() == (1,)
    still_serves(proxy, sslmode="verify-full", sslrootcert=certificates.ca)


@pytest.mark.parametrize("spoilt", ["mismatched", "expired", "encrypted", "missing"])
def test_what_does_not_load_changes_nothing(make_tls_proxy, certificates, spoilt):
    proxy = make_tls_proxy(**client_tls(certificates))
    old = secure.shown_certificate(proxy)
    pair = certificates[spoilt] if spoilt != "missing" else certificates["proxy"]
    proxy.settings.update(client_tls_cert_file=pair.cert, client_tls_key_file=pair.key if spoilt != "missing" else "/nonexistent.key")
    proxy.write_conf()
    proxy.reload()
    wait_for_line(proxy, "proxy.conf:")
    assert secure.shown_certificate(proxy) == old
    still_serves(proxy, sslmode="verify-full", sslrootcert=certificates.ca)


# ---- memory -----------------------------------------------------------------------------------------------------------


def test_an_idle_session_costs_what_openssl_keeps(make_tls_proxy, certificates):
    """Both legs encrypted; the bound is far below one record's buffer for each leg."""
    proxy = make_tls_proxy(**client_tls(certificates))
    tls = context(certificates)
    count = 60
    with contextlib.ExitStack() as stack:
        def more():
            for _ in range(count):
                sock = stack.enter_context(by_request(proxy, tls))
                conn = stack.enter_context(log_in(sock, "full"))
                assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
            return proxy.memory_kib("VmRSS")

        first = more()
        grown = (more() - first) / count
        print(f"{grown:.1f} KiB per idle session")
        assert proxy.is_sanitized() or grown < 100
