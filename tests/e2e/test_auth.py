"""Who is let in, what a refused client is told, and what of a log-in stays behind: rules, SCRAM that ends in the proxy,
auth_query. The drivers and all combinations of TLS are test_matrix.py's.
"""
import base64
import hashlib
import hmac
import os
import re
import socket
import struct
import subprocess

import psycopg
import pytest

import cluster
import secure
import wire

PLAIN = {"sslmode": "disable"}


def tls(certificates):
    return {"host": "localhost", "sslmode": "verify-full", "sslrootcert": certificates.ca}


def log_in(proxy, user, database=secure.PLAIN, **options):
    """A psycopg connection with the user's right password, unless `password` says another."""
    return proxy.connect(**{"user": user, "dbname": database, "password": secure.password_of(user), **PLAIN, **options})


def refusal(proxy, user, database=secure.PLAIN, **options):
    """What a client is told that is not let in."""
    with pytest.raises(psycopg.OperationalError) as caught:
        log_in(proxy, user, database, **options)
    return str(caught.value)


@pytest.fixture
def start(run_dir, secure_server, certificates):
    """start(databases=None, **settings): a proxy of this test's own in front of secure_server, with a certificate."""
    started = []

    def run(databases=None, **settings):
        pair = certificates["proxy"]
        settings = {"client_tls_sslmode": "allow", "client_tls_cert_file": pair.cert, "client_tls_key_file": pair.key, **settings}
        started.append(secure.start_proxy(run_dir, secure_server, databases or secure.database_lines(secure_server), **settings))
        return started[-1]

    yield run
    for proxy in started:
        proxy.stop()


def auth_file(directory, secrets):
    return secure.private_file(directory / f"users-{os.urandom(4).hex()}.txt", secure.userlist(secrets))


# ---- SCRAM that ends here ---------------------------------------------------------------------------------------------

LOGINS = [(kind, user, server_leg, is_tls) for kind in ("file", "query") for user in ("by_scram", "by_trust")
          for server_leg in (secure.PLAIN, secure.FULL) for is_tls in (False, True)]


@pytest.mark.parametrize("kind,user,server_leg,is_tls", LOGINS)
def test_a_right_password_leads_to_the_server(proxies, certificates, kind, user, server_leg, is_tls):
    options = tls(certificates) if is_tls else PLAIN
    with log_in(proxies[kind], user, server_leg, **options) as conn:
        assert conn.execute("SELECT current_user").fetchone() == (user,)
    assert f'password authentication failed for user "{user}"' in refusal(proxies[kind], user, server_leg, password="wrong", **options)


@pytest.mark.parametrize("server_leg", [secure.PLAIN, secure.FULL])
def test_channel_binding_can_be_required(proxies, certificates, server_leg):
    with log_in(proxies["file"], "by_scram", server_leg, channel_binding="require", **tls(certificates)) as conn:
        assert conn.execute("SELECT current_user").fetchone() == ("by_scram",)


@pytest.mark.parametrize("user", ["by_md5", "by_password"])
def test_a_server_that_asks_for_something_else(proxies, user):
    """The proxy has a SCRAM secret for both; the server asks for what no key can answer."""
    told = refusal(proxies["file"], user)
    assert {"by_md5": "an MD5 password", "by_password": "a clear-text password"}[user] in told
    assert "auth_type = relay" in told


def test_a_server_with_another_secret(start, run_dir):
    """The same password with another salt: the key is another one."""
    proxy = start(auth_type="scram-sha-256", auth_file=auth_file(run_dir, {"by_scram": secure.scram_secret(secure.password_of("by_scram"))}))
    told = refusal(proxy, "by_scram")
    assert 'the server keeps another SCRAM secret for user "by_scram"' in told and "rolpassword" in told


def test_cancel_replication_and_variables_still_work(start, run_dir, secure_server):
    with secure_server.connect() as admin:
        admin.execute("DROP ROLE IF EXISTS replicator")
        admin.execute("CREATE ROLE replicator LOGIN REPLICATION PASSWORD 'rep'")
    secrets = secure_server.secrets()
    proxy = start(auth_type="scram-sha-256", auth_file=auth_file(run_dir, {user: secrets[user] for user in ("by_scram", "replicator")}))
    with log_in(proxy, "by_scram", options="-c pgseek.walk=here") as conn:
        assert conn.execute("SHOW pgseek.walk").fetchone() == ("here",)
        asleep = "SELECT 1 FROM pg_stat_activity WHERE usename = 'by_scram' AND wait_event = 'PgSleep'"
        conn.pgconn.send_query(b"SELECT pg_sleep(60)")
        with secure_server.connect() as admin:
            cluster.wait_until(lambda: admin.execute(asleep).fetchone(), "the query does not begin")
        conn.pgconn.get_cancel().cancel()
        assert "canceling statement" in conn.pgconn.get_result().error_message.decode()
        assert conn.pgconn.get_result() is None
    with log_in(proxy, "replicator", secure.PLAIN, password="rep", replication="database") as conn:
        assert len(conn.execute("IDENTIFY_SYSTEM").fetchone()) == 4


# ---- what a stranger can learn ----------------------------------------------------------------------------------------


def sasl_attempt(proxy, user, database=secure.PLAIN):
    """A raw log-in with a proof that nobody has made: the messages that the proxy answers."""
    with proxy.wire(start=False) as conn:
        conn.send(wire.startup(user=user, database=database))
        answers = [conn.read()]
        first = b"n,,n=,r=" + b"x" * 24
        conn.send(wire.message("p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first))
        answers.append(conn.read())
        nonce = re.search(rb"r=([^,]*)", answers[-1].body).group(1)
        conn.send(wire.message("p", b"c=biws,r=" + nonce + b",p=" + base64.b64encode(b"p" * 32)))
        answers.append(conn.read())
        assert conn.sock.recv(1) == b""
        return answers


def shape(answers, user):
    """What is left of the answers when what must differ is taken out: the nonce, the salt's bytes, the name."""
    texts = [answer.kind.encode() + answer.body for answer in answers]
    texts[1] = re.sub(rb"r=[^,]{48},s=[^,]{24},", b"r,s,", texts[1])
    return [text.replace(user.encode(), b"<user>") for text in texts]


@pytest.mark.parametrize("kind", ["file", "query"])
def test_nobody_looks_like_a_wrong_password(proxies, kind):
    """A user that exists, one without a secret, one whose password has expired, one with an MD5 hash, and nobody."""
    expected = shape(sasl_attempt(proxies[kind], "by_scram"), "by_scram")
    assert expected[-1].startswith(b"ESFATAL\0VFATAL\0C28P01\0M")
    for user in ("no_verifier", "expired", "by_md5", secure.NOBODY, "postgres'; --"):
        assert shape(sasl_attempt(proxies[kind], user), user) == expected, user


def test_the_same_stranger_sees_the_same_salt(proxies):
    """Else two attempts would tell that the user does not exist."""
    salts = {user: [re.search(rb"s=([^,]*)", sasl_attempt(proxies["query"], user)[1].body).group(1) for _ in range(2)] for user in ("by_scram", secure.NOBODY)}
    assert all(first == second for first, second in salts.values())


def test_the_log_tells_the_operator(proxies):
    for kind, user, why in (("file", secure.NOBODY, "the user is not in auth_file"), ("query", secure.NOBODY, "auth_query knows no such user"),
                            ("query", "expired", "it has expired"), ("query", "by_md5", "no SCRAM-SHA-256 secret"), ("file", "by_scram", "the password is wrong")):
        refusal(proxies[kind], user, password="wrong")
        cluster.wait_until(lambda: re.search(rf'failed for user "{user}": .*{why}', proxies[kind].log()), f"the log does not say why: {why}")


# ---- auth_query -------------------------------------------------------------------------------------------------------


def test_the_look_up_sees_nothing_of_the_client(start, secure_server):
    """A client, or the owner of a schema, brings a table of secrets of its own."""
    forged = secure.scram_secret("forged").replace("'", "''")
    with secure_server.connect() as admin:
        admin.execute("DROP SCHEMA IF EXISTS evil CASCADE")
        admin.execute("CREATE SCHEMA evil")
        admin.execute(f"CREATE TABLE evil.pg_authid AS SELECT 'by_scram'::text AS rolname, '{forged}'::text AS rolpassword")
        admin.execute("CREATE FUNCTION evil.equal(name, text) RETURNS bool LANGUAGE sql AS 'SELECT true'")
        admin.execute("CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.equal)")
        admin.execute("GRANT USAGE ON SCHEMA evil TO PUBLIC; GRANT SELECT ON evil.pg_authid TO PUBLIC")
        admin.execute("ALTER ROLE lookup SET search_path = evil, pg_catalog")
    try:
        proxy = start(auth_type="scram-sha-256", auth_user="lookup", auth_query="SELECT rolname, rolpassword FROM pg_authid WHERE rolname = $1")
        for options in ("-c search_path=evil,pg_catalog", "-c role=lookup", "-c session_preload_libraries=evil"):
            assert "password authentication failed" in refusal(proxy, "by_scram", password="forged", options=options)
        with log_in(proxy, "by_scram") as conn:
            assert conn.execute("SELECT current_user").fetchone() == ("by_scram",)
    finally:
        with secure_server.connect() as admin:
            admin.execute("ALTER ROLE lookup RESET search_path")
            admin.execute("DROP SCHEMA evil CASCADE")


def test_the_one_who_asks_is_not_asked_about(proxies):
    """Nobody becomes auth_user by way of auth_query, though the server would let it in without a password."""
    assert "password authentication failed" in refusal(proxies["query"], "lookup")


@pytest.mark.parametrize("query,cause", [
    ("SELECT 1 / (length($1) - length($1))", "division by zero"), ("SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1", "one column"),
    ("SELECT rolname, rolpassword FROM pg_catalog.pg_authid WHERE $1::text IS NOT NULL ORDER BY rolname = $1 DESC", "more than one row"),
    ("SELECT 'postgres'::text, rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1", "another user"),
    ("SELECT $1::text, repeat('x', 1000000)", None)])
def test_an_auth_query_that_cannot_be_used(start, query, cause):
    proxy = start(auth_type="scram-sha-256", auth_user="lookup", auth_query=query)
    told = refusal(proxy, "by_scram")
    if not cause:
        assert "password authentication failed" in told
        return
    assert "authentication is not possible at the moment" in told and cause not in told
    assert re.search(f"auth_query failed: .*{cause}", proxy.log())


def test_the_function_of_the_documents(start, secure_server):
    """docs/OPERATIONS.md shows a role with no rights but one function; it works as it stands there."""
    text = (cluster.REPOSITORY / "docs" / "OPERATIONS.md").read_text()
    settings = dict(re.findall(r"^    (auth_\w+) = (.*(?:pgseek_lookup|postgres).*)$", text, re.M))
    sql = re.search(r"^    CREATE ROLE pgseek_lookup.*?TO pgseek_lookup;$", text, re.M | re.S).group()
    assert set(settings) == {"auth_user", "auth_dbname", "auth_query"}
    hba = secure_server.data / "pg_hba.conf"
    before = hba.read_text()
    with secure_server.connect(dbname=settings["auth_dbname"]) as admin:
        admin.execute(sql)
        hba.write_text("host postgres pgseek_lookup 127.0.0.1/32 trust\n" + before)
        admin.execute("SELECT pg_reload_conf()")
        try:
            proxy = start(auth_type="scram-sha-256", **settings)
            with log_in(proxy, "by_scram") as conn:
                assert conn.execute("SELECT current_user").fetchone() == ("by_scram",)
            for user in ("expired", "no_verifier", secure.NOBODY):
                assert "password authentication failed" in refusal(proxy, user)
        finally:
            hba.write_text(before)
            admin.execute("DROP FUNCTION public.pgseek_lookup(text); DROP ROLE pgseek_lookup; SELECT pg_reload_conf()")


class Silence:
    """A server that accepts and never answers."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        self.listener.settimeout(30)
        return self.listener.accept()[0]


def test_look_ups_are_bounded(start):
    """A server that is silent keeps a few look-ups busy; those that wait are counted; clients that go are forgotten."""
    silence = Silence()
    proxy = start({"*": f"host=127.0.0.1 port={silence.port}"}, auth_type="scram-sha-256", auth_user="lookup", auth_dbname="postgres", workers=1, client_login_timeout=60)
    waiting = [proxy.wire(start=False) for _ in range(66)]
    for conn in waiting:
        conn.send(wire.startup(user="by_scram", database="d"))
    asked = [silence.accept() for _ in range(2)]
    with proxy.wire(start=False) as conn:
        conn.send(wire.startup(user="by_scram", database="d"))
        error = conn.read()
        assert error.kind == "E" and error.fields()["C"] == "08006"
    assert "too many log-ins wait" in proxy.log()
    for conn in waiting:
        conn.close()
    for sock in asked:
        sock.settimeout(30)
        while sock.recv(4096):  # the look-ups that nobody waits for are given up
            pass
    assert proxy.is_alive()
    proxy.stop()


def test_no_server_to_ask(start):
    proxy = start({"*": f"host=127.0.0.1 port={cluster.free_port()}"}, auth_type="scram-sha-256", auth_user="lookup", auth_dbname="postgres")
    assert "authentication is not possible at the moment" in refusal(proxy, "by_scram")
    assert "auth_query failed" in proxy.log() and "refused" in proxy.log()


# ---- relayed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", list(secure.METHODS))
@pytest.mark.parametrize("server_leg", [secure.PLAIN, secure.UNIX, secure.FULL])
def test_every_method_is_relayed(proxies, user, server_leg):
    with log_in(proxies["relay"], user, server_leg) as conn:
        assert conn.execute("SELECT current_user").fetchone() == (user,)
    if user != "by_trust":
        assert f'password authentication failed for user "{user}"' in refusal(proxies["relay"], user, server_leg, password="wrong")


def test_tls_on_both_sides(proxies, certificates):
    """libpq binds by default, and is told the ways out; unbound it works, and with the server's certificate bound."""
    told = refusal(proxies["relay"], "by_scram", secure.FULL, **tls(certificates))
    assert all(way in told for way in ("channel_binding=disable", "auth_type = scram-sha-256", "certificate and key"))
    for kind, binding in (("relay", "disable"), ("shared", "prefer"), ("shared", "require")):
        with log_in(proxies[kind], "by_scram", secure.FULL, channel_binding=binding, **tls(certificates)) as conn:
            assert conn.execute("SELECT current_user").fetchone() == ("by_scram",)


# ---- rules ------------------------------------------------------------------------------------------------------------


def test_rules_decide_before_anything_is_asked(start, run_dir, certificates):
    rules = secure.private_file(run_dir / "hba-of-auth.conf", """
host    plain   alice     127.0.0.1/32  reject
hostssl all     alice     all           relay
host    unix    all       127.0.0.0/8   relay
""")
    proxy = start(auth_type="hba", auth_hba_file=rules)
    told = refusal(proxy, "alice")
    assert 'auth_hba_file rejects the connection for host "127.0.0.1", user "alice", database "plain", no encryption' in told
    told = refusal(proxy, "bob", secure.FULL, **tls(certificates))
    assert re.search(r'no auth_hba_file entry for host "(127\.0\.0\.1|\[::1\])", user "bob", database "full", TLS', told)
    with log_in(proxy, "alice", secure.FULL, **tls(certificates)) as conn, log_in(proxy, "bob", secure.UNIX):
        assert conn.execute("SELECT current_user").fetchone() == ("alice",)
    assert re.search(r"rejects the connection for host .*\(line 2 of auth_hba_file\)", proxy.log())


def test_a_parameter_given_twice_passes_no_rule(start, run_dir):
    """The server takes the last, so the rules must not decide about the first."""
    rules = secure.private_file(run_dir / "hba-twice.conf", "host all bob all relay\nhost all all all reject\n")
    proxy = start(auth_type="hba", auth_hba_file=rules)
    for body in (b"user\0bob\0database\0plain\0user\0alice\0\0", b"user\0alice\0database\0plain\0user\0bob\0\0"):
        with proxy.wire(start=False) as conn:
            conn.send(wire.startup_raw(wire.PROTOCOL_3_0, body))
            error = conn.read()
            assert error.kind == "E" and error.fields()["C"] == "28000"


# ---- what stays behind ------------------------------------------------------------------------------------------------


def client_key(password, secret):
    iterations, salt = re.match(r"SCRAM-SHA-256\$(\d+):([^$]+)\$", secret).groups()
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    return hmac.digest(salted, b"Client Key", "sha256")


def memory_holds(pid, needle):
    """Whether the process has these bytes anywhere in memory that it may write."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if " rw" not in line or end - start > 1 << 32:
                continue
            memory.seek(start)
            try:
                if needle in memory.read(end - start):
                    return True
            except OSError:
                continue
    return False


def test_no_key_outlives_its_log_in(start, run_dir, secure_server):
    if cluster.Proxy.is_sanitized():
        pytest.skip("shadow memory is too large to be looked through")
    secret = secure_server.secrets()["by_scram"]
    stored = hashlib.sha256(client_key(secure.password_of("by_scram"), secret)).digest()
    proxy = start(auth_type="scram-sha-256", auth_file=auth_file(run_dir, {"by_scram": secret}), verbose=1)
    with log_in(proxy, "by_scram", secure.FULL) as conn:
        conn.execute("SELECT 1")
        try:
            assert memory_holds(proxy.process.pid, stored)  # the auth_file: the search finds what is there
        except PermissionError:
            pytest.skip("the memory of another process cannot be read here")
        assert not memory_holds(proxy.process.pid, client_key(secure.password_of("by_scram"), secret))


def test_no_password_in_the_log(start):
    """Not at the highest verbosity, and not by any method."""
    proxy = start(verbose=1)
    for user in secure.METHODS:
        with log_in(proxy, user):
            pass
        refusal(proxy, secure.NOBODY, password="a wrong secret of nobody")
    log = proxy.log()
    assert "login attempt" in log and "a wrong secret" not in log
    for user in secure.METHODS:
        assert secure.password_of(user) not in log and "md5" + hashlib.md5((secure.password_of(user) + user).encode()).hexdigest() not in log


# ---- what the configuration means -------------------------------------------------------------------------------------


def test_each_line_says_how_clients_log_in(start):
    proxy = start()
    wanted = {"plain": "clients with or without TLS, server without TLS: every method is relayed; channel_binding=require cannot work",
              "full": "clients with or without TLS, server with TLS (verify-full): every method is relayed; over TLS on both sides SCRAM works for clients "
                      "that do not bind the channel: libpq needs channel_binding=disable, unless the proxy has the server's own certificate and key"}
    checked = subprocess.run([cluster.pgseek_bin(), "-t", proxy.conf], capture_output=True, text=True, check=True).stdout.splitlines()
    assert checked[-1] == "configuration ok"
    for database, row in wanted.items():
        assert f"database {database}: {row}" in proxy.log()
        assert f"{database}: {row}" in checked
