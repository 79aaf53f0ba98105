"""What is long and legal: untagged it passes whatever its size, byte for byte; where a page needs it, the page is passed
and the session goes on."""
import struct

import pytest

import cluster
import hostile
import versions
import wire
from hostile import ANSWER, AUTH_OK, KEY, READY, STATUS, Hear
from wire import bind, describe, execute, extended, message, parse, query, sync

LONG_STATUS = message("S", b"search_path\0" + b"s" * 200_000 + b"\0")
MANY_COLUMNS = message("T", struct.pack("!H", 65535) + 65535 * (b"c" * 200 + b"\0" + bytes(18)))
MANY_FORMATS = message("G", b"\0" + struct.pack("!H", 65535) + bytes(2 * 65535))
END = message("C", b"SELECT 0\0") + READY

# What the client asks behind the log-in, and what a server then says: none of it is a fault.
REPLIES = {
    "a status in the log-in": ([], [AUTH_OK, LONG_STATUS, KEY, READY]),
    "a status in an answer": ([query("SELECT 1")], [AUTH_OK, KEY, READY, Hear, ANSWER[:50], ANSWER[50:-6], LONG_STATUS, READY]),
    "a status in front of a row": ([query("SELECT 1")], [AUTH_OK, KEY, READY, Hear, LONG_STATUS, ANSWER]),
    "a description": ([query("SELECT 1")], [AUTH_OK, KEY, READY, Hear, MANY_COLUMNS, END]),
    "a description of a portal": ([describe("P"), execute(), sync()], [AUTH_OK, KEY, READY, Hear, MANY_COLUMNS, END]),
    "the formats of a COPY": ([query("COPY t FROM STDIN")], [AUTH_OK, KEY, READY, Hear, MANY_FORMATS, END]),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_long_reply_passes(make_proxy, name):
    asked, said = REPLIES[name]
    server = hostile.Server(*said)
    proxy = make_proxy({"*": f"host=127.0.0.1 port={server.port}"})
    expected = b"".join(step for step in said if step is not Hear)
    greeting = expected[:expected.index(READY) + len(READY)]
    with proxy.wire(start=False) as conn:
        conn.send(wire.startup(user="postgres", database="e2e"))
        assert conn.read_bytes(len(greeting)) == greeting
        conn.send(*asked)
        assert conn.read_bytes(len(expected) - len(greeting)) == expected[len(greeting):]
    server.close()


def test_a_status_between_two_answers(make_proxy):
    """A setting that was changed elsewhere (a reload of the server's) is reported unasked."""
    server = hostile.Server(AUTH_OK, STATUS, KEY, READY, LONG_STATUS, Hear, ANSWER)
    proxy = make_proxy({"*": f"host=127.0.0.1 port={server.port}"})
    with proxy.wire() as conn:
        assert conn.read().raw() == LONG_STATUS
        assert conn.rows(query("SELECT 1")) == [[b"1"]]
    server.close()


def test_a_table_of_1600_columns(server, proxy):
    names = [f"{'c' * 58}{i:05}" for i in range(1600)]
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS widest")
        conn.execute(f"CREATE TABLE widest ({', '.join(name + ' bool' for name in names)})")
    messages = (query("TABLE widest"), extended("TABLE widest"), query("COPY widest TO STDOUT"),
                query("COPY widest FROM STDIN") + wire.copy_done(), parse("TABLE widest", "w") + describe("S", "w") + sync())
    answers = []
    for endpoint in (server, proxy):
        with endpoint.wire() as conn:
            answers.append([[reply.raw() for reply in conn.ask(asked)] for asked in messages])
    assert answers[0] == answers[1]


def test_65535_parameters(server, proxy):
    sql = "SELECT " + "::int8 + ".join(f"${n}" for n in (1, 65535))
    asked = [parse(sql, oids=[20] * 65535), bind(["1"] * 65535), describe("S"), describe("P"), execute(), sync()]
    answers = []
    for endpoint in (server, proxy):
        with endpoint.wire() as conn:
            answers.append([reply.raw() for reply in conn.ask(*asked)])
    assert answers[0] == answers[1] and len(answers[0]) > 5


def test_a_large_bind_behind_a_page(proxy, posts):
    """The unnamed statement was a page, and is again if what follows fails: the answers decide, not the size."""
    value = "v" * (65 * 2**20)
    with proxy.wire() as conn:
        page = [parse(f"SELECT id FROM {posts} ORDER BY id LIMIT 2 /* pgseek */"), bind(), execute(), sync()]
        conn.ask(*page)  # the plan is there: nothing holds the next one
        conn.send(*page, *[parse("SELECT length($1)"), bind([value]), execute(), sync()])
        answer = conn.ready(2)
        assert [reply.row() for reply in answer if reply.kind == "D"] == [[b"1"], [b"2"], [str(len(value)).encode()]]


@pytest.fixture
def posts(server):
    with server.connect() as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS long_posts AS SELECT i AS id FROM generate_series(1, 10) i")
        conn.execute("ALTER TABLE long_posts DROP CONSTRAINT IF EXISTS long_posts_pkey, ADD PRIMARY KEY (id)")
    return "long_posts"


@pytest.mark.parametrize("protocol", ["simple", "extended"])
@pytest.mark.parametrize("size", [100_000, 3 * 2**20])
def test_a_page_under_a_long_search_path(proxy, posts, size, protocol):
    """What cannot be held is not known, and the page is passed: with its rows, and with the session."""
    with proxy.wire() as conn:
        path = "public" + ", s1234567" * (size // 10)
        assert wire.kinds(conn.ask(query(f"SET search_path = {path}"))).split()[0] == "C"
        for _ in range(2):
            answer = wire.run(conn, f"SELECT id FROM {posts} ORDER BY id LIMIT 2 /* pgseek */", protocol)
            assert [reply.row() for reply in answer if reply.kind == "D"] == [[b"1"], [b"2"]], wire.kinds(answer)
        conn.ask(query("RESET search_path"))
        answer = wire.run(conn, f"SELECT id FROM {posts} ORDER BY id LIMIT 2 /* pgseek */", protocol)
        assert wire.statuses(answer)["pgseek.action"] == "first"


def test_an_error_that_quotes_the_clients_value(server, proxy, posts):
    """A page's Bind is ours, and what the server says of the client's value is the client's."""
    value = "x" * (2 * 2**20)
    said = []
    for endpoint in (server, proxy):
        with endpoint.wire() as conn:
            answer = conn.ask(extended(f"SELECT id FROM {posts} WHERE id > $1 ORDER BY id LIMIT 2 /* pgseek */", [value]))
            said.append([reply.fields() for reply in answer if reply.kind == "E"][0])
            assert conn.rows(query("SELECT 1")) == [[b"1"]]
    assert said[0]["M"] == said[1]["M"] and said[1]["C"] == "22P02" and len(said[1]["M"]) > len(value)


@pytest.fixture(scope="module")
def newest(run_dir):
    """PostgreSQL 18, which reports search_path."""
    if not versions.native(18):
        pytest.skip("PostgreSQL 18 is not installed (npm ci in tests/e2e/servers)")
    server = cluster.Cluster(run_dir / "newest", versions.programs(18, run_dir))
    try:
        yield server.start()
    finally:
        server.stop()


def test_a_reported_search_path(newest, make_proxy):
    """It comes as it is, and the next page goes by it: the same name is another table."""
    proxy = make_proxy({"*": f"host={newest.host} port={newest.port}"})
    with newest.connect() as conn:
        for schema, first in (("near", 1), ("far", 101)):
            conn.execute(f"CREATE SCHEMA {schema}")
            conn.execute(f"CREATE TABLE {schema}.posts AS SELECT i AS id FROM generate_series({first}, {first} + 9) i")
            conn.execute(f"ALTER TABLE {schema}.posts ADD PRIMARY KEY (id)")
    page = query("SELECT id FROM posts ORDER BY id LIMIT 1 /* pgseek */")
    with proxy.wire() as conn:
        for schema, first in (("near", b"1"), ("far", b"101"), ("near", b"1")):
            path = schema + ", s1234567" * 20_000
            answer = conn.ask(query(f"SET search_path = {path}"))
            assert wire.statuses(answer)["search_path"].count(", ") == 20_000
            assert conn.rows(page) == [[first]]
