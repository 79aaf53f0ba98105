"""Every limit that a client can reach: one clear error, one line in the log, and all is as before when it leaves."""
import psycopg
import pytest

import cluster as clusters
import wire
from wire import query


def lines(proxy, text):
    return [line for line in proxy.log().splitlines() if text in line]


def wait_lines(proxy, text, count=1):
    clusters.wait_until(lambda: len(lines(proxy, text)) >= count, f"the log does not say: {text}")
    found = lines(proxy, text)
    assert len(found) == count, found


def refused(proxy, **options):
    """The fields of the FATAL that a login ends with."""
    with pytest.raises(wire.ServerError) as caught:
        proxy.wire(**options).close()
    assert caught.value.fields["S"] == "FATAL"
    return caught.value.fields


# ---- clients by name --------------------------------------------------------------------------------------------------

# A limit of one, who is there already, and who wants in.
ADMISSION = [
    ("max_db_client_connections", {"database": "e2e"}, {"database": "e2e"}, False),
    ("max_db_client_connections", {"database": "e2e"}, {"database": "postgres"}, True),  # both served by the line for *
    ("max_db_client_connections", {"database": "e2e"}, {"database": "alias"}, True),  # the same database, another name
    ("max_db_client_connections", {"database": "alias"}, {"database": "alias"}, False),
    ("max_db_client_connections", {"database": "e2e", "user": "app"}, {"database": "e2e"}, False),
    ("max_user_client_connections", {"user": "app"}, {"user": "app"}, False),
    ("max_user_client_connections", {"user": "app"}, {"user": "postgres"}, True),
    ("max_user_client_connections", {"user": "app", "database": "postgres"}, {"user": "app"}, False),
]


@pytest.fixture(scope="module")
def narrow(server, run_dir):
    """A proxy that takes one client of each database and of each user; `alias` leads to the database e2e."""
    made = {}

    def make(limit):
        if limit not in made:
            proxy = clusters.Proxy(run_dir / limit, server)
            made[limit] = proxy.start({"alias": f"host={server.host} port={server.port} dbname=e2e",
                                       "*": f"host={server.host} port={server.port}"}, **{limit: 1})
        return made[limit]

    yield make
    for proxy in made.values():
        proxy.stop()


@pytest.mark.parametrize("limit, there, wants_in, admitted", ADMISSION)
def test_clients_are_counted_by_name(narrow, limit, there, wants_in, admitted):
    proxy = narrow(limit)
    before = len(lines(proxy, limit))
    with clusters.wait_until(lambda: _wire(proxy, **there), "the place is not given back") as conn:
        if admitted:
            proxy.wire(**wants_in).close()
            return
        fields = refused(proxy, **wants_in)
        assert fields["C"] == "53300" and limit in fields["M"]
        wait_lines(proxy, limit, before + 1)
        # A cancel request is no client of a database.
        with proxy.wire(start=False) as canceller:
            canceller.send(wire.cancel_request(conn.pid, conn.secret))
            assert canceller.is_closed()
        assert conn.rows(query("SELECT 1")) == [[b"1"]]


def _wire(proxy, **options):
    try:
        return proxy.wire(**options)
    except wire.ServerError as error:
        assert error.sqlstate == "53300"
        return None


# How a session can end. Whichever way, its place is another's.
ENDS = {
    "terminate": lambda conn, server: conn.send(wire.terminate()),
    "close": lambda conn, server: conn.close(),
    "reset": lambda conn, server: conn.reset(),
    "violation": lambda conn, server: conn.send(b"y\0\0\0\4"),
    "terminated": lambda conn, server: server.psql("-c", f"SELECT pg_terminate_backend({conn.pid})"),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_place_is_given_back(narrow, server, how):
    proxy = narrow("max_user_client_connections")
    for _ in range(3):
        conn = clusters.wait_until(lambda: _wire(proxy, user="app"), "the place is not given back")
        ENDS[how](conn, server)
        clusters.wait_until(lambda: _wire(proxy, user="app"), "the place is not given back").close()
        conn.close()


@pytest.mark.parametrize("options, sqlstate", [({"database": "nowhere"}, "3D000"), ({"user": "nobody"}, "28000")])
def test_a_failed_login_gives_its_place_back(narrow, options, sqlstate):
    proxy = narrow("max_user_client_connections")
    for _ in range(3):
        clusters.wait_until(lambda: _sqlstate(proxy, **options) == sqlstate, "the place is not given back")


def _sqlstate(proxy, **options):
    return refused(proxy, **{"user": "app", **options})["C"]


def test_reload_changes_the_limits_at_once(make_proxy):
    """Sessions that are there stay; the next one meets the new limit, also where it is below what is there."""
    proxy = make_proxy()
    with proxy.wire(user="app") as first, proxy.wire(user="app") as second:
        for limit, admitted in ((1, False), (3, True), (2, False), (0, True)):
            proxy.settings["max_user_client_connections"] = limit
            proxy.write_conf()
            before = len(lines(proxy, "reloaded"))
            proxy.reload()
            wait_lines(proxy, "reloaded", before + 1)
            # Each worker takes the new settings at its own next turn.
            clusters.wait_until(lambda: (_leave(_wire(proxy, user="app")) is not None) == admitted, f"limit {limit}")
        for conn in (first, second):
            assert conn.rows(query("SELECT 1")) == [[b"1"]]


def _leave(conn):
    if conn:
        conn.close()
    return conn


# ---- the log ----------------------------------------------------------------------------------------------------------

# What a stranger can make the proxy write, and what is said of the lines that were left out.
FLOODS = {
    "an unknown database": (wire.startup(user="x", database="nowhere"), "no such database", "ended before"),
    "garbage": (b"\0\0\0\x07....", "invalid length", "ended before"),
    "cancel": (wire.cancel_request(1, b"1234"), "closing because: cancel", "cancel requests"),
    "login attempts": (wire.startup(user="nobody", database="e2e"), "login attempt: ", "login attempts"),
}
BURST = 200


@pytest.mark.parametrize("name", FLOODS)
def test_a_stranger_cannot_fill_the_log(make_proxy, name):
    packet, line, summary = FLOODS[name]
    proxy = make_proxy(databases={"e2e": f"host=127.0.0.1 port={clusters.free_port()}"})
    for _ in range(2 * BURST):
        with proxy.wire(start=False) as conn:
            conn.send(packet)
            assert conn.is_closed()

    def left_out():
        """All lines but those that were written were counted."""
        return sum(int(found.split("WARNING ")[1].split()[0]) for found in lines(proxy, "were not logged") if summary in found)

    clusters.wait_until(lambda: left_out() + len(lines(proxy, line)) == 2 * BURST, "some lines were not even counted")
    assert left_out() > 0


def test_logins_are_all_logged(make_proxy):
    proxy = make_proxy()
    for _ in range(2 * BURST):
        proxy.wire().close()
    clusters.wait_until(lambda: len(lines(proxy, "login attempt: ")) == 2 * BURST, "not all are in the log")
    assert not lines(proxy, "were not logged")


# ---- plans ------------------------------------------------------------------------------------------------------------


def test_plans_of_large_statements_take_bounded_memory(make_proxy, server):
    """300 statements whose plans would take about 300 MB."""
    server.psql("-c", "DROP TABLE IF EXISTS limited; CREATE TABLE limited AS SELECT i AS id FROM generate_series(1, 30) i; ALTER TABLE limited ADD PRIMARY KEY (id)")
    proxy = make_proxy(plan_cache_memory="1MB", workers=1)
    with proxy.wire() as conn:
        def page(number):
            numbers = ", ".join(str(i % 1000) for i in range(3500))
            return conn.rows(query(f"SELECT id FROM limited WHERE id IN ({numbers}) AND id <> -{number} ORDER BY id LIMIT 2 /* pgseek */"))

        for number in range(20):
            assert page(number) == [[b"1"], [b"2"]]
        before = proxy.memory_kib("VmRSS")
        for number in range(20, 320):
            page(number)
        if not proxy.is_sanitized():
            assert proxy.memory_kib("VmRSS") - before < 32 * 1024
