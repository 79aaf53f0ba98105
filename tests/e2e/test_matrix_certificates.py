"""Certificates, right and wrong, on both legs. What should come of each is what libpq, or the driver, does with the
same certificate and PostgreSQL itself."""
import re

import psycopg
import pytest

import certificates as certs
import clients
import secure
from cluster import HAS_IPV6

SERVERS = ["server", "expired", "early", "of_other_ca", "other_name", "names_only", "addresses_only", "no_names", "address_as_common", "self_signed",
           "chained", "rsa", "ed25519", "sha384"]


def modes(server):
    """Server legs as keywords of libpq and of [databases] alike."""
    ca, name, address = f"sslrootcert={server.certificates.ca}", "host=localhost", "host=127.0.0.1"
    legs = {"require": f"{address} sslmode=require", "require_ca": f"{address} sslmode=require {ca}", "verify_ca": f"{address} sslmode=verify-ca {ca}",
            "full_by_name": f"{name} sslmode=verify-full {ca}", "full_by_address": f"{address} sslmode=verify-full {ca}"}
    if HAS_IPV6:
        legs["full_by_address6"] = f"host=::1 sslmode=verify-full {ca}"
    if server.version() >= 17:
        legs["direct"] = f"{name} sslmode=verify-full {ca} sslnegotiation=direct"
    return legs


def direct(server, leg, user="by_trust", **options):
    """What libpq does with the server: None, or what it says. It cannot begin with TLS before version 17."""
    leg = leg.replace(" sslnegotiation=direct", "")
    more = {"user": user, "password": secure.password_of(user), "port": server.port, "dbname": "e2e", "gssencmode": "disable",
            "channel_binding": "disable", "sslcert": "/nowhere", **options}
    try:
        psycopg.connect(psycopg.conninfo.make_conninfo(leg, **more)).close()
        return None
    except psycopg.OperationalError as error:
        return str(error)


def through(proxy, database, user="by_trust", **more):
    return clients.psycopg_login(secure.attempt_at(proxy, user, database, **more))


@pytest.fixture
def shows(secure_server):
    """shows(name): the server shows this certificate until the end of the test."""
    yield secure_server.use_certificate
    secure_server.use_certificate("server")


@pytest.fixture(scope="module")
def verifier(secure_server, make_secure_proxy):
    return make_secure_proxy({name: f"{leg} port={secure_server.port} dbname=e2e" for name, leg in modes(secure_server).items()})


@pytest.fixture(scope="module")
def make_secure_proxy(secure_server, run_dir):
    """make_secure_proxy(databases, **settings): pgseek in front of secure_server."""
    started = []

    def make(databases, **settings):
        started.append(secure.start_proxy(run_dir, secure_server, databases, **settings))
        return started[-1]

    yield make
    clients.stop_programs()  # postgres.js keeps what has failed, and a proxy waits for its clients
    for proxy in started:
        proxy.stop()


# libpq takes an address written as a common name; an address is an address here (RFC 9525).
STRICTER = [("address_as_common", "full_by_address")]
CAUSES = {"expired": "expired", "early": "not yet valid", "of_other_ca": "issuer|authority|self.signed", "self_signed": "self.signed", "ed25519": "issuer|authority|self.signed"}


@pytest.mark.parametrize("name", SERVERS)
def test_server_certificate(secure_server, proxies, verifier, shows, name):
    """Each mode of the server leg takes and refuses what libpq takes and refuses, and the log says why."""
    shows(name)
    for mode, leg in modes(secure_server).items():
        refused = "an address as a common name" if (name, mode) in STRICTER else direct(secure_server, leg)
        before = len(verifier.log())
        outcome = through(verifier, mode)
        assert (outcome.ids == proxies.expected) == (refused is None), f"{mode}: libpq: {refused}, through: {outcome}"
        if refused:
            log = verifier.log()[before:]
            assert "FATAL" in outcome.text, outcome
            assert re.search(CAUSES.get(name, "name|address|localhost|127.0.0.1"), log), f"{mode}: {log}"


# ---- the proxy's own certificate --------------------------------------------------------------------------------------

OWN = ["proxy", "chained", "rsa", "sha384", "ed25519", "of_other_ca", "self_signed", "other_name", "no_names"]
PLAIN_LEG = "host=127.0.0.1 port={} dbname=e2e sslmode=disable"


@pytest.mark.parametrize("name", OWN)
def test_certificate_of_the_proxy(secure_server, proxies, make_secure_proxy, shows, certificates, name):
    """Every driver that verifies takes the proxy for whom it takes a server with that certificate."""
    shows(name)
    pair = certificates[name]
    proxy = make_secure_proxy({"*": PLAIN_LEG.format(secure_server.port)}, client_tls_sslmode="require", client_tls_cert_file=pair.cert, client_tls_key_file=pair.key)
    for client in clients.CLIENTS.values():
        for sslmode in ("require", "verify-ca", "verify-full") if client.is_libpq else ("verify-full",):
            if client.missing():
                continue
            ca = None if sslmode == "require" else certificates.ca
            attempts = [secure.attempt_at(there, "by_scram", "e2e", clients.TLS, ca=ca, sslmode=sslmode, is_paged=there is proxy) for there in (secure_server, proxy)]
            straight, proxied = map(client.login, attempts)
            assert (straight.ids is None) == (proxied.ids is None), f"{client.name} {sslmode}: {straight} {proxied}"
            assert proxied.ids in (None, proxies.expected)
            assert sslmode != "require" or proxied.ids
    proxy.stop()


@pytest.mark.parametrize("name", ["chained", "rsa", "sha384", "sha512", "ed25519", "self_signed"])
def test_binding_by_certificate(secure_server, proxies, make_secure_proxy, shows, certificates, name):
    """SCRAM is bound to a digest of the certificate, chosen by how that is signed: on both legs, as with the server
    itself. Ed25519 has none, so nobody can bind there."""
    shows(name)
    pair = certificates[name]
    users = secure.private_file(proxies.directory / "users.txt", secure.userlist(secure_server.secrets()))
    proxy = make_secure_proxy({"*": f"host=127.0.0.1 port={secure_server.port} dbname=e2e sslmode=require"}, client_tls_sslmode="require",
                              client_tls_cert_file=pair.cert, client_tls_key_file=pair.key, auth_type="scram-sha-256", auth_file=users)
    for client, binding in [("psycopg", binding) for binding in clients.ALL_BINDINGS] + [("node-postgres", "prefer"), ("asyncpg", "disable")]:
        driver = clients.CLIENTS[client]
        if driver.missing():
            continue
        ca = certificates.ca if name not in CAUSES else certificates["ed25519_ca" if name == "ed25519" else name].cert
        attempts = [secure.attempt_at(there, "by_scram", "e2e", clients.TLS, ca=ca, binding=binding, is_paged=there is proxy) for there in (secure_server, proxy)]
        straight, proxied = map(driver.login, attempts)
        # Where binding is offered for Ed25519, by the server, libpq gives up even if it need not bind.
        is_refused = straight.ids is None and binding == clients.REQUIRE
        assert proxied.ids == (None if is_refused else proxies.expected), f"{client} {binding}: {straight} {proxied}\n{proxy.log()[-1500:]}"
        assert not is_refused or name == "ed25519"
    proxy.stop()


# ---- certificates of clients ------------------------------------------------------------------------------------------

# Of the client, the user it asks for -> how the proxy answers: None is welcome, "tls" ends the handshake, else SQLSTATE.
VERIFY_CA = [("alice", "alice", None), ("alice", "bob", None), ("nobody", "bob", None), ("alice_chained", "alice", None), ("alice_expired", "alice", "tls"),
             ("alice_early", "alice", "tls"), ("alice_of_other_ca", "alice", "tls"), ("alice_self_signed", "alice", "tls"), (None, "alice", "tls")]
VERIFY_FULL = [("alice", "alice", None), ("bob", "bob", None), ("alice_chained", "alice", None), ("alice", "bob", "28000"), ("nobody", "alice", "28000"),
               ("alice_nul", "alice", "28000"), ("alice_and_bob", "alice", "28000"), ("alice_expired", "alice", "tls"), ("alice_of_other_ca", "alice", "tls"),
               (None, "alice", "tls")]
BY_RULE = [("alice", "alice", None), ("alice", "with_map", None), ("odd", "with_map", None), ("bob", "with_map", "28000"), ("alice", "bob", "28000"), (None, "alice", "28000"),
           ("nobody", "alice", "28000"), ("alice_nul", "alice", "28000"), ("alice_expired", "alice", "tls"), ("alice_of_other_ca", "alice", "tls"),
           ("alice_expired", "by_trust", "tls"), (None, "by_trust", None), ("bob", "by_trust", None)]


def answered(outcome):
    """How a login ended, in the words of the tables above; libpq does not show SQLSTATEs of a login."""
    if outcome.ids is not None:
        return None
    return "28000" if "FATAL" in outcome.text or outcome.sqlstate == "28000" else "tls"


def log_in(proxy, certificates, client, shown, user, leg=clients.TLS, database="plain"):
    pair = certificates[shown] if shown else None
    pkcs12 = certificates.pkcs12(shown) if shown else None
    return client.login(secure.attempt_at(proxy, user, database, leg, ca=certificates.ca, client=pair, pkcs12=pkcs12))


@pytest.fixture(scope="module")
def takes_certificates(secure_server, make_secure_proxy, certificates):
    """sslmode -> a proxy that demands certificates of its clients."""
    pair = certificates["proxy"]
    return {sslmode: make_secure_proxy(secure.database_lines(secure_server), client_tls_sslmode=sslmode, client_tls_cert_file=pair.cert, client_tls_key_file=pair.key,
                                       client_tls_ca_file=certificates.ca) for sslmode in ("verify-ca", "verify-full")}


@pytest.mark.parametrize("sslmode, shown, user, answer", [("verify-ca", *case) for case in VERIFY_CA] + [("verify-full", *case) for case in VERIFY_FULL])
def test_certificate_of_a_client(takes_certificates, proxies, certificates, sslmode, shown, user, answer):
    outcome = log_in(takes_certificates[sslmode], certificates, clients.CLIENTS["psycopg"], shown, user)
    assert answered(outcome) == answer, f"{outcome}\n{takes_certificates[sslmode].log()[-1500:]}"
    assert outcome.ids in (None, proxies.expected)


@pytest.mark.parametrize("shown, user, answer", BY_RULE)
def test_certificate_by_rule(proxies, certificates, shown, user, answer):
    outcome = log_in(proxies["hba"], certificates, clients.CLIENTS["psycopg"], shown, user)
    assert answered(outcome) == answer, f"{outcome}\n{proxies['hba'].log()[-1500:]}"
    assert outcome.ids in (None, proxies.expected)


# Drivers close on the alert or on the broken connection: both are the end of a handshake.
@pytest.mark.parametrize("client", clients.CLIENTS)
@pytest.mark.parametrize("leg", [clients.TLS, clients.DIRECT])
def test_certificates_of_all_drivers(takes_certificates, proxies, certificates, client, leg):
    driver = clients.CLIENTS[client]
    if driver.missing() or leg not in driver.legs:
        pytest.skip(driver.missing() or f"{client} cannot begin with TLS")
    proxy = takes_certificates["verify-full"]
    for shown, user, answer in [("alice", "alice", None), ("alice", "bob", "28000"), ("alice_of_other_ca", "alice", "tls"), (None, "alice", "tls")]:
        outcome = log_in(proxy, certificates, driver, shown, user, leg)
        assert answered(outcome) == answer, f"{shown} as {user}: {outcome}\n{proxy.log()[-1500:]}"
        assert outcome.ids in (None, proxies.expected)


@pytest.mark.parametrize("sslmode", ["require", "verify-ca", "verify-full"])
def test_without_tls_where_it_is_required(secure_server, make_secure_proxy, takes_certificates, proxies, certificates, sslmode):
    """Clear text on TCP is refused with the way out; a Unix socket is not asked for TLS."""
    pair = certificates["proxy"]
    proxy = takes_certificates.get(sslmode) or make_secure_proxy(secure.database_lines(secure_server), client_tls_sslmode=sslmode,
                                                                 client_tls_cert_file=pair.cert, client_tls_key_file=pair.key)
    outcome = through(proxy, "plain")
    assert "FATAL" in outcome.text and "sslmode=require" in outcome.text
    assert through(proxy, "plain", leg=clients.UNIX).ids == proxies.expected


# ---- the certificate that the proxy shows to servers ------------------------------------------------------------------



@pytest.mark.parametrize("shown, is_welcome", [("proxy_client", True), (None, False), ("alice", False), ("alice_of_other_ca", False), ("alice_self_signed", False)])
def test_certificate_for_the_server(secure_server, proxies, make_secure_proxy, certificates, shown, is_welcome):
    """Where the server's own rule is `cert`, it is the proxy that shows one: as libpq's sslcert and sslkey."""
    leg = f"host=localhost sslmode=verify-full sslrootcert={certificates.ca}"
    pair = certificates[shown] if shown else None
    settings = {"server_tls_cert_file": pair.cert, "server_tls_key_file": pair.key} if pair else {}
    proxy = make_secure_proxy({"*": f"{leg} port={secure_server.port} dbname=e2e"}, **settings)
    refused = direct(secure_server, leg, "by_cert", **({"sslcert": pair.cert, "sslkey": pair.key} if pair else {}))
    outcome = through(proxy, "e2e", "by_cert")
    assert (refused is None) == is_welcome
    assert (outcome.ids == proxies.expected) == is_welcome, f"{outcome}\n{proxy.log()[-1500:]}"
    assert is_welcome or "FATAL" in outcome.text, f"{outcome}\n{proxy.log()[-1500:]}"
    proxy.stop()


def test_certificate_of_one_database(secure_server, proxies, make_secure_proxy, certificates):
    """sslcert and sslkey of a line come before those of the settings."""
    leg = f"host=localhost port={secure_server.port} dbname=e2e"
    wrong, right = certificates["alice"], certificates["proxy_client"]
    proxy = make_secure_proxy({"right": f"{leg} sslcert={right.cert} sslkey={right.key}", "*": leg}, server_tls_sslmode="verify-full", server_tls_ca_file=certificates.ca,
                              server_tls_cert_file=wrong.cert, server_tls_key_file=wrong.key)
    assert through(proxy, "right", "by_cert").ids == proxies.expected
    assert "FATAL" in through(proxy, "other", "by_cert").text
    proxy.stop()


# ---- allow and prefer -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sslmode", ["disable", "allow", "prefer", "require"])
def test_what_the_server_wants(secure_server, make_secure_proxy, certificates, sslmode):
    """By the rules of pg_hba.conf a user may have to use TLS, or may not: allow and prefer try the other way, as libpq
    does, and end encrypted or not as libpq's connection does."""
    leg = f"host=127.0.0.1 sslmode={sslmode}"
    proxy = make_secure_proxy({"*": f"{leg} port={secure_server.port} dbname=e2e"})

    def is_encrypted(endpoint, user, **options):
        try:
            with psycopg.connect(endpoint.dsn(user=user, password=secure.password_of(user), gssencmode="disable", channel_binding="disable", **options)) as conn:
                return conn.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone()[0]
        except psycopg.OperationalError as error:
            assert "no pg_hba.conf entry" in str(error) or "rejects" in str(error), error
            return "refused"

    for user in ("with_tls", "without_tls", "by_trust", "by_md5", "by_scram"):
        assert is_encrypted(proxy, user, sslmode="disable") == is_encrypted(secure_server, user, sslmode=sslmode, sslcert="/nowhere"), user
    proxy.stop()
