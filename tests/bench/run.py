#!/usr/bin/env python3
"""What pgseek costs when it has nothing to do: beside PgBouncer and beside a proxy that looks at nothing.

    run.py [--quick] [--reps N] [--seconds S] [--clients 1,8,64] [--modes simple,prepared] [--only cpu,calls,page,idle]

One interleaved run: in each repetition every cell (clients, protocol) visits all targets in a shuffled order, so that
what else the machine does falls on all of them. Figures are the proxy's own: CPU of all its threads (schedstat) and
system calls, per transaction of `pgbench -S`; set-up of the connections is measured apart and taken off. Medians, with
the smallest and the largest in brackets. Starts a private PostgreSQL and stops everything it started.
"""
import argparse, atexit, glob, os, pwd, random, re, shutil, signal, socket, statistics, struct, subprocess, sys
import tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PGSEEK = os.environ.get("PGSEEK_BIN", os.path.join(ROOT, "build", "pgseek"))

# What must hold: name, bound. Ratios are medians of ratios within one repetition, over all cells at 8 and 64 clients.
GATES = {
    "CPU per transaction, to the splicer, 8 and 64 clients": 1.03,
    "CPU per transaction, to PgBouncer, 8 and 64 clients": 1.00,
    "system calls per transaction, 1 client": 6.05,
    "system calls per transaction, 64 clients": 4.30,
    "bytes per idle session": 3 * 1024,
    "system calls per tagged page, 1 client": 7.05,
}

# ---- what is there to run with ---------------------------------------------------------------------------------


def bindir():
    found = os.environ.get("PG_BINDIR")
    if found:
        return found
    for folder in sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda f: int(f.split("/")[-2]), reverse=True):
        if os.path.exists(folder + "/initdb"):
            return folder
    sys.exit("bench: no PostgreSQL server found (PG_BINDIR names its bin directory)")


BIN = bindir()
DATABASE_USER = "postgres"
SERVER_ACCOUNT = pwd.getpwnam("postgres") if os.geteuid() == 0 else None  # initdb refuses root


def free_port():
    """Below the ephemeral range: an outgoing connection of pgbench would take one from it sooner or later."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def as_server(command, **options):
    if SERVER_ACCOUNT:
        options.update(user=SERVER_ACCOUNT.pw_uid, group=SERVER_ACCOUNT.pw_gid, extra_groups=[])
    return dict(args=command, **options)


def wait_port(port, process, name):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"bench: {name} did not start")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"bench: {name} does not answer on port {port}")


class Work:
    """A folder and processes that are gone at the end, however it comes."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pgseek-bench-")
        self.processes = []
        os.chmod(self.folder, 0o755)
        if SERVER_ACCOUNT:
            os.chown(self.folder, SERVER_ACCOUNT.pw_uid, SERVER_ACCOUNT.pw_gid)
        atexit.register(self.close)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def start(self, name, command, server=False):
        log = open(os.path.join(self.folder, name + ".log"), "wb")
        options = dict(stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        process = subprocess.Popen(**as_server(command, **options)) if server else subprocess.Popen(command, **options)
        self.processes.append(process)
        return process

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)  # the server: fast shutdown
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- targets -------------------------------------------------------------------------------------------------------


class Target:
    def __init__(self, name, port, process=None):
        self.name, self.port, self.process = name, port, process

    def cpu_ns(self):
        if not self.process:
            return 0
        total = 0
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"):
            with open(path) as file:
                total += int(file.read().split()[0])
        return total

    def pss(self):
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            return int(re.search(r"^Pss:\s+(\d+) kB", file.read(), re.M)[1]) * 1024


def start_server(work):
    port, data = free_port(), os.path.join(work.folder, "data")
    subprocess.run(**as_server([f"{BIN}/initdb", "-D", data, "-A", "trust", "-U", DATABASE_USER, "-N"], check=True,
                               stdout=subprocess.DEVNULL))
    settings = dict(listen_addresses="127.0.0.1", port=port, unix_socket_directories=work.folder, fsync="off",
                    max_connections=1100, shared_buffers="256MB", max_wal_size="4GB", autovacuum="off")
    command = [f"{BIN}/postgres", "-D", data] + [part for k, v in settings.items() for part in ("-c", f"{k}={v}")]
    process = work.start("postgres", command, server=True)
    wait_port(port, process, "PostgreSQL")
    while subprocess.run(**psql(port, "SELECT 1"), capture_output=True).returncode:  # "starting up"
        time.sleep(0.1)
    subprocess.run([f"{BIN}/pgbench", "-h", "127.0.0.1", "-p", str(port), "-U", DATABASE_USER, "-i", "-s", "10", "-q",
                    "postgres"], check=True, capture_output=True)
    subprocess.run(**psql(port, "CHECKPOINT"), check=True, capture_output=True)
    return Target("direct", port)


def psql(port, sql):
    return dict(args=[f"{BIN}/psql", "-X", "-h", "127.0.0.1", "-p", str(port), "-U", DATABASE_USER, "-qAtc", sql,
                      "postgres"])


def start_splicer(work, server):
    program = os.path.join(os.environ.get("BENCH_BIN", work.folder), "splice")
    if not os.path.exists(program):
        if not shutil.which("cc") or subprocess.run(["pkg-config", "--exists", "libuv"]).returncode:
            return skip("splicer", "no C compiler or no libuv to build it with")
        found = subprocess.run(["pkg-config", "--cflags", "--libs", "libuv"], capture_output=True, text=True)
        subprocess.run(["cc", "-O2", os.path.join(HERE, "splice.c"), "-o", program, *found.stdout.split()], check=True)
    port = free_port()
    process = work.start("splice", [program, str(port), str(server.port)])
    wait_port(port, process, "the splicer")
    return Target("splicer", port, process)


def start_pgbouncer(work, server):
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if not program:
        return skip("pgbouncer", "not installed")
    port = free_port()
    users = work.write("users.txt", f'"{DATABASE_USER}" ""\n')
    conf = work.write("pgbouncer.ini", f"""[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = session
max_client_conn = 1100
default_pool_size = 1050
ignore_startup_parameters = extra_float_digits
server_tls_sslmode = disable
server_idle_timeout = 2
log_connections = 0
log_disconnections = 0
""")
    process = work.start("pgbouncer", [program, conf], server=True)
    wait_port(port, process, "PgBouncer")
    return Target("pgbouncer", port, process)


def start_pgseek(work, server):
    if not os.path.exists(PGSEEK):
        sys.exit(f"bench: {PGSEEK} is not built")
    port = free_port()
    conf = work.write("proxy.conf", f"""[pgseek]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
max_client_conn = 1100
log_connections = off
log_disconnections = off
[databases]
* = host=127.0.0.1 port={server.port}
""")
    process = work.start("pgseek", [PGSEEK, conf])
    wait_port(port, process, "pgseek")
    return Target("pgseek", port, process)


def skip(name, reason):
    print(f"skipped: {name}: {reason}")
    return None


# ---- measuring ------------------------------------------------------------------------------------------------------


SELECT_ONLY = ("-S",)


def pgbench(target, clients, mode, limit, script=SELECT_ONLY):
    command = [f"{BIN}/pgbench", "-h", "127.0.0.1", "-p", str(target.port), "-U", DATABASE_USER, "-n", *script,
               "-M", mode,
               "-c", str(clients), "-j", str(min(clients, 2)), *limit, "postgres"]
    plain = dict(os.environ, PGSSLMODE="disable", PGGSSENCMODE="disable")
    done = subprocess.run(command, capture_output=True, text=True, env=plain)
    if done.returncode:
        sys.exit(f"bench: pgbench through {target.name}: {done.stderr.strip()}")
    return int(re.search(r"transactions actually processed: (\d+)", done.stdout)[1]), \
        float(re.search(r"tps = ([\d.]+)", done.stdout)[1])


def per_transaction(target, clients, mode, seconds, meter, script=SELECT_ONLY):
    """meter(run) runs and returns (result of run, amount). The amount that a one-transaction run takes is set-up."""
    (few, _), setup = meter(lambda: pgbench(target, clients, mode, ["-t", "1"], script))
    (many, tps), amount = meter(lambda: pgbench(target, clients, mode, ["-T", str(seconds)], script))
    return max(0.0, amount - setup) / max(1, many - few), tps


def cpu_meter(target):
    def meter(run):
        before = target.cpu_ns()
        result = run()
        return result, target.cpu_ns() - before
    return meter


def perf_meter(target):
    def meter(run):
        perf = subprocess.Popen(["perf", "stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", str(target.process.pid)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(0.3)  # until it counts: nothing tells
        result = run()
        perf.send_signal(signal.SIGINT)
        return result, int(perf.communicate()[1].split(",")[0])
    return meter


def strace_meter(target):
    def meter(run):
        strace = subprocess.Popen(["strace", "-c", "-f", "-p", str(target.process.pid)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        result = run()
        strace.send_signal(signal.SIGINT)
        return result, int(re.search(r"(\d+)(?:\s+\d+)?\s+total$", strace.communicate()[1], re.M)[1])
    return meter


def call_meter():
    probe = ["perf", "stat", "-e", "raw_syscalls:sys_enter", "true"]
    if shutil.which("perf") and subprocess.run(probe, capture_output=True).returncode == 0:
        return perf_meter
    if shutil.which("strace"):
        print("system calls by strace: perf cannot count them here")
        return strace_meter
    return None


def login(port):
    """One session that has said SELECT 1 and now idles."""
    client = socket.create_connection(("127.0.0.1", port))
    body = struct.pack("!i", 196608) + f"user\0{DATABASE_USER}\0database\0postgres\0\0".encode()
    client.sendall(struct.pack("!i", len(body) + 4) + body)
    read_ready(client)
    query = b"SELECT 1\0"
    client.sendall(b"Q" + struct.pack("!i", len(query) + 4) + query)
    read_ready(client)
    return client


def read_ready(client):
    tail = b""
    while tail[-6:-1] != b"Z\0\0\0\x05":
        got = client.recv(65536)
        if not got:
            sys.exit("bench: a session was closed: " + tail.decode(errors="replace"))
        tail = (tail + got)[-4096:]


def wait_empty(server):
    """Until the server has no other session left: the next target needs the room."""
    deadline = time.monotonic() + 60
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    while subprocess.run(**psql(server.port, count), capture_output=True, text=True).stdout.strip() != "1":
        if time.monotonic() > deadline:
            sys.exit("bench: the server's sessions do not end")
        time.sleep(0.2)


def idle_bytes(target, server):
    wait_empty(server)
    clients = []
    sizes = {}
    for count in (100, 1000):
        while len(clients) < count:
            clients.append(login(target.port))
        time.sleep(0.5)
        sizes[count] = target.pss()
    for client in clients:
        client.close()
    return (sizes[1000] - sizes[100]) / 900


# ---- the tables ------------------------------------------------------------------------------------------------------


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def table(title, heads, rows):
    print(f"\n{title}")
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  " + "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())


def measure(options, targets, cells, meters, label):
    """{(target, cell): [value per repetition]}, interleaved."""
    figures, tps = {}, {}
    for repetition in range(options.reps):
        for cell in cells:
            order = list(targets)
            random.shuffle(order)
            for target in order:
                value, rate = per_transaction(target, *cell, options.seconds, meters(target))
                figures.setdefault((target.name, cell), []).append(value)
                tps.setdefault((target.name, cell), []).append(rate)
            progress(f"{label}: repetition {repetition + 1} of {options.reps}, {cell[0]} clients, {cell[1]}")
    progress("")
    return figures, tps


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:<78}", end="" if text else "\r", file=sys.stderr, flush=True)


def show(title, figures, targets, cells, scale, digits):
    heads = ["target"] + [f"{clients} {mode}" for clients, mode in cells]
    rows = [[t.name] + [spread([v * scale for v in figures[t.name, c]], digits) for c in cells] for t in targets]
    table(title, heads, rows)


def paired_ratios(figures, over, under, cells):
    return [a / b for cell in cells for a, b in zip(figures[over, cell], figures[under, cell]) if b > 0]


def gate(results, name, value, floor=None):
    """A floor above the bound says that the machine is too busy to judge: pgseek must then stay beside the floor."""
    bound = GATES[name]
    verdict = "PASS" if value <= bound else "FAIL"
    if verdict == "FAIL" and floor and floor > bound and value <= floor * 1.05:
        verdict = "BUSY"
        name += f" (the splicer needs {floor:.2f})"
    results.append((verdict, name, f"{value:.3f}" if value < 100 else f"{value:.0f}", f"<= {bound}"))


def bench_cpu(options, targets, cells, results):
    figures, tps = measure(options, targets, cells, cpu_meter, "CPU")
    proxies = [t for t in targets if t.process]
    show("proxy CPU per transaction, us: median (smallest-largest)", figures, proxies, cells, 1e-3, 2)
    show("transactions per second", tps, targets, cells, 1, 0)
    busy = [cell for cell in cells if cell[0] >= 8]
    names = {t.name for t in targets}
    for peer, name in (("splicer", "the splicer"), ("pgbouncer", "PgBouncer")):
        if peer not in names or not busy:
            continue
        ratios = paired_ratios(figures, "pgseek", peer, busy)
        print(f"pgseek / {peer}, paired: {spread(ratios, 3)}, n={len(ratios)}")
        gate(results, f"CPU per transaction, to {name}, 8 and 64 clients", statistics.median(ratios))


def bench_calls(options, targets, cells, results):
    meter = call_meter()
    if not meter:
        skip("system calls", "neither perf nor strace can count them here")
        return
    cells = [cell for cell in cells if cell[0] in (1, 64)]
    proxies = [t for t in targets if t.process]
    fewer = argparse.Namespace(reps=min(options.reps, 2), seconds=options.seconds)  # they hardly vary
    figures, _ = measure(fewer, proxies, cells, meter, "calls")
    show("system calls per transaction", figures, proxies, cells, 1, 2)
    for clients, plural in ((1, "1 client"), (64, "64 clients")):
        values = [v for cell in cells if cell[0] == clients for v in figures["pgseek", cell]]
        floor = [v for cell in cells if cell[0] == clients for v in figures.get(("splicer", cell), [])]
        if values:
            gate(results, f"system calls per transaction, {plural}", statistics.median(values),
                 statistics.median(floor) if floor else None)


def bench_idle(options, targets, cells, results):
    figures = {t.name: idle_bytes(t, targets[0]) for t in targets if t.process}
    table("bytes per idle session (slope of the proportional share, 100 to 1000 sessions)", ["target", "bytes"],
          [[name, f"{value:.0f}"] for name, value in figures.items()])
    gate(results, "bytes per idle session", figures["pgseek"])


def bench_page(options, targets, cells, results):
    """A tagged page whose plan is known is one round trip: a wait, a read and a write each way. The seventh call is
    OpenSSL's, which asks for its process before it draws the cursor's nonce."""
    meter = call_meter()
    if not meter:
        skip("tagged page", "neither perf nor strace can count system calls here")
        return
    target = next(t for t in targets if t.name == "pgseek")
    rows = []
    for kind, tag in (("untagged", ""), ("tagged", "/* pgseek */")):
        sql = f"SELECT aid, abalance FROM pgbench_accounts ORDER BY aid LIMIT 20 {tag};\n"
        script = options.work.write(f"{kind}.sql", sql)
        calls, _ = per_transaction(target, 1, "prepared", options.seconds, meter(target), ("-f", script))
        cpu, tps = per_transaction(target, 1, "prepared", options.seconds, cpu_meter(target), ("-f", script))
        rows.append([kind, f"{calls:.2f}", f"{cpu / 1000:.1f}", f"{tps:.0f}"])
    table("a page of 20 rows, 1 client, prepared", ["page", "system calls", "proxy CPU us", "pages per second"], rows)
    gate(results, "system calls per tagged page, 1 client", calls)


PARTS = {"page": bench_page, "cpu": bench_cpu, "calls": bench_calls, "idle": bench_idle}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repetition of short runs: does it work at all")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--modes", default="simple,prepared")
    parser.add_argument("--only", default="cpu,calls,page,idle")
    parser.add_argument("--seed", type=int, default=None, help="of the shuffling")
    options = parser.parse_args()
    random.seed(options.seed)
    if options.quick:
        options.reps, options.seconds = 1, 1
    work = options.work = Work()
    server = start_server(work)
    targets = [server, start_pgbouncer(work, server), start_splicer(work, server), start_pgseek(work, server)]
    targets = [target for target in targets if target]
    cells = [(int(clients), mode) for clients in options.clients.split(",") for mode in options.modes.split(",")]
    results = []
    for part in options.only.split(","):
        PARTS[part](options, targets, cells, results)
    table("gates", ["", "what", "measured", "bound"], results)
    sys.exit(1 if any(result[0] == "FAIL" for result in results) else 0)


if __name__ == "__main__":
    main()
