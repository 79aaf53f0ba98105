"""Every limit that a client can reach: one clear error, one line in the log, and all is as before when it leaves."""
import pathlib
import re
import socket
import ssl
import struct
import subprocess

import pytest

import cluster as clusters
import wire
from wire import query


def lines(proxy, text):
    return [line for line in proxy.log().splitlines() if text in line]


def wait_lines(proxy, text, count=1):
    clusters.wait_until(lambda: len(lines(proxy, text)) >= count, f"the log does not say: {text}")
    found = lines(proxy, text)
    assert len(found) == count, found


def refused(proxy, **options):
    """The fields of the FATAL that a login ends with."""
    with pytest.raises(wire.ServerError) as caught:
        proxy.wire(**options).close()
    assert caught.value.fields["S"] == "FATAL"
    return caught.value.fields


# ---- clients by name --------------------------------------------------------------------------------------------------

# A limit of one, who is there already, and who wants in.
ADMISSION = [
    ("max_db_client_connections", {"database": "e2e"}, {"database": "e2e"}, False),
    ("max_db_client_connections", {"database": "e2e"}, {"database": "postgres"}, True),  # both served by the line for *
    ("max_db_client_connections", {"database": "e2e"}, {"database": "alias"}, True),  # the same database, another name
    ("max_db_client_connections", {"database": "alias"}, {"database": "alias"}, False),
    ("max_db_client_connections", {"database": "e2e", "user": "app"}, {"database": "e2e"}, False),
    ("max_user_client_connections", {"user": "app"}, {"user": "app"}, False),
    ("max_user_client_connections", {"user": "app"}, {"user": "postgres"}, True),
    ("max_user_client_connections", {"user": "app", "database": "postgres"}, {"user": "app"}, False),
]


@pytest.fixture(scope="module")
def narrow(server, run_dir):
    """A proxy that takes one client of each database and of each user; `alias` leads to the database e2e."""
    made = {}

    def make(limit):
        if limit not in made:
            proxy = clusters.Proxy(run_dir / limit, server)
            made[limit] = proxy.start({"alias": f"host={server.host} port={server.port} dbname=e2e",
                                       "*": f"host={server.host} port={server.port}"}, **{limit: 1})
        return made[limit]

    yield make
    for proxy in made.values():
        proxy.stop()


@pytest.mark.parametrize("limit, there, wants_in, admitted", ADMISSION)
def test_clients_are_counted_by_name(narrow, limit, there, wants_in, admitted):
    proxy = narrow(limit)
    reason = f"({limit})"
    before = len(lines(proxy, reason))
    with clusters.wait_until(lambda: _wire(proxy, **there), "the place is not given back") as conn:
        if admitted:
            proxy.wire(**wants_in).close()
            return
        fields = refused(proxy, **wants_in)
        assert fields["C"] == "53300" and limit in fields["M"]
        wait_lines(proxy, reason, before + 1)
        # A cancel request is no client of a database.
        with proxy.wire(start=False) as canceller:
            canceller.send(wire.cancel_request(conn.pid, conn.secret))
            assert canceller.is_closed()
        assert conn.rows(query("SELECT 1")) == [[b"1"]]


def _wire(proxy, **options):
    try:
        return proxy.wire(**options)
    except wire.ServerError as error:
        assert error.sqlstate == "53300"
        return None


# How a session can end. Whichever way, its place is another's.
ENDS = {
    "terminate": lambda conn, server: conn.send(wire.terminate()),
    "close": lambda conn, server: conn.close(),
    "reset": lambda conn, server: conn.reset(),
    "violation": lambda conn, server: conn.send(b"y\0\0\0\4"),
    "terminated": lambda conn, server: server.psql("-c", f"SELECT pg_terminate_backend({conn.pid})"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_place_is_given_back(narrow, server, how):
    proxy = narrow("max_user_client_connections")
    for _ in range(3):
        conn = clusters.wait_until(lambda: _wire(proxy, user="app"), "the place is not given back")
        ENDS[how](conn, server)
        clusters.wait_until(lambda: _wire(proxy, user="app"), "the place is not given back").close()
        conn.close()


@pytest.mark.parametrize("options, sqlstate", [({"database": "nowhere"}, "3D000"), ({"user": "nobody"}, "28000")])
def test_a_failed_login_gives_its_place_back(narrow, options, sqlstate):
    proxy = narrow("max_user_client_connections")
    for _ in range(3):
        clusters.wait_until(lambda: _sqlstate(proxy, **options) == sqlstate, "the place is not given back")


def _sqlstate(proxy, **options):
    return refused(proxy, **{"user": "app", **options})["C"]


def test_reload_changes_the_limits_at_once(make_proxy):
    """Sessions that are there stay; the next one meets the new limit, also where it is below what is there."""
    proxy = make_proxy()
    with proxy.wire(user="app") as first, proxy.wire(user="app") as second:
        for limit, admitted in ((1, False), (3, True), (2, False), (0, True)):
            proxy.settings["max_user_client_connections"] = limit
            proxy.write_conf()
            before = len(lines(proxy, "reloaded"))
            proxy.reload()
            wait_lines(proxy, "reloaded", before + 1)
            # Each worker takes the new settings at its own next turn.
            clusters.wait_until(lambda: (_leave(_wire(proxy, user="app")) is not None) == admitted, f"limit {limit}")
        for conn in (first, second):
            assert conn.rows(query("SELECT 1")) == [[b"1"]]


def _leave(conn):
    if conn:
        conn.close()
    return conn


# ---- the log ----------------------------------------------------------------------------------------------------------

# What a stranger can make the proxy write, and what is said of the lines that were left out.
FLOODS = {
    "an unknown database": (wire.startup(user="x", database="nowhere"), "no such database", "ended before"),
    "garbage": (b"\0\0\0\x07....", "invalid length", "ended before"),
    "cancel": (wire.cancel_request(1, b"1234"), "closing because: cancel", "cancel requests"),
    "login attempts": (wire.startup(user="nobody", database="e2e"), "login attempt: ", "login attempts"),
}
BURST = 200


@pytest.mark.parametrize("name", FLOODS)
def test_a_stranger_cannot_fill_the_log(make_proxy, name):
    packet, line, summary = FLOODS[name]
    proxy = make_proxy(databases={"e2e": f"host=127.0.0.1 port={clusters.free_port()}"})
    for _ in range(2 * BURST):
        with proxy.wire(start=False) as conn:
            conn.send(packet)
            assert conn.is_closed()

    def left_out():
        """All lines but those that were written were counted."""
        return sum(int(found.split("WARNING ")[1].split()[0]) for found in lines(proxy, "were not logged") if summary in found)

    clusters.wait_until(lambda: left_out() + len(lines(proxy, line)) == 2 * BURST, "some lines were not even counted")
    assert left_out() > 0


def test_logins_are_all_logged(make_proxy):
    proxy = make_proxy()
    for _ in range(2 * BURST):
        proxy.wire().close()
    clusters.wait_until(lambda: len(lines(proxy, "login attempt: ")) == 2 * BURST, "not all are in the log")
    assert not lines(proxy, "were not logged")


# ---- plans ------------------------------------------------------------------------------------------------------------


def test_plans_of_large_statements_take_bounded_memory(make_proxy, server):
    """120 statements whose plans would take about 120 MB."""
    server.psql("-c", "DROP TABLE IF EXISTS limited; CREATE TABLE limited AS SELECT i AS id FROM generate_series(1, 30) i; ALTER TABLE limited ADD PRIMARY KEY (id)")
    proxy = make_proxy(plan_cache_memory="1MB", workers=1)
    with proxy.wire() as conn:
        def page(number):
            numbers = ", ".join(str(i % 1000) for i in range(3500))
            return conn.rows(query(f"SELECT id FROM limited WHERE id IN ({numbers}) AND id <> -{number} ORDER BY id LIMIT 2 /* pgseek */"))

        for number in range(20):
            assert page(number) == [[b"1"], [b"2"]]
        before = proxy.memory_kib("VmRSS")
        for number in range(20, 140):
            page(number)
        if not proxy.is_sanitized():
            assert proxy.memory_kib("VmRSS") - before < 32 * 1024


# ---- memory before the log-in -----------------------------------------------------------------------------------------

CONNECTIONS = 500
LARGE = query("SELECT '" + "x" * 900_000 + "'")


def pour(sock, data, most=4 * 2**20):
    """Sends it over and over, until the other side takes no more."""
    sock.setblocking(False)
    try:
        for _ in range(most // len(data) + 1 if data else 0):
            at = 0
            while at < len(data):
                at += sock.send(data[at:])
    except (OSError, ssl.SSLError):
        pass


def start_tls(conn):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    conn.send(wire.SSL_REQUEST)
    assert conn.read_bytes(1) == b"S"
    conn.sock = context.wrap_socket(conn.sock)


# The beginning of the largest ClientHello that OpenSSL takes.
HELLO = b"\x16\x03\x01\x00\x0e\x01" + (131_000).to_bytes(3, "big") + b"\x03\x03" + bytes(8)
PACKET = struct.pack("!ii", 10000, wire.PROTOCOL_3_0) + b"user\0" + b"u" * 9980
TAGGED = wire.parse("SELECT id FROM t WHERE a = $1 ORDER BY id LIMIT 1 /* pgseek */", "s")
LARGE_BIND = wire.bind(["x" * 900_000], "s")
AHEAD = wire.startup(user="scram_user", database="e2e")

# What a client pours in before it has logged in, and what each may cost in KiB.
POURED = {
    "a startup packet that is not whole": ("clear", b"", PACKET, 16),
    "queries to a silent server": ("clear", wire.startup(user="u", database="silent"), LARGE, 80),
    "queries instead of a password": ("clear", AHEAD, LARGE, 80),
    "pages instead of a password": ("clear", AHEAD + TAGGED, LARGE_BIND, 80),
    "a password without end": ("clear", AHEAD, wire.message("p", b"x" * 900_000), 80),
    "half a ClientHello": ("clear", HELLO, b"", 160),
    "half a ClientHello, and nothing of use behind it": ("clear", HELLO, b"\x16\x03\x03\x40\x00" + bytes(16384), 40),
    "a startup packet under TLS": ("tls", b"", PACKET, 100),
    "queries instead of a password, under TLS": ("tls", AHEAD, LARGE, 190),
}


@pytest.mark.parametrize("name", POURED)
def test_memory_before_the_login(make_proxy, server, tls_files, name):
    channel, first, poured, most = POURED[name]
    silent = socket.create_server(("127.0.0.1", 0), backlog=2000)
    proxy = make_proxy({"silent": f"host=127.0.0.1 port={silent.getsockname()[1]} sslmode=disable",
                        "*": f"host={server.host} port={server.port}"}, max_client_conn=2000, workers=1, **tls_files)
    conns = []

    def open_many(count):
        for _ in range(count):
            conn = proxy.wire(start=False)
            if channel == "tls":
                start_tls(conn)
            if first:
                conn.send(first)
            pour(conn.sock, poured)
            conns.append(conn)

    many = 200 if "server" not in name and first else CONNECTIONS  # of the real server's connections there are 300
    open_many(20)
    before = settled_memory(proxy)
    open_many(many)
    cost = (settled_memory(proxy) - before) / many
    print(f"{name}: {cost:.0f} KiB each")
    for conn in conns:
        conn.close()
    silent.close()
    if not proxy.is_sanitized():
        assert cost < most


def settled_memory(proxy):
    """Resident memory once it stands still."""
    seen = []

    def stands_still():
        seen.append(proxy.memory_kib("VmRSS"))
        return len(seen) > 10 and len(set(seen[-10:])) == 1

    clusters.wait_until(stands_still, "memory never stands still")
    return seen[-1]


@pytest.fixture(scope="module")
def tls_files(run_dir):
    key, cert = run_dir / "limits.key", run_dir / "limits.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    key.chmod(0o600)
    return {"client_tls_sslmode": "allow", "client_tls_key_file": key, "client_tls_cert_file": cert}


# ---- the table in docs/SECURITY.md ------------------------------------------------------------------------------------

ROOT = pathlib.Path(__file__).parents[2]
UNITS = {"": 1, "s": 1, "kB": 1024, "MB": 1024 * 1024}


def documented():
    """Where each limit is set, and its value."""
    section = (ROOT / "docs/SECURITY.md").read_text().split("## Limits")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")]
    return {row[-1].strip("`"): row[1] for row in rows[1:]}


def number(text):
    value, unit = re.fullmatch(r"(0x[0-9a-f]+|\d+) ?(\w*)", text).groups() if not text.startswith("0x") else (text, "")
    return int(value, 0) * UNITS[unit]


def defined(path, name):
    """The value of a macro, worked out."""
    text = re.search(rf"#define {name}\s+(.*?)\s*(/\*.*)?$", (ROOT / path).read_text(), re.M).group(1)
    return eval(re.sub(r"\(size_t\)|(?<=[0-9a-f])u\b", "", text), {})  # noqa: S307: our own source


def test_the_documented_limits_are_the_codes():
    defaults = dict(re.findall(r"^;?(\w+) = (\S+)", subprocess.run([clusters.pgseek_bin(), "--print-config"], capture_output=True, text=True,
                                                                   check=True).stdout, re.M))
    limits = documented()
    assert len(limits) > 20
    for where, value in limits.items():
        code = number(defaults[where]) if " " not in where else defined(*where.split())
        assert number(value) == code, where


# ---- limits that a client meets on its way ----------------------------------------------------------------------------

# What is sent (behind the log-in unless it is a startup packet), what the client hears, if anything, and what the log says.
REACHED = {
    "a startup packet": (struct.pack("!ii", 10001, wire.PROTOCOL_3_0), False, None, "invalid length of startup packet"),
    "a message": (b"Q" + struct.pack("!i", 0x40000000), True, "08P01", "invalid message length"),
    "a name": (wire.describe("S", "n" * 70000), True, "08P01", "a name is too long"),
    "a tagged statement": (query("SELECT /* pgseek */ '" + "x" * 2**20 + "'"), True, "54000", "longer than max_tagged_size"),
    "a tag behind a long text": (query("SELECT '" + "x" * 2**20 + "' /* pgseek */"), True, "54000", "longer than max_tagged_size"),
    "the Bind of a tagged statement": (wire.parse("SELECT 1 ORDER BY 1 LIMIT 1 /* pgseek */", "s") + b"B"
                                       + struct.pack("!i", 65 * 2**20) + b"\0s\0" + bytes(1000), True, "54000", "longer than 64 MB"),
}


@pytest.mark.parametrize("name", REACHED)
def test_a_reached_limit_says_so_once(proxy, name):
    data, is_up, sqlstate, reason = REACHED[name]
    before = len(proxy.log())
    with proxy.wire(start=False) as conn:
        if is_up:
            conn.start(user="postgres", database="e2e")
        conn.send(data)
        errors = [m.fields() for m in _all(conn) if m.kind == "E"]
    assert [(error["S"], error["C"]) for error in errors] == ([("FATAL", sqlstate)] if sqlstate else [])
    assert all(reason in error["M"] for error in errors)
    found = [line for line in proxy.log()[before:].splitlines() if reason in line]
    assert len(found) == 1 and "closing because" in found[0], found


def _all(conn):
    messages = []
    try:
        while True:
            messages.append(conn.read())
    except (EOFError, ConnectionError):
        return messages


def test_the_parsers_limits_are_reasons(proxy):
    """Tokens, nesting and tokens of a cursor are tried in test_sizes.py and test_cursors.py: here is what the log says."""
    before = len(proxy.log())
    with proxy.wire() as conn:
        answer = conn.ask(query("SELECT id FROM t WHERE a IN (" + "1," * 8000 + "1) ORDER BY id LIMIT 1 /* pgseek cursor=AAAA */"))
        assert answer[0].fields()["C"] == "PS005"
        answer = conn.ask(query("SELECT 1 ORDER BY 1 LIMIT 1 /* pgseek cursor='" + "A" * 3000 + "' */"))
        assert answer[0].fields()["C"] in ("PS001", "PS005")
    assert len(re.findall("rejected: PS", proxy.log()[before:])) == 2


def test_a_large_error_is_no_fault(either):
    """What a function raises may be as long as a row."""
    with either.wire() as conn:
        answer = conn.ask(query("DO $$ BEGIN RAISE EXCEPTION '%', repeat('e', 3000000); END $$"))
        assert wire.kinds(answer) == "E Z" and answer[0].fields()["M"] == "e" * 3000000
        assert conn.rows(query("SELECT 1")) == [[b"1"]]
