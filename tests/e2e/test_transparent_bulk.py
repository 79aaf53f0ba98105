"""Gigabytes both ways, slow peers, and what memory they take: a stream is never held as a whole."""
import os
import signal
import subprocess
import time

import pytest

import wire
from cluster import Proxy, postgres_bin, wait_until

MIB = 1 << 20
SANITIZED = Proxy.is_sanitized() if os.environ.get("PGSEEK_BIN") else False
# The sanitizers' own memory says nothing about the proxy, and their speed would only cost time.
BULK_MIB = 64 if SANITIZED else 1024
MAY_GROW_KIB = 16 * 1024


class Growth:
    """The growth of a process's peak memory over a block."""

    def __init__(self, proxy):
        self.proxy = proxy

    def __enter__(self):
        self.proxy.reset_peak_memory()
        self.before = self.proxy.memory_kib("VmHWM")
        return self

    def __exit__(self, kind, *_):
        if kind is None and not SANITIZED:
            grown = self.proxy.memory_kib("VmHWM") - self.before
            assert grown < MAY_GROW_KIB, f"peak memory grew by {grown} KiB"


@pytest.fixture
def lone_proxy(make_proxy):
    return make_proxy()


def test_copy_out(lone_proxy):
    sql = f"COPY (SELECT repeat('x', 1023) FROM generate_series(1, {BULK_MIB * 1024})) TO STDOUT"
    with Growth(lone_proxy):
        with subprocess.Popen([postgres_bin() / "psql", "-X", "-q", "-c", sql], env=lone_proxy.env(),
                              stdout=subprocess.PIPE) as psql:
            total = 0
            while piece := psql.stdout.read(MIB):
                total += len(piece)
    assert psql.returncode == 0
    assert total == BULK_MIB * MIB


def test_copy_in(lone_proxy, server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS sink; CREATE UNLOGGED TABLE sink (b text)")
    line = b"y" * 1023 + b"\n"
    with Growth(lone_proxy):
        with subprocess.Popen([postgres_bin() / "psql", "-X", "-c", "\\copy sink FROM STDIN WHERE b = 'kept'"],
                              env=lone_proxy.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as psql:
            for _ in range(BULK_MIB):
                psql.stdin.write(line * 1024)
            psql.stdin.write(b"kept\n")
            psql.stdin.close()
            assert psql.stdout.read() == b"COPY 1\n"
    assert psql.returncode == 0


def test_rows_out(lone_proxy):
    """The same without COPY: DataRow messages, larger than any buffer."""
    count = BULK_MIB // 8
    with Growth(lone_proxy), lone_proxy.wire() as conn:
        conn.send(wire.extended(f"SELECT repeat('z', {8 * MIB}) FROM generate_series(1, {count})"))
        rows = 0
        while (received := conn.read()).kind != "Z":
            rows += received.kind == "D"
    assert rows == count


def test_large_query_text(lone_proxy):
    """A text far above what is looked at streams through."""
    size = (16 if SANITIZED else 200) * MIB
    with Growth(lone_proxy), lone_proxy.wire() as conn:
        text = b"SELECT length('" + b"q" * size + b"')\0"
        assert conn.rows(wire.message("Q", text)) == [[str(size).encode()]]


def test_large_parameter(lone_proxy):
    size = (16 if SANITIZED else 200) * MIB
    with Growth(lone_proxy), lone_proxy.wire() as conn:
        assert conn.rows(wire.extended("SELECT length($1)", [b"p" * size])) == [[str(size).encode()]]


def test_slow_reader(lone_proxy):
    """The server is made to wait, nobody else is, and nothing is lost."""
    rows = 20_000 if SANITIZED else 200_000
    with Growth(lone_proxy), lone_proxy.wire() as slow, lone_proxy.wire() as quick:
        slow.send(wire.query(f"SELECT i, repeat('s', 1000) FROM generate_series(1, {rows}) i"))
        for _ in range(100):
            assert quick.rows(wire.query("SELECT 1")) == [[b"1"]]
            time.sleep(0.005)
        first = 0
        while (received := slow.read()).kind != "Z":
            if received.kind == "D":
                first += 1
                if first % (rows // 100) == 0:
                    assert received.row()[0] == str(first).encode()
        assert first == rows


def test_slow_server(lone_proxy, server):
    """A stopped server process makes its client wait; the proxy keeps no more than a buffer of what it cannot deliver."""
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS sink; CREATE UNLOGGED TABLE sink (b text)")
    with Growth(lone_proxy), lone_proxy.wire() as slow, lone_proxy.wire() as quick:
        slow.send(wire.query("COPY sink FROM STDIN WHERE b = 'kept'"))
        slow.until("G")
        os.kill(slow.pid, signal.SIGSTOP)
        try:
            slow.sock.setblocking(False)
            sent, data, refusals = 0, wire.copy_data(b"n" * 65535 + b"\n"), 0
            pending = memoryview(data)
            while refusals < 20:
                try:
                    count = slow.sock.send(pending)
                    sent, pending, refusals = sent + count, pending[count:] or memoryview(data), 0
                    assert sent < 200 * MIB, "nobody made the client wait"
                except BlockingIOError:
                    refusals += 1
                    assert quick.rows(wire.query("SELECT 1")) == [[b"1"]]
                    time.sleep(0.01)
        finally:
            os.kill(slow.pid, signal.SIGCONT)
        slow.sock.setblocking(True)
        slow.send(bytes(pending) if len(pending) != len(data) else b"", wire.copy_data(b"kept\n"), wire.copy_done())
        assert [m.text() for m in slow.ready() if m.kind == "C"] == ["COPY 1"]


def test_both_ways_at_once(lone_proxy):
    """A client that sends many queries without reading any answer: neither side may wait for the other for ever."""
    count = 2000 if SANITIZED else 20_000
    with lone_proxy.wire() as conn:
        request = wire.extended("SELECT repeat('b', 1000)")
        conn.sock.setblocking(False)
        sent, received, data = 0, bytearray(), memoryview(request * 100)
        pending, batches = data, count // 100
        deadline = time.monotonic() + 60
        while batches or pending:
            assert time.monotonic() < deadline, "stuck"
            try:
                sent += (n := conn.sock.send(pending))
                pending = pending[n:]
                if not pending:
                    batches -= 1
                    pending = data if batches else b""
            except BlockingIOError:
                try:
                    received += conn.sock.recv(MIB)
                except BlockingIOError:
                    time.sleep(0.001)
        conn.sock.setblocking(True)
        conn.buffer = bytes(received)
        assert sent == len(request) * count
        assert sum(m.kind == "D" for m in conn.ready(count)) == count


def test_idle_sessions(lone_proxy, server):
    """Two hundred sessions at once, each its own server process, and none of them left behind."""
    conns = [lone_proxy.wire(application_name="idle crowd") for _ in range(200)]
    assert len({conn.pid for conn in conns}) == 200
    for conn in conns:
        assert conn.rows(wire.query("SELECT pg_backend_pid()")) == [[str(conn.pid).encode()]]
        conn.close()
    with server.connect() as watch:
        wait_until(lambda: watch.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idle crowd'")
                   .fetchone() == (0,), "server sessions are left behind")
