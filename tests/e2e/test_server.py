"""The process itself: signals, reload, start and stop, the command line."""
import os
import pathlib
import re
import resource
import signal
import subprocess
import threading

import psycopg
import pytest

import cluster as clusters
import test_faults
from wire import query, terminate


def pgseek(*args, **options):
    return subprocess.run([clusters.pgseek_bin(), *args], capture_output=True, text=True, timeout=60, **options)


def wait_log(proxy, text):
    clusters.wait_until(lambda: text in proxy.log(), f"the log does not say: {text}")


def fatal(conn):
    """The SQLSTATE that the proxy ended a connection with."""
    return conn.until("E")[-1].fields()["C"]


@pytest.fixture
def feed(server):
    """A table of its own, and the statement that pages through it."""
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS server_feed")
        conn.execute("CREATE TABLE server_feed AS SELECT n AS id FROM pg_catalog.generate_series(1, 50) n")
        conn.execute("ALTER TABLE server_feed ADD PRIMARY KEY (id)")
    yield "SELECT id FROM server_feed ORDER BY id LIMIT 5 /* pgseek cursor='{}' */"


def first_page(proxy, feed):
    with proxy.connect() as conn:
        conn.execute(feed.format(""))
        return conn.execute("SHOW pgseek.next_cursor").fetchone()[0]


def next_page(proxy, feed, cursor):
    with proxy.connect() as conn:
        return [row[0] for row in conn.execute(feed.format(cursor))]


# ---- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_drain(make_proxy, number):
    """The idle end at once, a statement and a transaction are finished, nobody new comes in."""
    proxy = make_proxy()
    idle, working, in_block = (proxy.wire() for _ in range(3))
    in_block.ask(query("BEGIN"))
    working.send(query("SELECT pg_sleep(0.5), 'done'"))
    proxy.process.send_signal(number)
    assert fatal(idle) == "57P01" and idle.is_closed()
    idle.close()
    assert any(b"done" in message.body for message in working.ready())
    assert fatal(working) == "57P01" and working.is_closed()
    working.close()
    with pytest.raises(OSError):
        proxy.socket()
    in_block.ask(query("SELECT 1"))
    in_block.ask(query("COMMIT"))
    assert fatal(in_block) == "57P01"
    in_block.close()
    assert proxy.process.wait(20) == 0


def test_second_term_ends_all(make_proxy):
    proxy = make_proxy()
    conn = proxy.wire()
    conn.ask(query("BEGIN"))
    proxy.process.send_signal(signal.SIGTERM)
    wait_log(proxy, "got SIGTERM")
    proxy.process.send_signal(signal.SIGTERM)
    assert fatal(conn) == "57P01"
    conn.close()
    assert proxy.process.wait(20) == 0


def test_quit_waits_for_nobody(make_proxy):
    proxy = make_proxy()
    conn = proxy.wire()
    conn.send(query("SELECT pg_sleep(60)"))
    proxy.process.send_signal(signal.SIGQUIT)
    assert proxy.process.wait(20) == 0
    conn.close()


def test_a_client_that_waits_for_the_end_has_closed_in_order(make_proxy):
    """Drivers over TLS send Terminate and wait for the server to close: no fault of the server's."""
    proxy = make_proxy()
    with proxy.wire() as conn:
        conn.send(terminate())
        test_faults.ends(conn)
    clusters.wait_until(lambda: re.search(r" LOG C-\d+: \S+ closing because: client close request", proxy.log()),
                        "the log has no orderly end")


def test_socket_file_and_pid_file_are_gone(make_proxy, run_dir):
    pidfile = run_dir / "stop.pid"
    proxy = make_proxy(pidfile=pidfile)
    wait_log(proxy, "pgseek is ready")
    path = f"{proxy.socket_dir}/.s.PGSQL.{proxy.port}"
    assert os.path.exists(path) and int(pidfile.read_text()) == proxy.process.pid
    proxy.stop()
    assert not os.path.exists(path) and not pidfile.exists()


# ---- reload -----------------------------------------------------------------------------------------------------------


def test_reload_takes_new_settings_for_new_sessions(make_proxy):
    proxy = make_proxy(max_client_conn=1)
    # The harness's own probe may still be counted.
    with clusters.wait_until(lambda: _connection(proxy), "no client at all") as old:
        assert not _connection(proxy)
        proxy.settings["max_client_conn"] = 5
        proxy.write_conf()
        proxy.reload()
        wait_log(proxy, "reloaded")
        clusters.wait_until(lambda: _connection(proxy), "the new limit does not come into force").close()
        assert old.execute("SELECT 1").fetchone() == (1,)


def _connection(proxy, **options):
    try:
        return proxy.connect(**options)
    except psycopg.OperationalError:
        return None


def test_bad_reload_changes_nothing(make_proxy):
    proxy = make_proxy()
    with open(proxy.conf, "a") as conf:
        conf.write("[pgseek]\nmax_client_con = 1\n")
    proxy.reload()
    wait_log(proxy, "the old settings stay in force")
    assert "max_client_con" in proxy.log() and f"{proxy.conf}:" in proxy.log()
    with proxy.connect() as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)


def is_pending(proxy, number):
    """Whether the kernel has not handed that signal over yet: one more would be lost in it."""
    status = pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text()
    return int(re.search(r"^ShdPnd:\s+(\w+)", status, re.M).group(1), 16) >> (number - 1) & 1


def test_many_signals_are_one_reload(make_proxy, server):
    """With a file that takes longer to read than a signal to send. All that came before the last one has been read, and
    nobody waits for one reload after the other."""
    proxy = make_proxy({f"d{i}": f"host={server.host} port={server.port} dbname={clusters.DATABASE}" for i in range(2000)}, workers=1)
    wait_log(proxy, "pgseek is ready")
    signals = 100
    for _ in range(signals):
        proxy.reload()
        clusters.wait_until(lambda: not is_pending(proxy, signal.SIGHUP), "the signal is not taken")
    proxy.databases["last"] = proxy.databases["d0"]
    proxy.write_conf()
    proxy.reload()
    clusters.wait_until(lambda: _connection(proxy, dbname="last"), "the last one is not read").close()
    assert proxy.log().count("got SIGHUP") <= signals  # and one more: some were one


def test_reload_changes_what_is_logged(make_proxy):
    """Whoever hunts a fault must not have to end all sessions for it."""
    proxy = make_proxy(workers=1)
    for verbose, ups in ((1, 1), (0, 1), (1, 2)):
        proxy.settings["verbose"] = verbose
        proxy.write_conf()
        reloads = proxy.log().count(" LOG reloaded")
        proxy.reload()
        clusters.wait_until(lambda: proxy.log().count(" LOG reloaded") > reloads, "it is not reloaded")
        proxy.connect().close()
        assert proxy.log().count("login -> up") == ups  # written before the client hears that it is in


def test_reload_says_what_needs_a_restart(make_proxy):
    proxy = make_proxy(workers=2)
    proxy.settings["workers"] = 1
    proxy.write_conf()
    proxy.reload()
    wait_log(proxy, "workers changes at the next start only")


def test_cursors_without_a_key_file_outlive_a_reload(make_proxy, feed):
    proxy = make_proxy()
    wait_log(proxy, "cursors die with this process")
    cursor = first_page(proxy, feed)
    proxy.reload()
    wait_log(proxy, "reloaded")
    assert next_page(proxy, feed, cursor) == [6, 7, 8, 9, 10]


def test_rotated_keys_lose_no_cursor(make_proxy, run_dir, feed):
    keys = run_dir / "server-keys"
    assert pgseek("keygen", keys).returncode == 0
    proxy = make_proxy(cursor_key_file=keys)
    cursor = first_page(proxy, feed)
    assert pgseek("keygen", keys).returncode == 0
    proxy.reload()
    wait_log(proxy, "reloaded")
    assert next_page(proxy, feed, cursor) == [6, 7, 8, 9, 10]
    proxy.stop()
    proxy.start(cursor_key_file=keys)
    assert next_page(proxy, feed, cursor) == [6, 7, 8, 9, 10]


def test_a_cancel_request_goes_where_its_session_is(make_proxy, server):
    """A line that names another server now does not take the cancel requests of those who are still on the old one."""
    proxy = make_proxy()
    with proxy.connect() as conn:
        proxy.databases = {"*": "host=127.0.0.1 port=1"}
        proxy.write_conf()
        proxy.reload()
        wait_log(proxy, "reloaded")
        canceller = threading.Thread(target=_cancel_sleeper, args=(conn, server))
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            conn.execute("SELECT pg_sleep(60)")
        canceller.join()


def _cancel_sleeper(conn, server):
    with server.connect() as watch:
        clusters.wait_until(lambda: watch.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'",
                                                  (conn.info.backend_pid,)).fetchone(), "nobody sleeps")
    conn.cancel()


# ---- starting ---------------------------------------------------------------------------------------------------------


def test_a_port_in_use_stops_the_start(make_proxy):
    proxy = make_proxy()  # two workers: the port is shared among them, not with others
    second = pgseek(proxy.conf)
    assert second.returncode == 1 and "Address already in use" in second.stderr


def test_daemon(server, run_dir):
    proxy = clusters.Proxy(run_dir / "daemon", server)
    proxy.port = clusters.free_port()
    (run_dir / "daemon" / "socket").mkdir(parents=True)
    pidfile, logfile = run_dir / "daemon" / "pid", run_dir / "daemon" / "pgseek.log"
    proxy.settings = {"listen_port": proxy.port, "unix_socket_dir": proxy.socket_dir, "pidfile": pidfile, "logfile": logfile}
    proxy.databases = {"*": f"host={server.host} port={server.port}"}
    proxy.write_conf()
    assert pgseek("-d", proxy.conf).returncode == 0  # it is ready when this returns
    pid = int(pidfile.read_text())
    try:
        with proxy.connect() as conn:
            assert conn.execute("SELECT 1").fetchone() == (1,)
        again = pgseek("-d", proxy.conf)
        assert again.returncode == 1 and "pgseek.log says why" in again.stderr
    finally:
        os.kill(pid, signal.SIGTERM)
        clusters.wait_until(lambda: not pidfile.exists(), "the daemon does not end")
    assert "stopped" in logfile.read_text() or clusters.wait_until(lambda: "stopped" in logfile.read_text(), "no last line")


@pytest.mark.parametrize("missing", [(0,), (2,), (0, 1, 2)], ids=str)
def test_missing_standard_descriptors(server, run_dir, missing):
    """Nothing of the proxy's gets their numbers: what is written to them would go to clients, or into a key file."""
    folder = run_dir / f"missing{len(missing)}{missing[0]}"
    folder.mkdir()
    port, logfile, pidfile = clusters.free_port(), folder / "log", folder / "pid"
    (folder / "conf").write_text(f"[pgseek]\nlisten_port = {port}\nunix_socket_dir =\nlogfile = {logfile}\npidfile = {pidfile}\n"
                                 f"[databases]\n* = host={server.host} port={server.port}\n")
    closing = " ".join(f"{fd}>&-" for fd in missing)
    for daemon in ("", "-d"):
        command = f"exec {clusters.pgseek_bin()} {daemon} {folder / 'conf'} {closing}"
        process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        clusters.wait_until(lambda: pidfile.exists() and pidfile.read_text().strip() and "is ready" in logfile.read_text(), "it does not start")
        pid = int(pidfile.read_text())
        try:
            assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)] == 3 * ["/dev/null"]
            with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname={clusters.DATABASE}") as conn:
                assert conn.execute("SELECT 1").fetchone() == (1,)
        finally:
            os.kill(pid, signal.SIGTERM)
            clusters.wait_until(lambda: not pidfile.exists(), "it does not end")
        assert process.wait(30) == 0
        logfile.unlink()
    done = subprocess.run(["/bin/sh", "-c", f"exec {clusters.pgseek_bin()} keygen {folder / 'keys'} {closing}"], timeout=30)
    assert done.returncode == 0 and b"the new key" not in (folder / "keys").read_bytes()


@pytest.mark.parametrize("content", ["host all all all reject\n", "1234", "12 34\n", 40 * "1" + "\n", "\n"])
def test_a_pid_file_that_is_none(server, run_dir, content):
    """A slip in the settings must not empty somebody's file."""
    path = run_dir / "no.pid"
    path.write_text(content)
    conf = run_dir / "no_pid.conf"
    conf.write_text(f"[pgseek]\nlisten_port = {clusters.free_port()}\nunix_socket_dir =\npidfile = {path}\n[databases]\n* = host={server.host}\n")
    done = pgseek(conf)
    assert done.returncode == 1 and "is no pid file" in done.stderr
    assert path.read_text() == content
    path.unlink()


def test_out_of_descriptors(make_proxy):
    """Clients above the limit wait and are served when others have left."""
    proxy = make_proxy()
    resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (60, 60))
    waiting = [proxy.socket() for _ in range(80)]
    wait_log(proxy, "could not accept")
    for sock in waiting:
        sock.close()
    clusters.wait_until(lambda: _connection(proxy), "it does not accept again").close()


# ---- the command line -------------------------------------------------------------------------------------------------


def test_check(run_dir, server):
    conf = run_dir / "check.conf"
    conf.write_text(f"[pgseek]\n[databases]\n* = host={server.host} port={server.port}\n")
    assert pgseek("-t", conf).returncode == 0
    conf.write_text("[pgseek]\nlisten_prt = 1\n[databases]\n* = host=x\n")
    wrong = pgseek("-t", conf)
    assert wrong.returncode == 1 and f"{conf}:2" in wrong.stderr and "listen_port" in wrong.stderr
    conf.write_text(f"[pgseek]\ncursor_key_file = {run_dir}/nowhere\n[databases]\n* = host=x\n")
    assert pgseek("-t", conf).returncode == 1


@pytest.mark.parametrize("args, code", [(("-V",), 0), (("--help",), 0), ((), 1), (("-x", "conf"), 1), (("a", "b"), 1),
                                        (("-v", "-q", "conf"), 1), (("nowhere.conf",), 1), (("keygen",), 1),
                                        (("explain",), 1), (("explain", "-z", "SELECT 1"), 1)])
def test_exit_codes(args, code, tmp_path):
    assert pgseek(*args, cwd=tmp_path).returncode == code


@pytest.mark.parametrize("sql, code, says", [
    ("SELECT id FROM server_feed ORDER BY id LIMIT 5 /* pgseek */", 0, '"server_feed"."id"'),
    ("SELECT id FROM server_feed ORDER BY id LIMIT $1 OFFSET $2 /* pgseek cursor=$3 */", 0, "OPERATOR(pg_catalog.>)"),
    ("SELECT id FROM server_feed LIMIT 5 /* pgseek */", 2, "no_order"),
    ("SELECT id FROM server_feed LIMIT 5 /* pgseek cursor=abc */", 3, "PS005"),
    ("SELECT id FROM server_feed ORDER BY id LIMIT 5 /* pgseek curser=abc */", 3, 'Did you mean "cursor"?'),
    ("SELECT id FROM no_such_table ORDER BY id LIMIT 5 /* pgseek */", 2, "no_such_table"),
])
def test_explain(server, feed, sql, code, says):
    done = pgseek("explain", "-v", "-d", server.dsn(), sql)
    assert done.returncode == code, done.stdout + done.stderr
    assert says in done.stdout


def test_explain_without_a_database():
    done = pgseek("explain", "-", input="SELECT id FROM posts ORDER BY id LIMIT 5")
    assert done.returncode == 4 and "posts" in done.stdout
    assert pgseek("explain", "SELECT id FROM posts LIMIT 5").returncode == 2


def test_explain_on_a_server_that_is_not_there():
    done = pgseek("explain", "-d", "host=127.0.0.1 port=1", "SELECT id FROM posts ORDER BY id LIMIT 5")
    assert done.returncode == 1 and "refused" in done.stderr
