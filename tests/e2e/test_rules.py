"""auth_hba_file and auth_ident_file with real clients: which line decides, whose certificate is whose, and what a reload changes."""
import contextlib
import re
import socket
import ssl

import psycopg
import pytest

import certificates as certs
import cluster as clusters
import wire

USERS = ["alice", "bob", "mapped", "anybody", "listed", "checked"]

RULES = """
local    all           bob                      reject
local    all           all                      relay
hostssl  all           alice       127.0.0.1/32 cert
hostssl  all           mapped      all          cert map=people
hostssl  all           anybody     all          cert map=team
hostssl  all           checked     all          relay clientcert=verify-ca
host     "all"         listed      all          relay
host     postgres,e2e  listed      10.0.0.0/8   relay
hostnossl postgres     listed      127.0.0.0/8  relay
host     replication   bob         samehost     relay
host     sameuser      all         samenet      relay
"""
MAPS = f"""
people   bob           mapped
people   "{certs.ODD_NAME.replace('"', '""')}"   mapped
people   /^(ali)ce$    mapped
team     "/^b[^,]*$"   all
"""

NO_LINE = "no auth_hba_file entry"
REJECTED = "auth_hba_file rejects the connection"
NO_CERTIFICATE = "connection requires a valid client certificate"
OTHER_NAME = "certificate authentication failed for user"
HANDSHAKE = "SSL"  # TLS itself fails: the certificate is no good
UNIX, PLAIN, TLS = "unix", "plain", "tls"

# (leg, certificate or None, user, database) -> None: it works; else what the client is told.
CASES = [
    ((UNIX, None, "alice", "e2e"), None),
    ((UNIX, None, "bob", "e2e"), REJECTED),
    ((PLAIN, None, "alice", "e2e"), NO_LINE),
    ((TLS, None, "alice", "e2e"), NO_CERTIFICATE),
    ((TLS, "alice", "alice", "e2e"), None),
    ((TLS, "alice_chained", "alice", "e2e"), None),
    ((TLS, "bob", "alice", "e2e"), OTHER_NAME),
    ((TLS, "nobody", "alice", "e2e"), OTHER_NAME),
    ((TLS, "alice_and_bob", "alice", "e2e"), OTHER_NAME),
    ((TLS, "alice_nul", "alice", "e2e"), OTHER_NAME),
    ((TLS, "alice_expired", "alice", "e2e"), HANDSHAKE),
    ((TLS, "alice_early", "alice", "e2e"), HANDSHAKE),
    ((TLS, "alice_of_other_ca", "alice", "e2e"), HANDSHAKE),
    ((TLS, "alice_self_signed", "alice", "e2e"), HANDSHAKE),
    ((TLS, "bob", "mapped", "e2e"), None),
    ((TLS, "odd", "mapped", "e2e"), None),
    ((TLS, "alice", "mapped", "e2e"), None),
    ((TLS, "nobody", "mapped", "e2e"), OTHER_NAME),
    ((TLS, "bob", "anybody", "e2e"), None),
    ((TLS, "alice", "anybody", "e2e"), OTHER_NAME),
    ((TLS, None, "checked", "e2e"), NO_CERTIFICATE),
    ((TLS, "bob", "checked", "e2e"), None),  # whose it is does not matter
    ((PLAIN, None, "checked", "e2e"), NO_LINE),
    ((PLAIN, None, "listed", "postgres"), None),
    ((PLAIN, None, "listed", "e2e"), NO_LINE),
    ((PLAIN, None, "listed", "all"), "does not exist"),  # the rule lets it pass, the server has no such database
    ((TLS, None, "listed", "postgres"), NO_LINE),
    ((PLAIN, None, "bob", "e2e"), NO_LINE),
    ((PLAIN, None, "bob", "bob"), "does not exist"),
]


@pytest.fixture(scope="module")
def roles(server):
    with server.connect() as conn:
        for user in USERS:
            conn.execute(f"CREATE ROLE {user} LOGIN")
        conn.execute("ALTER ROLE bob REPLICATION")
        yield
        for user in USERS:
            conn.execute(f"DROP ROLE {user}")


@pytest.fixture
def make(make_proxy, run_dir, certificates, roles):
    """make(rules, maps, databases): a proxy with them, and its files in proxy.settings."""
    def started(rules, maps=MAPS, databases=None):
        pair = certificates["proxy"]
        proxy_files = {"auth_hba_file": rules, "auth_ident_file": maps}
        folder = run_dir / f"rules{len(list(run_dir.glob('rules*')))}"
        folder.mkdir()
        for name, text in proxy_files.items():
            (folder / name).write_text(text)
        return make_proxy(databases, auth_type="hba", client_tls_sslmode="prefer", client_tls_cert_file=pair.cert, client_tls_key_file=pair.key,
                          client_tls_ca_file=certificates.ca, **{name: folder / name for name in proxy_files})

    return started


@pytest.fixture(scope="module")
def shared(server, run_dir, certificates, roles):
    """One proxy for all cases, since they change nothing."""
    pair = certificates["proxy"]
    directory = run_dir / "shared-rules"
    directory.mkdir()
    (directory / "hba").write_text(RULES)
    (directory / "map").write_text(MAPS)
    proxy = clusters.Proxy(directory, server).start(
        auth_type="hba", auth_hba_file=directory / "hba", auth_ident_file=directory / "map", client_tls_sslmode="prefer",
        client_tls_cert_file=pair.cert, client_tls_key_file=pair.key, client_tls_ca_file=certificates.ca)
    yield proxy
    proxy.stop()


def connect(proxy, certificates, leg, certificate, user, database):
    """TLS with a certificate or none, in clear text, or by the Unix socket."""
    options = {"sslmode": {TLS: "verify-full", PLAIN: "disable", UNIX: None}[leg], "gssencmode": "disable"}
    if leg == UNIX:
        options["host"] = proxy.socket_dir
    if leg == TLS:
        pair = certificates[certificate] if certificate else None
        options.update(sslrootcert=certificates.ca, sslcert=pair.cert if pair else "none", sslkey=pair.key if pair else "none")
    return proxy.connect(user=user, dbname=database, **options)


@pytest.mark.parametrize("attempt, told", CASES, ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else "")
def test_the_line_decides(shared, certificates, attempt, told):
    user, database = attempt[2:]
    if told is None:
        with connect(shared, certificates, *attempt) as conn:
            assert conn.execute("SELECT current_user, current_database()").fetchone() == (user, database)
        return
    with pytest.raises(psycopg.OperationalError) as caught:
        connect(shared, certificates, *attempt).close()
    assert told in str(caught.value)
    if told in (NO_LINE, REJECTED):
        assert f'user "{user}"' in str(caught.value) and f'database "{database}"' in str(caught.value)


def test_the_log_names_the_line(shared, certificates):
    for attempt in ((UNIX, None, "bob", "e2e"), (TLS, "bob", "alice", "e2e")):
        with pytest.raises(psycopg.OperationalError):
            connect(shared, certificates, *attempt).close()
    clusters.wait_until(lambda: re.search(r"certificate authentication failed for user \"alice\": the certificate's common name is \"bob\" "
                                          r"\(line 4 of auth_hba_file\)", shared.log()), "the log does not name the certificate")
    assert re.search(r"rejects the connection for .*user \"bob\".*\(line 2 of auth_hba_file\)", shared.log())


def test_replication_has_lines_of_its_own(shared):
    with shared.connect(user="bob", sslmode="disable", replication="true", cursor_factory=psycopg.ClientCursor) as conn:
        assert len(conn.execute("IDENTIFY_SYSTEM").fetchone()) == 4
    with pytest.raises(psycopg.OperationalError, match=NO_LINE):
        shared.connect(user="listed", dbname="postgres", sslmode="disable", replication="true").close()


def test_a_name_that_the_server_would_cut_is_refused(make):
    """PostgreSQL takes the first 63 bytes: with one more, a rule would have decided about another user."""
    long = "r" + 62 * "x"
    proxy = make(f"host all {long} all reject\nhost all all all relay\n")
    for name in (long, long + "y"):
        with pytest.raises(psycopg.OperationalError) as caught:
            proxy.connect(user=name, sslmode="disable").close()
        assert REJECTED in str(caught.value) or "too long" in str(caught.value)


def test_a_reload_changes_the_rules_for_those_who_come(make, certificates):
    proxy = make("host all alice all relay\n")
    with connect(proxy, certificates, PLAIN, None, "alice", "e2e") as old:
        hba = proxy.settings["auth_hba_file"]
        hba.write_text("host all bob all relay\n")
        proxy.reload()
        clusters.wait_until(lambda: works(proxy, certificates, "bob"), "the new rules do not come into force")
        assert not works(proxy, certificates, "alice")
        assert old.execute("SELECT current_user").fetchone() == ("alice",)
        hba.write_text("host all alice all relay\nhost all all all trust\n")  # one fault: none of it is taken
        proxy.reload()
        clusters.wait_until(lambda: "the old settings stay in force" in proxy.log(), "the fault is not told")
        assert works(proxy, certificates, "bob") and not works(proxy, certificates, "alice")
        assert f'{hba}:2: method "trust" lets anybody in' in proxy.log()


def test_who_has_come_before_a_reload_meets_one_configuration(make_proxy, run_dir, certificates, roles):
    """Under both a certificate must be shown, by a rule or by client_tls_sslmode. Who holds a connection open over the
    reload meets the old rules and the old mode: never the old mode, which asks for none, without the rules."""
    pair = certificates["proxy"]
    rules = run_dir / "before-reload"
    rules.write_text("hostssl all all all cert\n")
    tls = {"client_tls_cert_file": pair.cert, "client_tls_key_file": pair.key, "client_tls_ca_file": certificates.ca, "workers": 1}
    proxy = make_proxy(client_tls_sslmode="prefer", auth_type="hba", auth_hba_file=rules, **tls)
    context = ssl.create_default_context(cafile=str(certificates.ca))
    with proxy.socket() as sock:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"S"
        with context.wrap_socket(sock, server_hostname="localhost") as inside:
            proxy.settings.update(client_tls_sslmode="verify-full", auth_type="relay", auth_hba_file=None)
            proxy.write_conf()
            proxy.reload()
            clusters.wait_until(lambda: is_refused_in_the_handshake(proxy), "the new mode does not come into force")
            conn = wire.Wire(inside)
            conn.send(wire.startup(user="alice", database="e2e"))
            error = conn.read()
            assert error.kind == "E" and NO_CERTIFICATE in error.fields()["M"], error


def is_refused_in_the_handshake(proxy):
    with pytest.raises(psycopg.OperationalError) as caught:
        proxy.connect(user="alice", sslmode="require", sslcert="none", sslkey="none").close()
    return NO_CERTIFICATE not in str(caught.value)


def works(proxy, certificates, user):
    with contextlib.suppress(psycopg.OperationalError):
        connect(proxy, certificates, PLAIN, None, user, "e2e").close()
        return True
    return False


def test_the_server_is_not_bothered(make, certificates):
    """Who is refused by a rule costs no connection to the server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = make("host all all all reject\n", databases={"*": f"host=127.0.0.1 port={listener.getsockname()[1]}"})
        for _ in range(5):
            assert not works(proxy, certificates, "alice")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
