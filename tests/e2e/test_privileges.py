"""Root only to bind and to read keys, then another user for good; and files whose secrets others could read."""
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tempfile

import pytest

import cluster as clusters
import secure

USER = "postgres"  # Debian's package has made it
OTHER = "nobody"

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def wait_log(proxy, text, count=1):
    clusters.wait_until(lambda: proxy.log().count(text) >= count, f"the log does not say: {text}")


def low_port():
    for port in range(1023, 600, -1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    pytest.skip("no port below 1024 is free")


def write(path, text, owner="root", mode=0o600):
    path.write_text(text)
    shutil.chown(path, owner)
    path.chmod(mode)
    return path


@pytest.fixture
def folder(run_dir):
    """A folder that everybody can enter and only root can write to."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="priv", dir=run_dir))
    path.chmod(0o755)
    return path


@pytest.fixture
def secrets(folder):
    """Files that only root can read: keys of cursors and of TLS, and the secrets of users."""
    subprocess.run([clusters.pgseek_bin(), "keygen", folder / "cursor.keys"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"], check=True, capture_output=True)
    (folder / "tls.key").chmod(0o600)
    write(folder / "users", '"x" "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="\n')
    return {"cursor_key_file": folder / "cursor.keys", "client_tls_sslmode": "allow", "client_tls_key_file": folder / "tls.key",
            "client_tls_cert_file": folder / "tls.crt", "auth_file": folder / "users"}


@pytest.fixture
def make_proxy(run_dir, server):
    """As conftest's, in a folder that the user can read, and with any port."""
    started = []

    def make(databases=None, **settings):
        path = pathlib.Path(tempfile.mkdtemp(prefix="p", dir=run_dir))
        path.chmod(0o755)
        proxy = clusters.Proxy(path, server)
        proxy.port = settings.get("listen_port", 0)
        started.append(proxy)
        proxy.start(databases, **settings)
        proxy.logfile = settings.get("logfile", proxy.logfile)
        return proxy

    yield make
    for proxy in started:
        proxy.stop()


@pytest.fixture
def home(folder):
    """A folder of the user's own: for the log, the pid file and the socket."""
    path = folder / "home"
    path.mkdir()
    shutil.chown(path, USER, USER)
    return path


def status(proxy):
    lines = pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines()
    return {name: value.split() for name, value in (line.split(":", 1) for line in lines)}


def test_root_is_given_up(make_proxy, secrets, home):
    """After the start the process is the user's, cannot be root again, and hands nothing on; log-ins and TLS work."""
    port = low_port()
    proxy = make_proxy(listen_port=port, user=USER, logfile=home / "log", pidfile=home / "pid", unix_socket_dir=home, **secrets)
    wait_log(proxy, "pgseek is ready")
    entry = pwd.getpwnam(USER)
    now = status(proxy)
    assert now["Uid"] == [str(entry.pw_uid)] * 4 and now["Gid"] == [str(entry.pw_gid)] * 4
    assert sorted(map(int, now["Groups"])) == sorted(os.getgrouplist(USER, entry.pw_gid))
    for field in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(now[field][0], 16) == 0, field
    assert now["NoNewPrivs"] == ["1"]
    for thread in os.listdir(f"/proc/{proxy.process.pid}/task"):
        assert f"Uid:\t{entry.pw_uid}\t{entry.pw_uid}\t{entry.pw_uid}\t{entry.pw_uid}\n" in pathlib.Path(f"/proc/{proxy.process.pid}/task/{thread}/status").read_text()
    for fd in os.listdir(f"/proc/{proxy.process.pid}/fdinfo"):
        flags = int(pathlib.Path(f"/proc/{proxy.process.pid}/fdinfo/{fd}").read_text().split("flags:")[1].split()[0], 8)
        assert int(fd) <= 2 or flags & 0o2000000, f"descriptor {fd} would be handed on"
    assert (home / "log").stat().st_uid == entry.pw_uid
    with proxy.connect(sslmode="require") as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    proxy.stop()
    assert not (home / "pid").exists() or (home / "pid").read_text() == ""
    assert "runs as root" not in proxy.log()


def test_the_home_is_the_users(make_proxy, folder, secure_server, monkeypatch):
    """A look-up by TLS has libpq look for a certificate at home. Where that is still root's it may not, and fails."""
    (folder / "root").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(folder / "root"))
    proxy = make_proxy({"*": f"host=127.0.0.1 port={secure_server.port} sslmode=require"}, user=USER,
                       auth_type="scram-sha-256", auth_user="lookup", auth_dbname="postgres")
    with proxy.connect(user="by_scram", password=secure.password_of("by_scram"), sslmode="disable") as conn:
        assert conn.execute("SELECT current_user").fetchone() == ("by_scram",)


def test_reload_after_root_was_given_up(make_proxy, secrets, home):
    """What can no longer be read is said, and all that was loaded stays in force; what can be read is taken."""
    proxy = make_proxy(user=USER, logfile=home / "log", max_client_conn=50, **secrets)
    for path in ("cursor.keys", "tls.key", "users"):
        wait_log(proxy, f"{path}: a reload will fail")
    proxy.reload()
    wait_log(proxy, "reload failed: the old settings stay in force")
    assert "Permission denied" in proxy.log()
    with proxy.connect(sslmode="require") as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    for name in ("cursor_key_file", "client_tls_key_file", "auth_file"):
        shutil.chown(secrets[name], USER)
    (home / "log").rename(home / "log.1")
    proxy.reload()
    wait_log(proxy, "reloaded")  # in the new file
    assert (home / "log").stat().st_uid == pwd.getpwnam(USER).pw_uid


def test_a_log_that_cannot_be_opened_again(make_proxy, folder):
    """In a folder of root's the file is made for the user at the start; moved away, the old one is written on."""
    proxy = make_proxy(user=USER, logfile=folder / "log")
    wait_log(proxy, "pgseek is ready")
    assert proxy.logfile.stat().st_uid == pwd.getpwnam(USER).pw_uid
    proxy.reload()
    wait_log(proxy, "reloaded")
    proxy.logfile = proxy.logfile.rename(folder / "log.1")
    proxy.reload()
    wait_log(proxy, "could not open logfile")
    wait_log(proxy, "the old log stays in use")


def test_the_log_is_opened_with_the_rights_of_the_user(run_dir, folder, home):
    """Whoever owns the folder of the log could lead root anywhere by a link."""
    other = write(folder / "roots", "root's own\n", mode=0o600)
    (home / "log").symlink_to(other)
    conf = folder / "link.conf"
    conf.write_text(f"[pgseek]\nlisten_port = {clusters.free_port()}\nunix_socket_dir =\nuser = {USER}\nlogfile = {home / 'log'}\n[databases]\n* = host=127.0.0.1\n")
    done = subprocess.run([clusters.pgseek_bin(), conf], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "could not open logfile" in done.stderr and "Permission denied" in done.stderr
    assert other.read_text() == "root's own\n"


def test_files_of_lines_are_looked_at_too(run_dir, server, secrets, folder, certificates):
    """A reload reads what a line of [databases] names as well."""
    crl = write(folder / "tls.crl", pathlib.Path(certificates.revoke("for_root", {"ca": []})).read_text(), mode=0o600)
    proxy = clusters.Proxy(pathlib.Path(tempfile.mkdtemp(prefix="p", dir=run_dir)), server)
    proxy.directory.chmod(0o755)
    line = f"host=127.0.0.1 port={server.port} sslmode=require sslcert={folder / 'tls.crt'} sslkey={folder / 'tls.key'}"
    line = f"{line} sslrootcert={certificates.ca} sslcrl={crl}"
    try:
        proxy.start({"own": line}, user=USER)
        wait_log(proxy, f"{folder / 'tls.key'}: a reload will fail")
        assert f"{crl}: a reload will fail" in proxy.log()
        assert "tls.crt: a reload" not in proxy.log()
    finally:
        proxy.stop()


def test_root_without_a_user_is_warned_of(make_proxy):
    wait_log(make_proxy(), "runs as root")


def test_an_unknown_user(run_dir, folder):
    conf = folder / "proxy.conf"
    conf.write_text(f"[pgseek]\nlisten_port = {clusters.free_port()}\nunix_socket_dir =\nuser = nobody_at_all\n[databases]\n* = host=127.0.0.1\n")
    done = subprocess.run([clusters.pgseek_bin(), conf], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "nobody_at_all" in done.stderr


# ---- files with secrets -----------------------------------------------------------------------------------------------

# Owner and mode of the file, who starts pgseek, and whether it is taken. Root's may be readable by a group; root itself
# takes a file of anybody's, since it may become its owner.
OWNERS_AND_MODES = [
    ("root", 0o600, "root", True), ("root", 0o400, "root", True), ("root", 0o640, "root", True), ("root", 0o660, "root", False),
    ("root", 0o644, "root", False), ("root", 0o604, "root", False), ("root", 0o602, "root", False), ("root", 0o666, "root", False),
    (USER, 0o600, "root", True), (USER, 0o640, "root", False), (USER, 0o604, "root", False), (OTHER, 0o600, "root", True),
    (USER, 0o600, USER, True), (USER, 0o400, USER, True), (USER, 0o640, USER, False), (USER, 0o644, USER, False),
    ("root", 0o600, USER, False), ("root", 0o644, USER, False), (OTHER, 0o600, USER, False), (OTHER, 0o644, USER, False),
]
SECRET_FILES = ("cursor_key_file", "client_tls_key_file", "server_tls_key_file", "auth_file")


def check(conf, starter):
    options = {"user": starter, "group": starter, "extra_groups": []} if starter != "root" else {}
    return subprocess.run([clusters.pgseek_bin(), "-t", conf], capture_output=True, text=True, timeout=30, **options)


@pytest.fixture
def conf_of(folder, secrets):
    """A configuration that names one of the files."""
    def write_conf(name):
        settings = {name: secrets.get(name, secrets["client_tls_key_file"])}
        if "_tls_" in name:
            leg = name.split("_")[0]
            settings.update({f"{leg}_tls_cert_file": folder / "tls.crt", f"{leg}_tls_sslmode": "allow" if leg == "client" else "require"})
        if name == "auth_file":
            settings["auth_type"] = "scram-sha-256"
        lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
        return write(folder / "check.conf", f"[pgseek]\n{lines}[databases]\n* = host=127.0.0.1\n", mode=0o644), settings[name]

    return write_conf


@pytest.mark.parametrize("name", SECRET_FILES)
def test_who_may_read_a_secret(conf_of, name):
    conf, path = conf_of(name)
    for owner, mode, starter, is_taken in OWNERS_AND_MODES:
        shutil.chown(path, owner, "nogroup")
        path.chmod(mode)
        done = check(conf, starter)
        case = f"{name} of {owner}, {mode:o}, started by {starter}: {done.returncode} {done.stderr}"
        assert (done.returncode == 0) == is_taken, case
        assert is_taken or str(path) in done.stderr, case


@pytest.mark.parametrize("name", SECRET_FILES)
@pytest.mark.parametrize("what", ["folder", "fifo", "missing"])
def test_what_is_no_file(conf_of, name, what):
    conf, path = conf_of(name)
    path.unlink()
    if what == "folder":
        path.mkdir()
    if what == "fifo":
        os.mkfifo(path, 0o600)
    done = check(conf, "root")
    assert done.returncode == 1 and str(path) in done.stderr


@pytest.mark.parametrize("name", SECRET_FILES)
def test_a_start_refuses_what_the_check_refuses(conf_of, folder, name):
    conf, path = conf_of(name)
    conf.write_text(conf.read_text().replace("[pgseek]\n", f"[pgseek]\nlisten_port = {clusters.free_port()}\nunix_socket_dir =\n"))
    path.chmod(0o644)
    done = subprocess.run([clusters.pgseek_bin(), conf], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and str(path) in done.stderr
