"""The matrix in short with PostgreSQL 16, 17 and 18 on both ends, and what only they can do: direct TLS, protocol 3.2,
require_auth."""
import re
import signal
import subprocess

import pytest

import clients
import cluster
import matrix
import secure
import versions
import wire
from test_matrix import attempt_of


class World:
    """One version's server, proxies in front of it, and psql on its libpq."""

    def __init__(self, version, run_dir, certificates):
        folder = run_dir / f"version{version}"
        folder.mkdir()
        folder.chmod(0o755)
        self.version, self.certificates = version, certificates
        self.server = secure.SecureCluster(folder / "server", certificates, versions.programs(version, run_dir))
        self.psql = versions.psql(version)

    def start(self, folder):
        self.server.start()
        self.proxies = secure.Proxies(folder, self.server)
        return self

    def stop(self):
        self.proxies.stop()
        self.server.stop()

    def attempt(self, kind, database=secure.FULL, leg=clients.TLS, user="by_scram", **more):
        return secure.attempt_at(self.proxies[kind], user, database, leg, ca=self.certificates.ca, **more)


@pytest.fixture(scope="module", params=versions.VERSIONS)
def world(request, run_dir, certificates):
    if not versions.native(request.param):
        pytest.skip(f"PostgreSQL {request.param} is not installed (npm ci in tests/e2e/servers)")
    world = World(request.param, run_dir, certificates)
    try:
        yield world.start(run_dir / f"version{request.param}")
    finally:
        world.stop()


@pytest.mark.parametrize("kind, user", [("relay", "by_scram"), ("relay", "by_md5"), ("shared", "by_scram"), ("file", "by_scram"), ("query", "by_scram"), ("hba", "alice")])
def test_logins(world, kind, user):
    """Every leg on both sides, every value of channel_binding: as the table says."""
    wrong = []
    legs = secure.database_lines(world.server)
    for leg in world.psql.legs:
        for server_leg in legs:
            for binding in clients.ALL_BINDINGS:
                combination = matrix.Combination(kind, user, "psql", binding, leg, server_leg, True)
                outcome = world.psql.login(attempt_of(combination, world.proxies[kind], world.certificates, server_leg))
                if not matrix.is_as_expected(outcome, combination, world.proxies.expected):
                    wrong.append(f"{combination}: expected {matrix.expect(combination)}, got {outcome}")
    assert not wrong, "\n".join(wrong) + world.proxies[kind].log()[-3000:]


@pytest.mark.parametrize("client", ["asyncpg", "node-postgres", "postgres.js"])
def test_both_legs_direct(world, client):
    driver = clients.CLIENTS[client]
    if driver.missing() or world.version not in versions.WITH_DIRECT:
        pytest.skip(driver.missing() or "direct TLS came with PostgreSQL 17")
    for kind in ("relay", "file"):
        assert driver.login(world.attempt(kind, secure.DIRECT, clients.DIRECT)).ids == world.proxies.expected


def test_direct_needs_a_server_that_knows_it(secure_server, proxies, make_proxy, certificates):
    """PostgreSQL 15 takes a ClientHello for a packet and closes: an error that names the way out, and no session."""
    if secure_server.version() >= 17:
        pytest.skip("this server knows it")
    line = f"host=localhost port={secure_server.port} dbname=e2e sslmode=require sslnegotiation=direct"
    proxy = make_proxy({"*": line})
    outcome = clients.psycopg_login(secure.attempt_at(proxy, "by_trust", "e2e"))
    assert "FATAL" in outcome.text, outcome


@pytest.mark.parametrize("require_auth, user, kind, is_right", [
    ("scram-sha-256", "by_scram", "relay", True), ("scram-sha-256", "by_scram", "file", True), ("scram-sha-256", "by_trust", "relay", False),
    ("scram-sha-256", "by_trust", "file", True), ("none", "by_trust", "relay", True), ("!scram-sha-256", "by_scram", "relay", False),
    ("md5", "by_md5", "relay", True), ("!password,!md5", "by_password", "relay", False)])
def test_require_auth(world, require_auth, user, kind, is_right):
    """libpq sees the method that is really used, and nothing in its way."""
    outcome = world.psql.login(world.attempt(kind, secure.REQUIRE, user=user), require_auth=require_auth)
    assert (outcome.ids == world.proxies.expected) == is_right, outcome
    assert is_right or "FATAL" not in outcome.text


@pytest.mark.parametrize("kind", ["relay", "file"])
@pytest.mark.parametrize("asked", [{"min_protocol_version": "3.2"}, {"max_protocol_version": "3.2"}, {"max_protocol_version": "latest"}, {"max_protocol_version": "3.0"}],
                         ids=lambda options: "-".join(map("".join, options.items())))
def test_protocol_versions(world, secure_server, kind, asked):
    """libpq 18 gets the version that it would get from the server itself, also where the proxy speaks first."""
    if world.version < 18:
        pytest.skip("libpq 18 is the first to ask")
    straight = secure.attempt_at(world.server, "by_scram", "e2e", clients.TLS, ca=world.certificates.ca, is_paged=False)
    assert world.psql.login(straight, **asked).ids == world.proxies.expected[:clients.SIZE]
    outcome = world.psql.login(world.attempt(kind), **asked)
    assert outcome.ids == world.proxies.expected, f"{outcome}\n{world.proxies[kind].log()[-2000:]}"


@pytest.mark.parametrize("kind", ["relay", "file"])
@pytest.mark.parametrize("leg", [clients.PLAIN, clients.TLS, clients.DIRECT])
def test_cancel(world, kind, leg):
    """A key of any length, from a client in clear text or inside TLS, to a server behind TLS."""
    if leg not in world.psql.legs:
        pytest.skip("this libpq cannot begin with TLS")
    longest = {"min_protocol_version": "3.2"} if world.version >= 18 else {}
    attempt = world.attempt(kind, leg=leg)
    run = subprocess.Popen([*clients.psql_command(attempt, **longest), "-c", "SELECT 'begun'", "-c", "SELECT pg_sleep(100)"], env=clients.psql_env(versions.native(world.version) / "lib"),
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1)
    with world.server.connect() as conn:
        cluster.wait_until(lambda: conn.execute("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)' AND state = 'active'").fetchone(), "psql does not sleep")
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    assert "canceling statement due to user request" in said


def test_grease(world):
    """A client of tomorrow asks for 3.9999 and an option that nobody knows: it is told so before it authenticates, as by
    the server itself."""
    answers = []
    for there, database in ((world.server, "e2e"), (world.proxies["relay"], "plain")):
        with there.wire(start=False) as conn:
            conn.send(wire.startup((3 << 16) | 9999, user="by_scram", database=database, **{"_pq_.test_protocol_negotiation": "x"}))
            answers.append(conn.until("R", "E"))
    assert answers[0] == answers[1] and wire.kinds(answers[0]) == "v R"


def test_keys_instead_of_a_password(world):
    """libpq 18 can log in with SCRAM keys alone, which is what the proxy does towards a server: the exchanges agree."""
    if world.version < 18:
        pytest.skip("libpq 18 is the first that can")
    client_key, server_key = secure.scram_keys(secure.password_of("by_scram"), *salt_and_count(world.server))
    for kind in ("relay", "file"):
        attempt = world.attempt(kind, secure.PLAIN if kind == "relay" else secure.FULL, password="not it")
        assert world.psql.login(attempt, scram_client_key=client_key, scram_server_key=server_key, require_auth="scram-sha-256").ids == world.proxies.expected


def salt_and_count(server):
    count, salt = re.match(r"SCRAM-SHA-256\$(\d+):([^$]+)\$", server.secrets()["by_scram"]).groups()
    return secure.base64.b64decode(salt), int(count)
