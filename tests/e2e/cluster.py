"""A private PostgreSQL and a pgseek in front of it, as processes that a test run owns.

It knows how to start, find and stop them and must not know what is tested. Both are endpoints: they have a host, a
port, a socket directory, connect() for psycopg and wire() for raw messages.
"""
import ctypes
import glob
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time

import psycopg

import wire

DATABASE = "e2e"
SUPERUSER = "postgres"
PASSWORDS = {"md5_user": "md5 secret", "scram_user": "scram secret"}
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
NODE_MODULES = REPOSITORY / "tests" / "e2e" / "node" / "node_modules"
HAS_IPV6 = os.path.exists("/proc/net/if_inet6") and "00000000000000000000000000000001" in open("/proc/net/if_inet6").read()
SANITIZER_REPORT = re.compile(r"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:).*")


def postgres_bin():
    """The server's programs: those in PG_BINDIR, or of the newest that is installed."""
    return pathlib.Path(os.environ["PG_BINDIR"]) if os.environ.get("PG_BINDIR") else installed_bin()


def installed_bin():
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb") + [shutil.which("initdb") or ""]
    found = [path for path in found if path]
    if not found:
        raise RuntimeError("no PostgreSQL server is installed")
    return pathlib.Path(max(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path)])).parent


def program_path(program):
    """A folder with a server alone has no client programs."""
    path = postgres_bin() / program
    return path if path.exists() else installed_bin() / program


def pgseek_bin():
    return pathlib.Path(os.environ.get("PGSEEK_BIN", REPOSITORY / "build" / "pgseek"))


def free_port():
    """A port below the range that the kernel hands out by itself, so that nobody else takes it meanwhile."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def wait_until(condition, what, seconds=30):
    """Polls until condition() is true and returns what it returned."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)


class Endpoint:
    """Something that speaks PostgreSQL at a TCP port and in a socket directory."""

    host = "127.0.0.1"
    port = 0
    socket_dir = ""

    def dsn(self, **options):
        options = {"host": self.host, "port": self.port, "user": SUPERUSER, "dbname": DATABASE, **options}
        return psycopg.conninfo.make_conninfo(**{k: v for k, v in options.items() if v is not None})

    def connect(self, autocommit=True, cursor_factory=None, **options):
        """A psycopg 3 connection."""
        connection = psycopg.connect(self.dsn(**options), autocommit=autocommit)
        if cursor_factory:
            connection.cursor_factory = cursor_factory
        return connection

    def socket(self, unix=False):
        """A bare socket, connected."""
        if not unix:
            return socket.create_connection((self.host, self.port), timeout=30)
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(30)
        sock.connect(f"{self.socket_dir}/.s.PGSQL.{self.port}")
        return sock

    def wire(self, start=True, unix=False, **parameters):
        """A raw connection, logged in unless start=False."""
        conn = wire.Wire(self.socket(unix))
        if not start:
            return conn
        try:
            conn.start(**{"user": SUPERUSER, "database": DATABASE, **parameters})
        except Exception:
            conn.close()
            raise
        return conn

    def env(self, **more):
        """The environment that makes libpq's programs talk to this endpoint."""
        return {**os.environ, "PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": SUPERUSER,
                "PGDATABASE": DATABASE, "PGSSLMODE": "disable", "PGGSSENCMODE": "disable", "PGCONNECT_TIMEOUT": "20", **more}

    def run(self, program, *args, check=True, text=True, env=None, **options):
        """Runs one of PostgreSQL's programs against this endpoint."""
        result = subprocess.run([program_path(program), *args], env=self.env(**(env or {})), text=text,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        if check and result.returncode != 0:
            raise AssertionError(f"{program} {args}: exit {result.returncode}\n{result.stderr}")
        return result

    def psql(self, *args, **options):
        return self.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *args, **options).stdout


class Cluster(Endpoint):
    """A PostgreSQL server with trust for all but the password roles. `programs` is the folder of its binaries."""

    def __init__(self, directory, programs=None):
        self.directory = pathlib.Path(directory)
        self.programs = pathlib.Path(programs or postgres_bin())
        self.socket_dir = str(self.directory / "socket")
        self.data = self.directory / "data"
        self.log = self.directory / "server.log"
        self.process = None
        # The server refuses to run as root; Debian's package has made a user for it.
        self.as_user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}

    def start(self, **settings):
        self.directory.mkdir(parents=True, exist_ok=True)
        pathlib.Path(self.socket_dir).mkdir()
        if self.as_user:
            for path in (self.directory, self.socket_dir):
                shutil.chown(path, "postgres", "postgres")
        self._call("initdb", "-D", self.data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        self.port = free_port()
        self._configure(settings)
        self._launch()
        self._create_roles()
        return self

    def _call(self, program, *args):
        subprocess.run([self.programs / program, *args], check=True, cwd=self.directory, **self.as_user,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def _configure(self, settings):
        listen = "127.0.0.1, ::1" if HAS_IPV6 else "127.0.0.1"
        settings = {"listen_addresses": listen, "port": self.port, "unix_socket_directories": self.socket_dir,
                    "unix_socket_permissions": "0777", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
                    "max_connections": 300, "wal_level": "logical", "max_wal_size": "4GB", "autovacuum": "off",
                    "log_line_prefix": "%m [%p] ", "lc_messages": "C", **settings}
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        (self.data / "pg_hba.conf").write_text("\n".join(self._rules()) + "\n")

    def _rules(self):
        """The lines of pg_hba.conf."""
        lines = []
        for method in ("md5", "scram"):
            rule = {"md5": "md5", "scram": "scram-sha-256"}[method]
            lines += [f"local all {method}_user {rule}", f"host all {method}_user 127.0.0.1/32 {rule}",
                      f"host all {method}_user ::1/128 {rule}"]
        for name in ("all", "replication"):
            lines += [f"local {name} all trust", f"host {name} all 127.0.0.1/32 trust", f"host {name} all ::1/128 trust"]
        return lines

    def _launch(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.programs / "postgres", "-D", self.data], cwd=self.directory, stdout=log,
                                            stderr=log, preexec_fn=_die_with_parent, **self.as_user)
        wait_until(self._accepts, f"PostgreSQL does not start, see {self.log}")

    def _accepts(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended:\n{self.log.read_text()}")
        try:
            self.connect(dbname="postgres").close()
            return True
        except psycopg.OperationalError:
            return False

    def _create_roles(self):
        with self.connect(dbname="postgres") as conn:
            conn.execute(f"CREATE DATABASE {DATABASE}")
            conn.execute("CREATE ROLE app LOGIN")
            for role, encryption in (("md5_user", "md5"), ("scram_user", "scram-sha-256")):
                conn.execute(f"SET password_encryption = '{encryption}'")
                conn.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORDS[role]}'")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)
        self.process = None

    def version(self):
        said = subprocess.run([self.programs / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
        return int(re.search(r"\d+", said).group())


class Proxy(Endpoint):
    """A pgseek process. Any sanitizer report and any exit code but 0 makes stop() fail."""

    def __init__(self, directory, server):
        self.directory = pathlib.Path(directory)
        self.socket_dir = str(self.directory / "socket")
        self.conf = self.directory / "proxy.conf"
        self.logfile = self.directory / "pgseek.log"
        self.server = server
        self.process = None
        self.settings = {}
        self.databases = {}

    def start(self, databases=None, **settings):
        """Settings are lines of [pgseek]; databases are lines of [databases], the cluster by default."""
        pathlib.Path(self.socket_dir).mkdir(parents=True, exist_ok=True)
        self.port = self.port or free_port()
        self.settings = {"listen_addr": self.host, "listen_port": self.port, "unix_socket_dir": self.socket_dir,
                         "workers": 2, **settings}
        self.databases = databases or {"*": f"host={self.server.host} port={self.server.port}"}
        self.write_conf()
        self._launch()
        return self

    def write_conf(self):
        lines = ["[pgseek]"] + [f"{name} = {value}" for name, value in self.settings.items() if value is not None]
        lines += ["", "[databases]"] + [f"{name} = {line}" for name, line in self.databases.items()]
        self.conf.write_text("\n".join(lines) + "\n")

    def _launch(self):
        with open(self.logfile, "ab") as log:
            self.process = subprocess.Popen([pgseek_bin(), self.conf], cwd=self.directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=_die_with_parent)
        try:
            wait_until(self._accepts, "pgseek does not start")
        except (RuntimeError, TimeoutError) as error:
            self.process.kill()
            self.process = None
            raise RuntimeError(f"{error}:\n{self.log()[-4000:]}") from None

    def _accepts(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"pgseek ended with {self.process.returncode}")
        try:
            host = self.settings["listen_addr"].split(",")[0].strip()
            self.socket(unix=not host).close()
            return True
        except OSError:
            return False

    def log(self):
        return self.logfile.read_text(errors="replace") if self.logfile.exists() else ""

    def stop(self):
        """Ends the process and checks how it ended."""
        if not self.process:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)  # the second one means now
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"pgseek did not end on SIGTERM:\n{self.log()[-4000:]}")
        log = self.log()
        report = SANITIZER_REPORT.search(log)
        assert not report, f"sanitizer report:\n{log[report.start():][:8000]}"
        assert process.returncode == 0, f"pgseek ended with {process.returncode}:\n{log[-4000:]}"

    def restart(self, **settings):
        self.stop()
        return self.start(databases=self.databases, **{**self.settings, **settings})

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def memory_kib(self, field="VmHWM"):
        """A field of /proc/<pid>/status: VmHWM is the peak of resident memory, VmRSS the present."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.M).group(1))

    def reset_peak_memory(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def settled_files(self):
        """The number of open files once it stands still: workers that start or sessions that end still change it."""
        seen = []

        def stands_still():
            seen.append(self.open_files())
            return len(seen) > 5 and len(set(seen[-5:])) == 1

        wait_until(stands_still, "the number of open files never stands still")
        return seen[-1]

    @staticmethod
    def is_sanitized():
        return b"__asan_init" in pgseek_bin().read_bytes() or b"__tsan_init" in pgseek_bin().read_bytes()
