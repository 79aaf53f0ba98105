"""A scriptable hostile server, a server whose words are spoilt on the way, and a hostile client: the proxy goes on, a
neighbour who walks pages all the while sees nothing of it, nothing is left behind, and the log names the cause once.
"""
import re
import socket
import ssl
import struct
import subprocess
import threading

import pytest

import cluster as clusters
import hostile
import test_faults
import wire
from hostile import ANSWER, AUTH_OK, COLUMNS, KEY, READY, ROW, STATUS, WELCOME, Hear, Reset, Slowly, Stall
from wire import message, query

ROWS = 60
LOGIN_SECONDS = 2
PAGE = "SELECT id FROM hostile_feed ORDER BY id LIMIT 7 /* pgseek cursor='{}' */"

# ---- servers by script -----------------------------------------------------------------------------------------------

# How a session with such a server ends for its client:
RELAYED = "what the server has said, and no more"
VIOLATION = "FATAL 08P01, a protocol violation by the server"
TIMEOUT = "FATAL of client_login_timeout"

FLOOD = 20000
SASL = message("R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0")

# name: (what it says, how the session ends). The client logs in and asks one query at once.
SERVERS = {
    "good": ((WELCOME, Hear, ANSWER), RELAYED),
    "good, byte by byte": ((Slowly(WELCOME), Hear, Slowly(ANSWER)), RELAYED),
    # the log-in
    "silence": ((Stall,), TIMEOUT),
    "silence behind a request for a password": ((message("R", struct.pack("!i", 3)), Stall), TIMEOUT),
    "silence in the midst of a message": ((AUTH_OK[:6], Stall), TIMEOUT),
    "silence behind AuthenticationOk": ((AUTH_OK, Stall), TIMEOUT),
    "an unknown request for authentication": ((message("R", struct.pack("!i", 99)),), RELAYED),
    "a request for authentication of 2 bytes": ((message("R", b"\0\0"),), None),
    "a nonce of 1 MB": ((SASL, Hear, message("R", struct.pack("!i", 11) + b"r=" + b"n" * 2**20 + b",s=QQ==,i=4096")), None),
    "4 billion iterations": ((SASL, Hear, message("R", struct.pack("!i", 11) + b"r=abc,s=QQ==,i=4294967295")), None),
    "a list of mechanisms without end": ((message("R", struct.pack("!i", 10) + b"SCRAM" * 5000),), None),
    "a version of the future": ((message("v", struct.pack("!ii", 0x7fffffff, 0)), WELCOME, Hear, ANSWER), RELAYED),
    "a version of 2 bytes": ((message("v", b"\0\0"), WELCOME, Hear, ANSWER), None),
    "options that are not there": ((message("v", struct.pack("!ii", wire.PROTOCOL_3_0, 1000)), WELCOME), None),
    **{f"a cancel key of {size} bytes": ((AUTH_OK, message("K", bytes(size)), READY, Hear, ANSWER), end)
       for size, end in ((0, VIOLATION), (3, VIOLATION), (4, VIOLATION), (5, RELAYED), (260, RELAYED), (261, VIOLATION),
                         (4096, VIOLATION))},
    "the cancel key twice": ((AUTH_OK, KEY, KEY, READY, Hear, ANSWER), None),
    "ReadyForQuery before all else": ((READY, Hear, ANSWER), None),
    "a query's answer before the log-in": ((ANSWER,), None),
    "an error without SQLSTATE": ((hostile.error(S="FATAL", M="no code"),), RELAYED),
    "an error without fields": ((message("E", b"\0"),), RELAYED),
    "an error of nothing": ((message("E"),), RELAYED),
    "an error without end": ((message("E", b"SFATAL\0Mno end"),), RELAYED),
    "an error of 2 MB": ((hostile.error(S="FATAL", C="28000", M="m" * 2**21),), RELAYED),
    "many notices": ((message("N", b"SNOTICE\0Mm\0\0") * FLOOD, WELCOME, Hear, ANSWER), RELAYED),
    "many statuses": ((AUTH_OK, STATUS * FLOOD, KEY, READY, Hear, ANSWER), RELAYED),
    "a status without value": ((AUTH_OK, message("S", b"client_encoding"), KEY, READY, Hear, ANSWER), None),
    "a status of 1 MB": ((AUTH_OK, message("S", b"client_encoding\0" + b"x" * 2**20 + b"\0"), KEY, READY, Hear, ANSWER), None),
    # the answer
    "ReadyForQuery twice": ((WELCOME, Hear, ANSWER, READY), VIOLATION),
    "an answer twice": ((WELCOME, Hear, ANSWER, ANSWER), VIOLATION),
    "a transaction status of no meaning": ((WELCOME, Hear, COLUMNS, ROW, message("C", b"SELECT 1\0"), message("Z", b"?")), None),
    "ReadyForQuery of 2 bytes": ((WELCOME, Hear, message("Z", b"II")), VIOLATION),
    "an unknown type": ((WELCOME, Hear, message("y", b"?")), RELAYED),
    "a client's type": ((WELCOME, Hear, message("Q", b"SELECT 1\0")), RELAYED),
    "ParseComplete to a Query": ((WELCOME, Hear, message("1"), ANSWER), VIOLATION),
    "BindComplete to a Query": ((WELCOME, Hear, message("2"), ANSWER), VIOLATION),
    "length 3": ((WELCOME, Hear, b"D" + struct.pack("!i", 3), bytes(50)), VIOLATION),
    "a length of 2 GB": ((WELCOME, Hear, COLUMNS, b"D" + struct.pack("!i", 0x7fffffff), bytes(50)), VIOLATION),
    "a row of 1 GB that does not come": ((WELCOME, Hear, COLUMNS, b"D" + struct.pack("!i", 0x3fffffff), bytes(50)), RELAYED),
    "an error in the midst of a row": ((WELCOME, Hear, COLUMNS, ROW[:-1] + hostile.error(S="ERROR", M="now")), RELAYED),
    "CommandComplete without end": ((WELCOME, Hear, COLUMNS, message("C", b"SELECT 1"), READY), None),
    "statuses between rows": ((WELCOME, Hear, COLUMNS, (ROW + STATUS) * FLOOD, message("C", b"SELECT 1\0"), READY), RELAYED),
    "COPY that nobody asked for": ((WELCOME, Hear, message("W", b"\0\0\0"), message("d", b"x") * 1000), None),
    "goodbye in the midst of a row": ((WELCOME, Hear, COLUMNS, ROW[:-1]), RELAYED),
    "reset in the midst of a row": ((WELCOME, Hear, COLUMNS, ROW[:-1], Reset), None),
    "reset at once": ((Reset,), None),
}


# What a server answers to SSLRequest where the proxy insists on TLS. None of it may be believed.
TLS_ANSWERS = {
    "N": b"N",
    "N, and a log-in": b"N" + WELCOME,
    "bytes behind S": b"S" + WELCOME,
    "an error": hostile.error(S="FATAL", C="0A000", M="from a stranger"),
    "a letter of no meaning": b"x",
    "nothing": b"",
    "S, and no handshake": b"S",
}


class Neighbour:
    """Walks a table page by page, over and over, until it is told to stop; any wrong page is kept as its fault."""

    def __init__(self, proxy):
        self.proxy, self.walks, self.fault, self.is_over = proxy, 0, None, False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            with self.proxy.wire() as conn:
                while not self.is_over:
                    seen, cursor = [], ""
                    while cursor or not seen:
                        answer = conn.ask(query(PAGE.format(cursor)))
                        seen += [int(m.row()[0]) for m in answer if m.kind == "D"]
                        cursor = wire.statuses(answer)["pgseek.next_cursor"]
                    assert seen == list(range(1, ROWS + 1)), seen
                    self.walks += 1
        except Exception as fault:
            self.fault = fault

    def goes_on(self):
        """It has walked all pages once more since now."""
        walks = self.walks
        clusters.wait_until(lambda: self.fault or self.walks > walks + 1, "the neighbour stands still")
        assert not self.fault, f"the neighbour: {self.fault!r}"

    def stop(self):
        self.is_over = True
        self.thread.join(30)
        assert not self.fault, f"the neighbour: {self.fault!r}"


@pytest.fixture(scope="module")
def servers():
    made = {name: hostile.Server(*steps) for name, (steps, _) in SERVERS.items()}
    made.update({f"tls {name}": hostile.Server(said) for name, said in TLS_ANSWERS.items()})
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(scope="module")
def meddler(server):
    meddler = hostile.Meddler(server)
    yield meddler
    meddler.close()


@pytest.fixture(scope="module")
def certificate(run_dir):
    """A self-signed one, for the client's leg."""
    key, cert = run_dir / "hostile.key", run_dir / "hostile.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    key.chmod(0o600)
    return key, cert


@pytest.fixture(scope="module")
def field(server, servers, meddler, certificate, run_dir):
    """A proxy with one database for each hostile server, and a neighbour on the real one."""
    server.psql("-c", f"DROP TABLE IF EXISTS hostile_feed; CREATE TABLE hostile_feed AS SELECT i AS id FROM generate_series(1, {ROWS}) i;"
                      " ALTER TABLE hostile_feed ADD PRIMARY KEY (id)")
    lines = {name_of(name): f"host=127.0.0.1 port={made.port} sslmode={'require' if name.startswith('tls ') else 'disable'}"
             for name, made in servers.items()}
    lines["meddled"] = f"host=127.0.0.1 port={meddler.port} dbname=e2e"
    lines["*"] = f"host={server.host} port={server.port}"
    proxy = clusters.Proxy(run_dir / "field", server)
    key, cert = certificate
    proxy.start(lines, client_login_timeout=LOGIN_SECONDS, client_tls_sslmode="allow", client_tls_key_file=key, client_tls_cert_file=cert)
    proxy.neighbour = Neighbour(proxy)
    proxy.neighbour.goes_on()
    proxy.files = proxy.settled_files()
    yield proxy
    proxy.neighbour.stop()
    proxy.stop()


def name_of(case):
    return re.sub(r"\W+", "_", case)


@pytest.fixture
def calm(field):
    """After the test: the neighbour has walked on and no file is left open."""
    yield field
    field.neighbour.goes_on()
    clusters.wait_until(lambda: field.open_files() <= field.files, "open files are left behind")


def closing(proxy, database, before):
    """Why sessions of this database have ended since the log had so many characters."""
    return re.findall(rf"C-\d+: {database}/\S+ closing because: (.*)", proxy.log()[before:])


def spoken(steps):
    return b"".join(step.data if isinstance(step, Slowly) else step for step in steps if isinstance(step, (bytes, Slowly)))


@pytest.mark.parametrize("name", SERVERS)
def test_hostile_server(calm, name):
    steps, end = SERVERS[name]
    before = len(calm.log())
    with calm.wire(start=False) as conn:
        conn.send(wire.startup(user="postgres", database=name_of(name)))
        if any(step is Hear for step in steps):
            conn.send(query("SELECT 1"))
        said = test_faults.ends(conn)
    expected = spoken(steps)
    if end == RELAYED:
        assert said.startswith(expected) and b"08P01" not in said[len(expected):]
    if end == VIOLATION:
        assert b"C08P01\0" in said and b"protocol violation by the server" in said
    if end == TIMEOUT:
        assert b"client_login_timeout" in said
    reasons = clusters.wait_until(lambda: closing(calm, name_of(name), before), "the log does not name a cause")
    assert len(reasons) == 1, reasons
    if end == VIOLATION:
        assert reasons[0].startswith("protocol violation by the server")


@pytest.mark.parametrize("name", TLS_ANSWERS)
def test_answers_to_a_request_for_tls(calm, name):
    database, before = name_of(f"tls {name}"), len(calm.log())
    with calm.wire(start=False) as conn:
        conn.send(wire.startup(user="postgres", database=database))
        said = test_faults.ends(conn)
    assert b"SFATAL\0" in said and b"stranger" not in said and b"server_version" not in said
    reasons = clusters.wait_until(lambda: closing(calm, database, before), "the log does not name a cause")
    assert len(reasons) == 1, reasons


def test_nothing_leaks(calm):
    """Every hostile server once more, several times: memory settles."""
    def round_of_all():
        for name in SERVERS:
            if SERVERS[name][1] != TIMEOUT:
                with calm.wire(start=False) as conn:
                    conn.send(wire.startup(user="postgres", database=name_of(name)), query("SELECT 1"))
                    test_faults.ends(conn)

    for _ in range(3):
        round_of_all()
    before = calm.memory_kib("VmRSS")
    for _ in range(4):
        round_of_all()
    if not calm.is_sanitized():
        assert calm.memory_kib("VmRSS") - before < 8 * 1024


# ---- a server whose words are spoilt ---------------------------------------------------------------------------------

# The messages of a server, as a client meets them who walks with a named statement and in simple queries. Some are
# answers to the proxy's own questions.
KINDS = "1 2 3 t T n D C Z S".split()


def walk(conn):
    """Two pages in each protocol: what was received, as (kind, body)."""
    received, cursor = [], ""
    conn.send(wire.parse("SELECT id FROM hostile_feed ORDER BY id LIMIT $1 /* pgseek cursor=$2 */", "s"), wire.describe("S", "s"), wire.sync())
    received += conn.ready()
    for _ in range(2):
        answer = conn.ask(wire.bind(["7", cursor], "s"), wire.describe(), wire.execute(), wire.close(), wire.sync())
        received += answer
        cursor = wire.statuses(answer).get("pgseek.next_cursor", "")
        answer = conn.ask(query(PAGE.format(cursor)))
        received += answer
    return received


@pytest.mark.parametrize("spoil", hostile.SPOILS)
@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_words(calm, meddler, kind, spoil):
    """A column of ours never reaches the client, and whatever else happens is the end of that session or of nothing."""
    for nth in (1, 3, 9):
        meddler.set(kind, nth, hostile.SPOILS[spoil])
        with calm.wire(start=False) as conn:
            conn.sock.settimeout(0.5)
            received = []
            try:
                conn.start(user="postgres", database="meddled")
                received = walk(conn)
            except (EOFError, OSError, wire.ServerError, ValueError, KeyError, struct.error):
                pass
            assert not any(b"pgseek_k" in m.body for m in received if m.kind == "T")
        meddler.end()


# ---- clients ---------------------------------------------------------------------------------------------------------


def tls(conn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    conn.send(wire.SSL_REQUEST)
    assert conn.read_bytes(1) == b"S"
    conn.sock = context.wrap_socket(conn.sock)
    return conn


CHANNELS = {"clear": lambda conn: conn, "tls": tls}


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", test_faults.STARTUPS)
def test_bad_startup_packets(calm, name, channel):
    with calm.wire(start=False) as conn:
        CHANNELS[channel](conn).send(test_faults.STARTUPS[name])
        said = test_faults.ends(conn)
    # Nothing, a FATAL, the answer to a first SSLRequest, or an alert of TLS.
    assert said in (b"", b"S") or b"SFATAL\0" in said or said.startswith(b"\x15\x03")


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", test_faults.VIOLATIONS)
def test_violations(calm, name, channel):
    before = len(calm.log())
    with calm.wire(start=False) as conn:
        CHANNELS[channel](conn).start(user="postgres", database="e2e")
        conn.send(test_faults.VIOLATIONS[name], bytes(100))
        said = test_faults.ends(conn)
    assert b"SFATAL\0" in said and b"C08P01\0" in said
    reasons = closing(calm, "e2e", before)
    assert len(reasons) == 1 and reasons[0].startswith("protocol violation by the client"), reasons


CLIENT_HELLO = bytes.fromhex("1603010200010001fc0303")

# Where a client can stop: what it has said by then, in clear text or behind a handshake.
STALLS = {
    "at once": lambda conn: None,
    "in the startup packet": lambda conn: conn.send(test_faults.LOGIN[:20]),
    "behind SSLRequest": lambda conn: conn.send(wire.SSL_REQUEST),
    "behind GSSENCRequest": lambda conn: conn.send(wire.GSS_REQUEST),
    "in a ClientHello": lambda conn: (conn.send(wire.SSL_REQUEST), conn.read_bytes(1), conn.send(CLIENT_HELLO)),
    "in a direct ClientHello": lambda conn: conn.send(CLIENT_HELLO),
    "behind the handshake": tls,
    "in the startup packet under TLS": lambda conn: tls(conn).send(test_faults.LOGIN[:20]),
    "at the password": lambda conn: conn.send(wire.startup(user="scram_user", database="e2e")),
    "at the password under TLS": lambda conn: tls(conn).send(wire.startup(user="scram_user", database="e2e")),
}


@pytest.mark.parametrize("name", STALLS)
def test_a_client_that_stops_before_the_log_in_is_over(calm, name):
    """client_login_timeout holds at every stage, and says so once."""
    before = len(calm.log())
    with calm.wire(start=False) as conn:
        STALLS[name](conn)
        test_faults.ends(conn)
    found = re.findall(r"closing because: .*client_login_timeout", calm.log()[before:])
    assert len(found) == 1, calm.log()[before:]


STRANGERS = {
    "a log-in behind SSLRequest": lambda conn: conn.send(wire.SSL_REQUEST + test_faults.LOGIN),
    "a handshake behind SSLRequest": lambda conn: conn.send(wire.SSL_REQUEST + CLIENT_HELLO),
    "a log-in behind GSSENCRequest": lambda conn: conn.send(wire.GSS_REQUEST + test_faults.LOGIN),
    "SSLRequest twice at once": lambda conn: conn.send(wire.SSL_REQUEST * 2),
    "SSLRequest twice": lambda conn: (conn.send(wire.GSS_REQUEST), conn.read_bytes(1), conn.send(wire.GSS_REQUEST)),
    "clear text behind the S": lambda conn: (conn.send(wire.SSL_REQUEST), conn.read_bytes(1), conn.send(test_faults.LOGIN)),
    "SSLRequest under TLS": lambda conn: tls(conn).send(wire.SSL_REQUEST),
    "a log-in in the middle of TLS": lambda conn: raw(tls(conn), test_faults.LOGIN),
    "garbage in the middle of TLS": lambda conn: raw(tls(conn), bytes(100)),
    "TLS without the name of the protocol": lambda conn: direct(conn, None),
    "TLS for another protocol": lambda conn: direct(conn, ["http/1.1"]),
}


def raw(conn, data):
    """Says it on the same connection without its encryption."""
    conn.sock = socket.socket(fileno=conn.sock.detach())
    conn.sock.sendall(data)


def direct(conn, protocols):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    conn.sock = context.wrap_socket(conn.sock)
    conn.send(test_faults.LOGIN)


@pytest.mark.parametrize("name", STRANGERS)
def test_bytes_in_front_of_the_handshake(calm, name):
    """Nobody is logged in by bytes that came before the encryption they claim, and one line says why it ended."""
    before = len(calm.log())
    with calm.wire(start=False) as conn:
        try:
            STRANGERS[name](conn)
            said = test_faults.ends(conn)
        except OSError:  # the handshake was refused
            said = b""
    assert AUTH_OK not in said
    found = clusters.wait_until(lambda: re.findall(r"closing because: (.*)", calm.log()[before:]), "the log does not name a cause")
    assert len(found) == 1, found
