"""Clients that go while something is under way: what they are still owed, what the server is told, and that a server which
says nothing keeps nobody's place."""
import random
import socket

import pytest

import hostile
import wire
from cluster import wait_until
from hostile import WELCOME, Deaf, Hear
from wire import bind, execute, extended, parse, query, sync

PAGE = "SELECT id FROM leaving ORDER BY id LIMIT 3 /* pgseek */"


@pytest.fixture(scope="module", autouse=True)
def leaving(server):
    with server.connect() as conn:
        conn.execute("CREATE TABLE leaving AS SELECT i AS id FROM generate_series(1, 10) i")
        conn.execute("ALTER TABLE leaving ADD PRIMARY KEY (id)")


def said_all(conn, *messages):
    """Sends, says that this was all, and returns every row and how it ended."""
    conn.send(*messages)
    conn.sock.shutdown(socket.SHUT_WR)
    answer = []
    try:
        while True:
            answer.append(conn.read())
    except EOFError:
        return [reply.row()[0] for reply in answer if reply.kind == "D"], answer[-1].kind if answer else None


# Each asks for facts, holds what is behind it, or is run in several rounds. The text is new each time, so no plan is at hand.
ASKED = {
    "a page": lambda n: [query(f"{PAGE} -- {n}")],
    "a page, extended": lambda n: [extended(f"{PAGE} -- {n}")],
    "a page behind a transaction": lambda n: [query("BEGIN"), query(f"{PAGE} -- {n}"), query("COMMIT")],
    "a page and its total": lambda n: [query(f"SELECT id FROM leaving ORDER BY id LIMIT 3 /* pgseek total=exact */ -- {n}")],
    "a statement in front of it": lambda n: [extended(f"{PAGE} -- {n}a") + extended(f"{PAGE} -- {n}b")],
}


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize("name", ASKED)
def test_a_page_for_a_client_that_says_no_more(either, name, unix):
    with either.wire(unix=unix) as conn:
        rows, end = said_all(conn, *ASKED[name](random.randrange(10**9)))
        assert rows[:3] == [b"1", b"2", b"3"] and len(rows) % 3 == 0 and end == "Z"
        assert len(rows) == (6 if name == "a statement in front of it" else 3)


def test_a_group_without_its_end(either):
    """Its Sync will not come, so its answers need not: the connection ends."""
    with either.wire() as conn:
        conn.ask(extended(f"{PAGE} -- first"))
        assert said_all(conn, parse(f"{PAGE} -- first"), bind(), execute()) == ([], None)


def test_a_slow_reader_that_says_no_more(either):
    for size in (100_000, 1_000_000, 5_000_000):
        with either.wire() as conn:
            rows, end = said_all(conn, query(f"SELECT repeat('x', 1000) FROM generate_series(1, {size // 1000})"))
            assert len(rows) == size // 1000 and end == "Z"


def test_the_log_in_of_a_client_that_says_no_more(either):
    with either.wire(start=False) as conn:
        rows, end = said_all(conn, wire.startup(user="postgres", database="e2e"), query("SELECT 'answer'"))
        assert rows == [b"answer"] and end == "Z"


@pytest.mark.parametrize("unix", [False, True])
def test_a_server_that_checks_notices(server, either, unix):
    """client_connection_check_interval ends what nobody waits for, as without a proxy."""
    conn = either.wire(unix=unix)
    conn.ask(query("SET client_connection_check_interval = '100ms'"))
    conn.send(query("SELECT pg_sleep(600)"))
    running = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
    with server.connect() as watch:
        wait_until(lambda: watch.execute(running, (conn.pid,)).fetchone(), "the query does not run")
        conn.close()
        wait_until(lambda: not watch.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (conn.pid,)).fetchone(),
                   "the query goes on")


# What a client leaves behind with a server that never answers, and never closes.
LEFT = {
    "a query": [query("SELECT 1")],
    "a pipeline": [parse("SELECT 1"), sync(), query("SELECT 2"), sync()],
    "half a message": [query("SELECT 1"), query("SELECT 2")[:7]],
    "a page": [query(PAGE)],
    "what waits behind a page": [query(PAGE), 1000 * query("SELECT 1")],
}


@pytest.mark.parametrize("name", LEFT)
def test_a_silent_server_keeps_no_place(make_proxy, name):
    """At once over a Unix socket (ten seconds for what waits); over TCP when the client's system says that it is gone."""
    deaf = hostile.Server(WELCOME, Hear, Deaf)
    proxy = make_proxy({"*": f"host=127.0.0.1 port={deaf.port}"}, max_client_conn=3)  # one for the harness's own probe
    for unix in (True, False):
        conn = proxy.wire(unix=unix)
        if not unix:  # its end is forgotten in a second, not in a minute
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)
        conn.send(*LEFT[name])
        conn.close()
    wait_until(lambda: proxy.log().count("client closed the connection") == 2, "places are kept", 60)
    with proxy.wire(), proxy.wire(), proxy.wire():
        deaf.close()
