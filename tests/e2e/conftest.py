"""Fixtures: one PostgreSQL and one pgseek for the whole run (or for each of its processes), and factories for those of a
single test.

`server` and `proxy` are endpoints (cluster.py): connect() gives psycopg 3, wire() raw messages, psql() and run() the
programs. The proxy's exit code and its log are checked when it ends; any sanitizer report fails the run.
"""
import pathlib
import shutil
import signal
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import certificates as certs  # noqa: E402
import cluster as clusters  # noqa: E402
import clients  # noqa: E402
import joins  # noqa: E402
import secure  # noqa: E402


TEST_SECONDS = 180


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that waits for ever fails, and the run goes on."""
    def too_long(*_):
        raise TimeoutError(f"{item.name} has run for {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_sessionfinish(session):
    """One of several processes hands its counts to the one that reports."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["joins"] = session.config.stash.get(joins.OUTCOMES, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    counts = node.config.stash.setdefault(joins.OUTCOMES, {})
    for name, count in getattr(node, "workeroutput", {}).get("joins", {}).items():
        counts[name] = counts.get(name, 0) + count


def pytest_terminal_summary(terminalreporter, config):
    """How many orders of random joins were claimed, and why the others were not."""
    outcomes = config.stash.get(joins.OUTCOMES, {})
    if outcomes:
        terminalreporter.section("joins")
        terminalreporter.write_line(", ".join(f"{count} {name}" for name, count in sorted(outcomes.items(), key=lambda item: -item[1])))


@pytest.fixture(scope="session")
def run_dir():
    """A private folder that the server's user can reach, with a path short enough for sockets in it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pgseek-e2e-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def certificates(run_dir):
    """certificates["server"].cert and .key, certificates.ca: see the table in certificates.py."""
    return certs.Certificates(run_dir / "certificates")


@pytest.fixture(scope="session")
def server(run_dir):
    """PostgreSQL itself: the direct way."""
    server = clusters.Cluster(run_dir / "server")
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def secure_server(run_dir, certificates):
    """A PostgreSQL with TLS and a user for each method, see secure.py."""
    server = secure.SecureCluster(run_dir / "secure", certificates)
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def proxies(run_dir, secure_server):
    """proxies["file"] and others, in front of `secure_server`: see secure.Proxies."""
    proxies = secure.Proxies(run_dir / "proxies", secure_server)
    yield proxies
    clients.stop_programs()
    proxies.stop()


@pytest.fixture(scope="session")
def proxy_of_the_run(server, run_dir):
    proxy = clusters.Proxy(run_dir / "proxy", server).start()
    yield proxy
    proxy.stop()


@pytest.fixture
def proxy(proxy_of_the_run):
    """pgseek in front of `server`, shared by all tests; it must outlive each of them."""
    assert proxy_of_the_run.is_alive(), f"pgseek is not running:\n{proxy_of_the_run.log()[-4000:]}"
    yield proxy_of_the_run
    assert proxy_of_the_run.is_alive(), f"pgseek died in this test:\n{proxy_of_the_run.log()[-4000:]}"


@pytest.fixture
def make_proxy(server, run_dir):
    """make_proxy(databases=None, **settings): a pgseek of this test's own, stopped and checked at its end."""
    started = []

    def make(databases=None, **settings):
        proxy = clusters.Proxy(pathlib.Path(tempfile.mkdtemp(prefix="p", dir=run_dir)), server)
        started.append(proxy)
        return proxy.start(databases, **settings)

    yield make
    for proxy in started:
        proxy.stop()


@pytest.fixture(params=["direct", "proxy"])
def either(request):
    """The test runs twice: against PostgreSQL itself, and through pgseek. What holds directly must hold through it."""
    return request.getfixturevalue("server" if request.param == "direct" else "proxy")


@pytest.fixture
def conn(proxy):
    """One raw session through the proxy ..."""
    with proxy.wire() as conn:
        yield conn


@pytest.fixture
def direct(server):
    """... and one with the server itself."""
    with server.wire() as conn:
        yield conn
