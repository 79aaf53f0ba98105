"""Keys of cursors in a running proxy: where their bytes are in its memory, and that no nonce comes twice.

The memory is read as a debugger would read it, so these tests need the right to do that.
"""
import base64
import hashlib
import hmac
import os
import pathlib
import re
import signal
import subprocess

import pytest

import cluster
import pages
import secure
import wire

SQL = "SELECT id FROM key_rows ORDER BY id LIMIT 2"
LABELS = (b"pgseek cursor encrypt v1", b"pgseek cursor sign v1")
HEADER = 6  # version, key id, flags
NONCE = 24


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS key_rows; CREATE TABLE key_rows (id int8 PRIMARY KEY); INSERT INTO key_rows SELECT generate_series(1, 400)")
    yield


def keygen(path):
    subprocess.run([cluster.pgseek_bin(), "keygen", path], check=True, capture_output=True)


def key_lines(path):
    return [line for line in path.read_text().splitlines() if line.startswith("pgseek-key")]


class Key:
    """What a line of the key file becomes."""

    def __init__(self, line):
        self.text = line.split()[3].encode()
        self.secret = base64.urlsafe_b64decode(self.text + b"=")
        self.derived = [hmac.digest(self.secret, label + b"\1", hashlib.sha256) for label in LABELS]
        self.common = hmac.digest(self.secret, b"pgseek common v1\1", hashlib.sha256)


def mappings(pid):
    """Address ranges with their flags and whether they can be read."""
    first = last = None
    found = []
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
        if head:
            first, last, access = int(head.group(1), 16), int(head.group(2), 16), head.group(3)
        elif line.startswith("VmFlags:") and access[0] == "r":
            found.append((first, last, line.split()[1:]))
    return found


def places(proxy, needles):
    """How often each of the byte strings stands in the proxy's memory, and the flags of the mappings that hold it."""
    found = {needle: [] for needle in needles}
    with open(f"/proc/{proxy.process.pid}/mem", "rb", buffering=0) as memory:
        for first, last, flags in mappings(proxy.process.pid):
            if "io" in flags or last - first > 1 << 30:
                continue
            try:
                memory.seek(first)
                content = memory.read(last - first)
            except (OSError, ValueError, OverflowError):
                continue
            for needle in needles:
                found[needle] += [flags] * content.count(needle)
    return found


@pytest.fixture
def keyed(make_proxy, run_dir):
    if cluster.Proxy.is_sanitized():
        pytest.skip("a sanitizer keeps what was freed")
    keys = run_dir / "memory.keys"
    keys.unlink(missing_ok=True)
    keygen(keys)
    proxy = make_proxy(cursor_key_file=keys)
    try:
        open(f"/proc/{proxy.process.pid}/mem", "rb").close()
    except PermissionError:
        pytest.skip("no right to read the memory of another process")
    return proxy, keys


def use(proxy):
    """Tokens made and opened on several connections."""
    for _ in range(4):
        with proxy.wire() as conn:
            asker = pages.Extended(conn, SQL)
            asker.ask(asker.ask().next)


def test_keys_stand_in_locked_memory_alone(keyed):
    """Neither the file's text nor the secret is left anywhere; the keys made of them are where no dump reaches."""
    proxy, keys = keyed
    use(proxy)
    key = Key(key_lines(keys)[0])
    found = places(proxy, [key.text, key.secret, key.common, *key.derived])
    assert found[key.text] == [] and found[key.secret] == []
    assert len(found[key.common]) >= 1
    assert all({"dd", "wf", "lo"} <= set(flags) for flags in found[key.common])
    for derived in key.derived:
        assert len(found[derived]) == 1
        assert {"dd", "wf"} <= set(found[derived][0])
        assert "lo" in found[derived][0], "RLIMIT_MEMLOCK is too small for a page"


def test_a_key_that_is_taken_out_is_gone(keyed):
    """After a reload without it no byte of it is left; the new one seals."""
    proxy, keys = keyed
    use(proxy)
    old = Key(key_lines(keys)[0])
    keygen(keys)
    new_line = key_lines(keys)[0]
    keys.write_text(new_line + "\n")
    new = Key(new_line)
    proxy.reload()
    cluster.wait_until(lambda: all(places(proxy, new.derived).values()), "the new key is not loaded")

    def is_gone():
        return not any(places(proxy, [old.text, old.secret, old.common, *old.derived]).values())

    use(proxy)  # every worker takes its next connection with the new settings
    cluster.wait_until(is_gone, "the old key is still there")
    found = places(proxy, [new.text, new.secret])
    assert not any(found.values())


@pytest.mark.parametrize("database", ["plain", "full"])
def test_a_clients_key_is_gone_when_it_is_in(secure_server, proxies, database):
    """Where SCRAM ends in the proxy: neither the key that it has learnt nor the password is left when the log-in is over."""
    proxy = proxies["file"]
    if cluster.Proxy.is_sanitized():
        pytest.skip("a sanitizer keeps what was freed")
    password = secure.password_of("by_scram")
    iterations, salt = secure_server.secrets()["by_scram"].split("$")[1].split(":")
    client_key = base64.b64decode(secure.scram_keys(password, base64.b64decode(salt), int(iterations))[0])
    with proxy.connect(user="by_scram", password=password, dbname=database) as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
        assert places(proxy, [client_key, password.encode()]) == {client_key: [], password.encode(): []}


# ---- nonces ---------------------------------------------------------------------------------------------------------


def tokens_of(proxy, connections, count):
    """Row cursors of many pages, asked for on several connections at once."""
    taken = []
    conns = [proxy.wire() for _ in range(connections)]
    sql = wire.query("SELECT id FROM key_rows ORDER BY id LIMIT 200 /* pgseek deliver=columns */")
    for _ in range(count):
        for conn in conns:
            conn.send(sql)
        for conn in conns:
            taken += [m.row()[1].decode() for m in conn.ready() if m.kind == "D"]
    for conn in conns:
        conn.close()
    return taken


def test_no_nonce_comes_twice(make_proxy, run_dir):
    """Of one key file: not among workers, not after a restart, not in the background, not in two proxies at once."""
    keys = run_dir / "nonces.keys"
    keys.unlink(missing_ok=True)
    keygen(keys)
    one = make_proxy(cursor_key_file=keys, workers=4)
    two = make_proxy(cursor_key_file=keys, workers=2)
    tokens = tokens_of(one, 8, 2) + tokens_of(two, 4, 2)
    for _ in range(3):
        two.restart()
        tokens += tokens_of(two, 4, 2)
    for _ in range(2):
        with background(two) as daemon:
            tokens += tokens_of(daemon, 4, 2)
    raw = [base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) for token in tokens]
    assert len(raw) == 200 * (16 + 8 + 24 + 16)
    assert {token[1:5].hex() for token in raw} == {key_lines(keys)[0].split()[2]}
    nonces = [token[HEADER:HEADER + NONCE] for token in raw]
    assert len(set(nonces)) == len(nonces)
    assert len({nonce[:12] for nonce in nonces}) == len(nonces), "the half that a token's key is made of"


class background:
    """The proxy of a test, ended and started again with -d."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.pidfile = proxy.directory / "pid"

    def __enter__(self):
        self.proxy.stop()
        self.proxy.settings.update({"pidfile": self.pidfile, "logfile": self.proxy.logfile})
        self.proxy.write_conf()
        subprocess.run([cluster.pgseek_bin(), "-d", self.proxy.conf], check=True, capture_output=True, cwd=self.proxy.directory)
        self.pid = int(self.pidfile.read_text())
        return self.proxy

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGQUIT)
        cluster.wait_until(lambda: not pathlib.Path(f"/proc/{self.pid}").exists(), "the daemon does not end")
