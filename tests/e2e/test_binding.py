"""What each driver says of channel binding when it begins SCRAM, seen by a server that offers it; OPERATIONS.md has the
same table."""
import re
import socket
import ssl
import struct
import threading

import pytest

import clients
import secure
import wire
from cluster import REPOSITORY

PLUS, ONLY = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0", b"SCRAM-SHA-256\0"
HEADERS = {"n": "does not bind", "y": "could bind", "p=tls-server-end-point": "binds", None: "refuses"}


class Offer:
    """A server that offers these mechanisms to one client, and keeps what it chose: (mechanism, GS2 flag) or None."""

    socket_dir = ""

    def __init__(self, certificates, mechanisms):
        self.mechanisms, self.chosen = mechanisms, None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*certificates["server"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(30)
        self.listener.close()

    def _serve(self):
        sock, _ = self.listener.accept()
        sock.settimeout(30)
        try:
            with sock:
                self._login(sock)
        except (OSError, EOFError):
            pass

    def _login(self, sock):
        conn = wire.Wire(sock)
        first = conn.read_bytes(8)
        if first == wire.SSL_REQUEST:
            conn.send(b"S")
            conn.sock = sock = self.context.wrap_socket(sock, server_side=True)
            first = conn.read_bytes(8)
        conn.read_bytes(struct.unpack("!i", first[:4])[0] - 8)
        conn.send(wire.message("R", struct.pack("!i", 10) + self.mechanisms + b"\0"))
        answer = conn.read()
        if answer.kind != "p":
            return
        mechanism, rest = answer.body.split(b"\0", 1)
        self.chosen = mechanism.decode(), rest[4:].split(b",")[0].decode()
        conn.send(wire.message("E", b"SFATAL\0C28000\0Mseen\0\0"))
        sock.close()


def seen(certificates, client, binding, is_tls, mechanisms):
    """What the driver answers to this offer."""
    with Offer(certificates, mechanisms) as offer:
        attempt = clients.Attempt("localhost", offer.port, "somebody", "secret", "e2e", clients.TLS if is_tls else clients.PLAIN, binding, certificates.ca)
        client.login(attempt)
    if not offer.chosen:
        return HEADERS[None]
    mechanism, flag = offer.chosen
    assert (mechanism == "SCRAM-SHA-256-PLUS") == (flag == "p=tls-server-end-point")
    return HEADERS[flag]


# How a table of the documents names the settings.
SETTINGS = {("psql", "disable"): "libpq, `channel_binding=disable`", ("psql", "prefer"): "libpq (default: `prefer`)", ("psql", "require"): "libpq, `channel_binding=require`",
            ("asyncpg", "disable"): "asyncpg", ("node-postgres", "disable"): "node-postgres", ("node-postgres", "prefer"): "node-postgres, `enableChannelBinding: true`",
            ("postgres.js", "disable"): "postgres.js", ("pgjdbc", "disable"): "pgjdbc 42.5"}


def documented():
    """Driver -> (inside TLS where PLUS is offered, inside TLS where it is not, without TLS)."""
    text = (REPOSITORY / "docs" / "OPERATIONS.md").read_text()
    section = text[text.index("### Which drivers bind"):]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", section.split("\n#")[0], re.M)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("client, binding", SETTINGS, ids="-".join)
def test_drivers_bind_as_documented(certificates, client, binding):
    driver = clients.CLIENTS[client]
    if driver.missing():
        pytest.skip(driver.missing())
    offers = [(True, PLUS), (True, ONLY), (False, ONLY)]
    assert tuple(seen(certificates, driver, binding, *offer) for offer in offers) == documented()[SETTINGS[client, binding]]


@pytest.mark.parametrize("client", ["psycopg", "psycopg2"])
def test_other_users_of_libpq(certificates, client):
    assert seen(certificates, clients.CLIENTS[client], "prefer", True, PLUS) == "binds"


def asked_through(certificates, make_proxy, **settings):
    """What reaches a server inside TLS that offers binding when a client without TLS logs in through pgseek."""
    with Offer(certificates, PLUS) as offer:
        proxy = make_proxy({"*": f"host=127.0.0.1 port={offer.port} sslmode=require"}, **settings)
        outcome = clients.psycopg_login(clients.Attempt("127.0.0.1", proxy.port, "somebody", "secret", "e2e", binding="prefer"))
        assert "seen" in outcome.text, outcome
    return HEADERS[offer.chosen[1]]


def test_relay_offers_no_binding_without_tls(certificates, make_proxy):
    """libpq gives up when binding is offered without TLS, so the proxy takes it out of what the server offers."""
    assert asked_through(certificates, make_proxy) == "does not bind"


def test_proxy_binds_towards_servers(certificates, make_proxy, run_dir):
    users = secure.private_file(run_dir / "binding.txt", secure.userlist({"somebody": secure.scram_secret("secret")}))
    assert asked_through(certificates, make_proxy, auth_type="scram-sha-256", auth_file=users) == "binds"
