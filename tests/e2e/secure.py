"""A PostgreSQL with TLS and a role for each way to authenticate, and the proxies that the matrix puts in front of it.

It knows configurations and must not know what is tested: matrix.py says what should come of an attempt.
"""
import base64
import hashlib
import hmac
import pathlib
import shutil
import signal
import socket
import ssl
import tempfile

import certificates as certs
import clients
import cluster
import wire

# Users by what the server asks of them; each one's password is password_of(). The server's own line for each is below.
METHODS = {"by_trust": "trust", "by_password": "password", "by_md5": "md5", "by_scram": "scram-sha-256"}
OTHERS = {"alice": "trust", "bob": "trust", "with_map": "trust", "with_tls": "trust", "without_tls": "trust", "by_cert": "cert map=proxy",
          "expired": "scram-sha-256", "no_verifier": "scram-sha-256", "lookup": "trust"}
NOBODY = "nobody_at_all"
ROWS = 21  # of feed 1: three whole pages


def password_of(user):
    """Odd on purpose: much that somebody's quoting could trip over, and still ASCII, which all drivers prepare alike."""
    return f"{user}'s \\ \"secret\" %20 = {{}}"


class SecureCluster(cluster.Cluster):
    """A server with TLS, whose certificate can be changed while it runs."""

    def __init__(self, directory, certificates, programs=None):
        super().__init__(directory, programs)
        self.certificates = certificates

    def _configure(self, settings):
        self._copy("server", "server")
        self._install(self.certificates.ca, "root.crt")
        (self.data / "pg_ident.conf").write_text("proxy pgseek by_cert\n")
        super()._configure({"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl_ca_file": "root.crt",
                            "log_connections": "on", **settings})

    def _install(self, path, name):
        target = self.data / name
        fresh = self.data / (name + ".new")
        shutil.copy(path, fresh)
        fresh.chmod(0o600)
        if self.as_user:
            shutil.chown(fresh, "postgres", "postgres")
        fresh.replace(target)

    def _copy(self, certificate, name):
        pair = self.certificates[certificate]
        self._install(pair.cert, f"{name}.crt")
        self._install(pair.key, f"{name}.key")

    def _rules(self):
        lines = ["hostnossl all with_tls all reject", "hostssl all without_tls all reject"]
        for user, method in {**METHODS, **OTHERS}.items():
            if method.startswith("cert"):
                lines.append(f"hostssl all {user} all {method}")
            else:
                lines += [f"local all {user} {method}", f"host all {user} all {method}"]
        return lines + ["local all postgres trust", "host all postgres all trust", "local all all scram-sha-256", "host all all all scram-sha-256"]

    def _create_roles(self):
        with self.connect(dbname="postgres") as conn:
            conn.execute(f"CREATE DATABASE {cluster.DATABASE}")
            for user, method in {**METHODS, **OTHERS}.items():
                conn.execute(f"SET password_encryption = '{'md5' if method == 'md5' else 'scram-sha-256'}'")
                quoted = password_of(user).replace("'", "''")
                conn.execute(f"CREATE ROLE {user} LOGIN" + (f" PASSWORD '{quoted}'" if user != "no_verifier" else ""))
            conn.execute("ALTER ROLE expired VALID UNTIL '2001-01-01'")
            conn.execute("ALTER ROLE lookup SUPERUSER")
        with self.connect() as conn:
            conn.execute("CREATE TABLE secure_rows (id int8 PRIMARY KEY, feed int4 NOT NULL, at timestamptz NOT NULL, body text NOT NULL)")
            conn.execute("GRANT SELECT ON secure_rows TO PUBLIC")
            conn.execute("INSERT INTO secure_rows SELECT i, i % 2, timestamptz '2026-01-01' + make_interval(mins => i / 5), 'body ' || i"
                         f" FROM generate_series(1, {2 * ROWS}) i")

    def expected(self):
        """The ids of all pages, in order."""
        with self.connect() as conn:
            ids = [row[0] for row in conn.execute("SELECT id FROM secure_rows WHERE feed = 1 ORDER BY at DESC, id DESC")]
        assert len(ids) == ROWS
        return ids

    def secrets(self):
        """User -> what the server keeps, for those with a SCRAM secret."""
        with self.connect() as conn:
            return dict(conn.execute("SELECT rolname, rolpassword FROM pg_authid WHERE rolpassword LIKE 'SCRAM-SHA-256$%'").fetchall())

    def use_certificate(self, name):
        """Shows another certificate from now on."""
        self._copy(name, "server")
        self.process.send_signal(signal.SIGHUP)
        wanted = self.certificates.der(name)
        cluster.wait_until(lambda: shown_certificate(self) == wanted, f"the server does not show {name}")


def shown_certificate(endpoint, host="127.0.0.1"):
    """The certificate that this endpoint shows behind SSLRequest, DER."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, endpoint.port), timeout=30) as sock:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"S"
        with context.wrap_socket(sock) as tls:
            return tls.getpeercert(True)


# ---- proxies ----------------------------------------------------------------------------------------------------------

# The server legs, as lines of [databases]: each is a database name of its own for the clients.
PLAIN, UNIX, REQUIRE, FULL, DIRECT = "plain", "unix", "require", "full", "direct"
SERVER_LEGS = (PLAIN, UNIX, REQUIRE, FULL)


def database_lines(server):
    there = f"port={server.port} dbname={cluster.DATABASE}"
    verified = f"sslmode=verify-full sslrootcert={server.certificates.ca}"
    lines = {PLAIN: f"host=127.0.0.1 {there} sslmode=disable", UNIX: f"host={server.socket_dir} {there}",
             REQUIRE: f"host=127.0.0.1 {there} sslmode=require", FULL: f"host=localhost {there} {verified}"}
    if server.version() >= 17:
        lines[DIRECT] = f"host=localhost {there} {verified} sslnegotiation=direct"
    return lines


def private_file(path, text):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def scram_keys(password, salt, iterations):
    """ClientKey and ServerKey, base64."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    return tuple(base64.b64encode(hmac.digest(salted, text, "sha256")).decode() for text in (b"Client Key", b"Server Key"))


def scram_secret(password, salt=b"a salt of 16 byt", iterations=4096):
    """What PostgreSQL keeps of a password."""
    client_key, server_key = scram_keys(password, salt, iterations)
    stored_key = base64.b64encode(hashlib.sha256(base64.b64decode(client_key)).digest()).decode()
    return f"SCRAM-SHA-256${iterations}:{base64.b64encode(salt).decode()}${stored_key}:{server_key}"


def userlist(secrets):
    """An auth_file."""
    return "".join(f'"{user}" "{secret}"\n' for user, secret in sorted(secrets.items()))


RULES = """# Who comes by which address with what:
local      all  alice                reject
hostnossl  all  alice      all       reject
hostssl    all  alice,bob  all       cert
hostssl    all  with_map   all       cert map=people
local      all  by_scram             scram-sha-256
host       all  by_scram   all       scram-sha-256
local      all  all                  relay
host       all  all        all       relay
"""
IDENT = 'people  alice  with_map\npeople  "{}"  with_map\n'.format(certs.ODD_NAME.replace('"', '""'))


class Proxies:
    """The proxies of the matrix, each started when first asked for: `relay` with a certificate of its own, `shared` with
    the server's, `file` and `query` terminate SCRAM with secrets of theirs, `hba` asks for what RULES say."""

    KINDS = ("relay", "shared", "file", "query", "hba")

    def __init__(self, directory, server):
        self.directory, self.server, self.certificates = pathlib.Path(directory), server, server.certificates
        self.started = {}
        self.expected = server.expected()

    def __getitem__(self, kind):
        if kind not in self.started:
            folder = self.directory / kind
            self.started[kind] = cluster.Proxy(folder, self.server)
            folder.mkdir(parents=True, exist_ok=True)
            self.started[kind].start(database_lines(self.server), **self.settings(kind, folder))
        return self.started[kind]

    def settings(self, kind, folder):
        pair = self.certificates["server" if kind == "shared" else "proxy"]
        listen = "127.0.0.1, ::1" if cluster.HAS_IPV6 else "127.0.0.1"
        settings = {"listen_addr": listen, "client_tls_sslmode": "allow", "client_tls_cert_file": pair.cert, "client_tls_key_file": pair.key}
        if kind in ("file", "hba"):
            settings.update(auth_type="scram-sha-256", auth_file=private_file(folder / "users.txt", userlist(self.verifiers())))
        if kind == "query":
            settings.update(auth_type="scram-sha-256", auth_user="lookup")
        if kind == "hba":
            settings.update(auth_type="hba", client_tls_ca_file=self.certificates.ca, auth_hba_file=private_file(folder / "hba.conf", RULES),
                            auth_ident_file=private_file(folder / "ident.conf", IDENT))
        return settings

    def verifiers(self):
        """What the auth_file holds: the server's secrets, and one for the user that the server asks for MD5."""
        secrets = {user: secret for user, secret in self.server.secrets().items() if user in METHODS}
        return {**secrets, "by_md5": scram_secret(password_of("by_md5"))}

    def stop(self):
        """After all those logins no log has a password in it, or what stands for one."""
        secrets = [password_of(user) for user in METHODS] + [part for secret in self.verifiers().values() for part in secret.split("$")[2].split(":")]
        for kind, proxy in self.started.items():
            proxy.stop()
            log = proxy.log()
            assert not [secret for secret in secrets if secret in log], f"a secret is in the log of {kind}"


def start_proxy(directory, server, databases, **settings):
    """A pgseek in a new folder of `directory`; the caller stops it."""
    proxy = cluster.Proxy(pathlib.Path(tempfile.mkdtemp(prefix="p", dir=directory)), server)
    listen = "127.0.0.1, ::1" if cluster.HAS_IPV6 else "127.0.0.1"
    return proxy.start(databases, **{"listen_addr": listen, **settings})


def attempt_at(endpoint, user, database, leg=clients.PLAIN, **more):
    """An attempt on this endpoint; TLS is verified, against the good authority, unless `ca` says otherwise."""
    host = endpoint.socket_dir if leg == clients.UNIX else "localhost"
    return clients.Attempt(host, endpoint.port, user, more.pop("password", password_of(user)), database, leg, **more)
