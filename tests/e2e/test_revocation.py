"""Revocation lists on both legs. Who is refused with which list is whom PostgreSQL refuses with it as ssl_crl_file, and
libpq as sslcrl; and a reload is all that a new list takes."""
import contextlib
import pathlib
import re
import ssl
import subprocess

import psycopg
import pytest

import certificates as certs
import clients
import cluster
import secure
import wire

# name: (whom each authority has revoked, since when and until when)
LISTS = {"nobody": ({"ca": []}, certs.VALID), "alice": ({"ca": ["alice"]}, certs.VALID), "server": ({"ca": ["server"]}, certs.VALID),
         "whole chain": ({"ca": [], "intermediate": []}, certs.VALID), "intermediate": ({"ca": ["intermediate"], "intermediate": []}, certs.VALID),
         "chained": ({"intermediate": ["alice_chained", "chained"], "ca": []}, certs.VALID), "expired": ({"ca": [], "intermediate": []}, certs.EXPIRED),
         "early": ({"ca": [], "intermediate": []}, certs.EARLY)}
WHY = {"nobody": r"unable to get certificate CRL \(CN=\w+,O=pgseek tests, issued by CN=pgseek test intermediate", "alice": "certificate revoked|unable to get certificate CRL",
       "server": "certificate revoked|unable to get certificate CRL", "intermediate": r"certificate revoked \(CN=pgseek test intermediate",
       "chained": r"certificate revoked \(CN=(alice|localhost)", "expired": r"CRL has expired \(.*issued by CN=pgseek test",
       "early": r"CRL is not yet valid \(.*issued by CN=pgseek test"}


def file_of(certificates, name):
    return certificates.revoke(name.replace(" ", "_"), *LISTS[name])


def client_tls(certificates, name="proxy", sslmode="require", **more):
    pair = certificates[name]
    return {"client_tls_sslmode": sslmode, "client_tls_cert_file": pair.cert, "client_tls_key_file": pair.key, "client_tls_ca_file": certificates.ca, **more}


@pytest.fixture
def start(run_dir, secure_server):
    """start(databases=None, **settings): a proxy of the test's own in front of secure_server."""
    started = []

    def make(databases=None, **settings):
        started.append(secure.start_proxy(run_dir, secure_server, databases or secure.database_lines(secure_server), **settings))
        return started[-1]

    yield make
    for proxy in started:
        proxy.stop()


@pytest.fixture
def server_with_list(secure_server):
    """server_with_list(file): PostgreSQL itself reads this list until the end of the test."""
    def set_to(value):
        with secure_server.connect() as conn:
            conn.execute(f"ALTER SYSTEM SET ssl_crl_file = '{value}'")
            conn.execute("SELECT pg_reload_conf()")
        cluster.wait_until(lambda: setting() == value, "the server does not take the list")

    def setting():
        with secure_server.connect() as conn:
            return conn.execute("SHOW ssl_crl_file").fetchone()[0]

    def use(file):
        name = pathlib.Path(file).name
        secure_server._install(file, name)
        set_to(name)

    yield use
    set_to("")


def reload(proxy, **settings):
    """With the same settings, or some others; True where it was taken."""
    proxy.settings.update(settings)
    proxy.write_conf()
    before = len(proxy.log())
    proxy.reload()
    cluster.wait_until(lambda: re.search("reloaded|reload failed", proxy.log()[before:]), "no reload")
    return "reload failed" not in proxy.log()[before:]


def log_in(endpoint, certificates, shown=None, user="by_trust", database="plain", client="psycopg", is_paged=True):
    pair = certificates[shown] if shown else None
    return clients.CLIENTS[client].login(secure.attempt_at(endpoint, user, database, clients.TLS, ca=certificates.ca, client=pair, is_paged=is_paged))


# ---- clients ----------------------------------------------------------------------------------------------------------

SHOWN = ["alice", "bob", "alice_chained", None]


@pytest.mark.parametrize("name", LISTS)
def test_clients_are_refused_as_by_postgresql(start, server_with_list, secure_server, proxies, certificates, name):
    file = file_of(certificates, name)
    server_with_list(file)
    proxy = start(**client_tls(certificates, client_tls_crl_file=file))
    for shown in SHOWN:
        for client in ("psycopg", "psql"):
            straight = log_in(secure_server, certificates, shown, database="e2e", client=client, is_paged=False)
            before = len(proxy.log())
            through = log_in(proxy, certificates, shown, client=client)
            assert (straight.ids is None) == (through.ids is None), f"{shown}: {straight} {through}"
            assert through.ids in (None, proxies.expected)
            if not through.ids:
                cluster.wait_until(lambda: "closing because" in proxy.log()[before:], "the log does not say why")
                closing = [line for line in proxy.log()[before:].splitlines() if "closing because" in line]
                assert len(closing) == 1 and re.search(r"@(127\.0\.0\.1|\[::1\]):\d+ ", closing[0]) and re.search(WHY[name], closing[0]), closing
                assert alert(through) == alert(straight) != []


def alert(outcome):
    return re.findall(r"alert [a-z ]+", outcome.text)


def test_the_outcomes_differ(start, certificates):
    """The test above compares: here is what it should have compared."""
    proxy = start(**client_tls(certificates, client_tls_crl_file=file_of(certificates, "alice")))
    assert alert(log_in(proxy, certificates, "alice")) == ["alert certificate revoked"]
    assert log_in(proxy, certificates, "bob").ids and log_in(proxy, certificates).ids
    assert reload(proxy, client_tls_crl_file=file_of(certificates, "whole chain"))
    assert log_in(proxy, certificates, "alice").ids and log_in(proxy, certificates, "alice_chained").ids


@pytest.mark.parametrize("sslmode, is_met", [("allow", True), ("verify-ca", False), ("verify-full", False)])
def test_every_mode_refuses_what_was_revoked(start, certificates, sslmode, is_met):
    """What a client shows must be good; without one it is met as before."""
    proxy = start(**client_tls(certificates, sslmode=sslmode, client_tls_crl_file=file_of(certificates, "alice")))
    assert alert(log_in(proxy, certificates, "alice", "alice")) == ["alert certificate revoked"]
    assert log_in(proxy, certificates, "bob", "bob").ids
    assert bool(log_in(proxy, certificates, None, "alice").ids) == is_met


# ---- reload -----------------------------------------------------------------------------------------------------------


def context(certificates, version, client):
    made = ssl.create_default_context(cafile=str(certificates.ca))
    made.minimum_version = made.maximum_version = version
    made.load_cert_chain(certificates[client].cert, certificates[client].key)
    return made


@contextlib.contextmanager
def visit(proxy, tls, session=None):
    """A socket behind its log-in."""
    sock = proxy.socket()
    sock.sendall(wire.SSL_REQUEST)
    assert sock.recv(1) == b"S"
    with tls.wrap_socket(sock, server_hostname="localhost", session=session) as secured, wire.Wire(secured) as conn:
        conn.start(user="by_trust", database="plain")
        assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]
        yield secured, conn


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_ticket_does_not_outlive_a_revocation(start, certificates, version):
    proxy = start(**client_tls(certificates, client_tls_crl_file=file_of(certificates, "nobody")))
    tls = context(certificates, version, "alice")
    with visit(proxy, tls) as (sock, _):
        session = sock.session
    with visit(proxy, tls, session) as (sock, conn):
        assert sock.session_reused
        session = sock.session
        assert reload(proxy, client_tls_crl_file=file_of(certificates, "alice"))
        assert conn.rows(wire.query("SELECT 1")) == [[b"1"]]  # who is in stays
    with pytest.raises(ssl.SSLError, match="(?i)alert.certificate.revoked"), visit(proxy, tls, session):
        pass


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_ticket_does_not_outlive_its_list(start, certificates, version):
    """There is no ticket that anybody could have got with a list that is out of date."""
    proxy = start(**client_tls(certificates, client_tls_crl_file=file_of(certificates, "expired")))
    with pytest.raises(ssl.SSLError, match="(?i)alert.certificate.expired"), visit(proxy, context(certificates, version, "alice")):
        pass


def test_a_list_is_renewed_in_place(start, certificates):
    """The authority's file, written again under its name; and one that does not load changes nothing."""
    path = certificates.revoke("renewed", {"ca": []})
    proxy = start(**client_tls(certificates, client_tls_crl_file=path))
    assert log_in(proxy, certificates, "alice").ids
    certificates.revoke("renewed", {"ca": ["alice"]})
    assert log_in(proxy, certificates, "alice").ids  # nobody has read it yet
    assert reload(proxy)
    assert alert(log_in(proxy, certificates, "alice")) == ["alert certificate revoked"]
    pathlib.Path(path).write_text("-----BEGIN X509 CRL-----\nMII\n-----END X509 CRL-----\n")
    assert not reload(proxy)
    assert f'client_tls_crl_file "{path}" holds a revocation list that is damaged' in proxy.log()
    assert alert(log_in(proxy, certificates, "alice")) == ["alert certificate revoked"]
    assert log_in(proxy, certificates, "bob").ids


def test_a_list_out_of_date_is_a_warning(start, certificates):
    """It came to be so by itself: a start goes on, who needs no list is met, and each certificate is refused."""
    old, new = file_of(certificates, "expired"), file_of(certificates, "nobody")
    proxy = start(**client_tls(certificates, client_tls_crl_file=old))
    warning = re.compile(re.escape(f"WARNING {old}: the revocation list of CN=pgseek test CA,O=pgseek tests has expired on ") + ".* are refused")
    check = subprocess.run([cluster.pgseek_bin(), "-t", proxy.conf], capture_output=True, text=True, timeout=60)
    assert check.returncode == 0 and warning.search(check.stderr), check.stderr
    assert len(warning.findall(proxy.log())) == 1
    assert log_in(proxy, certificates).ids and not log_in(proxy, certificates, "alice").ids
    assert reload(proxy) and len(warning.findall(proxy.log())) == 2
    assert reload(proxy, client_tls_crl_file=new) and len(warning.findall(proxy.log())) == 2
    assert re.search(re.escape(new) + ": certificates that CN=pgseek test CA,O=pgseek tests has revoked: 0; its next list is due: 20", proxy.log())
    assert log_in(proxy, certificates, "alice").ids


# ---- servers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def shows(secure_server):
    yield secure_server.use_certificate
    secure_server.use_certificate("server")


def server_legs(server, file):
    """Lines of [databases] that libpq reads as well."""
    there = f"host=localhost port={server.port} dbname=e2e sslrootcert={server.certificates.ca} sslcrl={file}"
    return {mode: f"{there} sslmode={mode}" for mode in ("require", "verify-ca", "verify-full")}


@pytest.mark.parametrize("name", LISTS)
def test_servers_are_refused_as_by_libpq(start, secure_server, proxies, shows, certificates, name):
    lines = server_legs(secure_server, file_of(certificates, name))
    proxy = start(lines)
    for shown in ("server", "chained"):
        shows(shown)
        for mode, line in lines.items():
            try:
                psycopg.connect(line, user="by_trust", sslcert="/nowhere", gssencmode="disable").close()
                refused = None
            except psycopg.OperationalError as error:
                refused = str(error)
            outcome = clients.psycopg_login(secure.attempt_at(proxy, "by_trust", mode))
            assert outcome.ids == (None if refused else proxies.expected), f"{shown} {mode}: libpq: {refused}, through: {outcome}"
            assert not refused or ("FATAL" in outcome.text and re.search(WHY[name], outcome.text)), outcome


def test_the_option_is_for_all_lines_that_do_not_say_otherwise(start, secure_server, certificates):
    there = f"host=localhost port={secure_server.port} dbname=e2e"
    lines = {"inherits": there, "own": f"{there} sslcrl={file_of(certificates, 'nobody')}", "none": f"{there} sslcrl=''"}
    proxy = start(lines, server_tls_sslmode="verify-full", server_tls_ca_file=certificates.ca, server_tls_crl_file=file_of(certificates, "server"))
    outcomes = {name: clients.psycopg_login(secure.attempt_at(proxy, "by_trust", name)) for name in lines}
    assert outcomes["own"].ids and outcomes["none"].ids
    assert "certificate revoked (CN=localhost" in outcomes["inherits"].text
    assert reload(proxy, server_tls_crl_file=file_of(certificates, "nobody"))
    assert clients.psycopg_login(secure.attempt_at(proxy, "by_trust", "inherits")).ids


def test_auth_query_asks_no_server_that_was_revoked(start, secure_server, certificates):
    """Where libpq cannot read its list it goes on without one: the proxy does not."""
    path = pathlib.Path(certificates.revoke("of_lookup", {"ca": ["server"]}))
    line = f"host=localhost port={secure_server.port} dbname=e2e sslmode=verify-full sslrootcert={certificates.ca}"
    proxy = start({"shop": f"{line} sslcrl={path}"}, auth_type="scram-sha-256", auth_user="lookup")
    by_scram = secure.attempt_at(proxy, "by_scram", "shop")
    assert "authentication is not possible" in clients.psycopg_login(by_scram).text
    assert re.search("certificate (verify failed|revoked)", proxy.log())
    certificates.revoke("of_lookup", {"ca": []})
    assert reload(proxy)
    assert clients.psycopg_login(by_scram).ids
    path.unlink()
    with secure_server.connect() as admin:  # the connection that is kept was made while there was a list
        admin.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'pgseek auth_query'")
    assert "authentication is not possible" in clients.psycopg_login(by_scram).text
    assert f'sslcrl "{path}" cannot be opened' in proxy.log()
