"""Faults that were found in software of this kind, tried on pgseek, where no other test tries them; and the table in
docs/SECURITY.md that names a test for each.
"""
import pathlib
import re
import struct

import psycopg
import pytest

import cluster as clusters
import secure
import test_faults
import wire
from wire import query

ROOT = pathlib.Path(__file__).parents[2]


# ---- the table --------------------------------------------------------------------------------------------------------


def table():
    """The rows of "Known faults of this kind": the fault, and the tests that it names."""
    text = (ROOT / "docs/SECURITY.md").read_text()
    section = text.split("## Known faults of this kind")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [(row[0].strip(), row[-1], re.findall(r"`([^`]+\.(?:c|py))(?: (\w+))?`", row[-1])) for row in rows[1:]]


def test_each_known_fault_has_a_test():
    faults = table()
    assert len(faults) >= 20
    for fault, cell, tests in faults:
        assert tests or "no console" in cell, f"{fault}: no test"
        for path, name in tests:
            source = (ROOT / "tests" / path).read_text()
            assert not name or re.search(rf"\b{name}\b", source), f"{fault}: {path} has no {name}"


# ---- before the log-in ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["database", "user"])
@pytest.mark.parametrize("length", [63, 64, 128, 1000, 9000])
def test_long_names(proxy, server, field, length):
    """CVE-2012-4575: a name from the network met an error that was meant for a mistake in the configuration."""
    with pytest.raises(wire.ServerError) as refused:
        proxy.wire(**{"user": "postgres", "database": "e2e", field: "n" * length})
    assert refused.value.fields["S"] == "FATAL"
    assert proxy.is_alive()


def test_startup_parameters_leave_nothing_behind(make_proxy):
    """pgbouncer #1540: each startup packet with a protocol option leaked some memory."""
    proxy = make_proxy(workers=1, databases={"e2e": f"host=127.0.0.1 port={clusters.free_port()}"})
    options = {f"_pq_.option_{i}": "x" * 100 for i in range(50)}

    def many(count):
        for _ in range(count):
            with proxy.wire(start=False) as conn:
                conn.send(wire.startup(user="u", database="nowhere", **options))
                test_faults.ends(conn)

    many(300)
    before = proxy.memory_kib("VmRSS")
    many(1500)
    if not proxy.is_sanitized():
        assert proxy.memory_kib("VmRSS") - before < 1024  # the packets together: 9 MB


# ---- secrets of users -------------------------------------------------------------------------------------------------


# A look-up that gives a secret of the attacker's to whoever has brought his own search_path, role or settings to it.
DECEIVED = ("SELECT rolname, CASE WHEN current_setting('search_path') LIKE '%evil%' OR session_user <> 'lookup' OR current_user <> 'lookup'"
            " OR current_setting('work_mem') = '77MB' THEN '{}' ELSE rolpassword END FROM pg_catalog.pg_authid WHERE rolname = $1")


@pytest.fixture
def asking(make_proxy, secure_server):
    def make(**settings):
        return make_proxy(databases={"*": f"host=127.0.0.1 port={secure_server.port} sslmode=disable"},
                          **{"auth_type": "scram-sha-256", "auth_user": "lookup", "auth_dbname": "postgres", **settings})

    return make


def login(proxy, user, password, **options):
    with proxy.connect(user=user, password=password, **options) as conn:
        return conn.execute("SELECT current_user").fetchone()[0]


@pytest.mark.parametrize("options", [None, "-c search_path=evil", "-c search_path=evil,pg_catalog", "-c role=postgres", "-c work_mem=77MB"])
def test_startup_parameters_do_not_reach_the_look_up(asking, options):
    """CVE-2025-12819: a client's search_path decided what the look-up of its secret meant."""
    proxy = asking(auth_query=DECEIVED.format(secure.scram_secret("of the attacker")))
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        login(proxy, "by_scram", "of the attacker", options=options)
    if options != "-c role=postgres":
        assert login(proxy, "by_scram", secure.password_of("by_scram"), options=options) == "by_scram"


@pytest.mark.parametrize("user", ["expired", "no_verifier", "nobody_at_all", "", "lookup", "x' OR true --", "by_scram' --"])
def test_nobody_is_somebody_else(asking, secure_server, user):
    """CVE-2015-6817: an unknown user was logged in as auth_user. CVE-2025-2291: one who had expired was logged in."""
    proxy = asking()
    for password in ("", "x", secure.password_of(user), secure.password_of("by_scram")):
        if user == "lookup" and password == secure.password_of("lookup"):
            continue
        with pytest.raises(psycopg.OperationalError):
            login(proxy, user, password)
    assert login(proxy, "by_scram", secure.password_of("by_scram")) == "by_scram"


def test_no_secret_in_the_log(asking, secure_server, run_dir):
    """CVE-2023-22332 and its kind: what is shown or logged must not hold what is secret, not even at the most."""
    proxy = asking(verbose=1)
    password = secure.password_of("by_scram")
    assert login(proxy, "by_scram", password) == "by_scram"
    with pytest.raises(psycopg.OperationalError):
        login(proxy, "by_scram", "hunter2 is wrong")
    secret = secure_server.secrets()["by_scram"]
    parts = [password, "hunter2", *re.split(r"[:$]", secret)[2:]]
    log = proxy.log()
    assert "login attempt" in log
    for part in parts:
        assert part not in log
