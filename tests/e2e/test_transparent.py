"""Untagged traffic: what a client sends is what the server gets, and back, byte for byte.

Each conversation runs through recorder, pgseek, recorder, PostgreSQL, once as it is and once with both recorders
forwarding a few bytes at a time, so that every message arrives in pieces.
"""
import os
import random

import psycopg
import pytest

import cluster
import wire
from recorder import Recorder
from wire import (bind, close, copy_data, copy_done, copy_fail, describe, execute, extended, flush, function_call, parse,
                  query, sync, terminate)


def spoken(tape):
    """A client's bytes up to its Terminate: pg_basebackup's two processes both say goodbye on one connection."""
    tape = bytes(tape)
    while tape.endswith(2 * terminate()):
        tape = tape[:-len(terminate())]
    return tape


class Tape(cluster.Endpoint):
    """pgseek between two recorders; clients connect to the front one."""

    def __init__(self, directory, server, step):
        self.back = Recorder(server.host, server.port, step)
        self.proxy = cluster.Proxy(directory, server)
        self.proxy.start(databases={"*": f"host=127.0.0.1 port={self.back.port}"})
        self.front = Recorder(self.proxy.host, self.proxy.port, step)
        self.port = self.front.port

    def close(self):
        self.front.close()
        self.back.close()
        self.proxy.stop()

    def check(self):
        """What went into pgseek came out of it, on both ways, in every connection since the last call."""
        front, back = self.front.take(), self.back.take()
        assert front, "nothing was recorded"
        assert sorted(spoken(r.client) for r in front) == sorted(spoken(r.client) for r in back)
        assert sorted(bytes(r.server) for r in front) == sorted(bytes(r.server) for r in back)


@pytest.fixture(scope="module", params=[None, 7, 1], ids=["whole", "by7", "by1"])
def tape(request, server, run_dir):
    tape = Tape(run_dir / f"tape{request.param}", server, request.param)
    yield tape
    tape.close()


@pytest.fixture(scope="module")
def whole_tape(server, run_dir):
    tape = Tape(run_dir / "tape", server, None)
    yield tape
    tape.close()


# ---- conversations in raw messages -----------------------------------------------------------------------------------


def simple(conn):
    conn.ask(query("SELECT 1 AS one, 'two' AS two, NULL"))
    conn.ask(query("SELECT 1; SELECT 2; ; SELECT 3"), )
    conn.ask(query(""))
    conn.ask(query("-- nothing but a comment"))
    conn.ask(query("CREATE TEMP TABLE t (a int, b text); INSERT INTO t SELECT i, 'x' FROM generate_series(1, 100) i"))
    conn.ask(query("SELECT * FROM t ORDER BY a LIMIT 20 OFFSET 40"))
    conn.ask(query("UPDATE t SET b = 'y' WHERE a < 10 RETURNING a"))
    conn.ask(query("SET application_name = 'tape'"))
    conn.ask(query("SET LOCAL work_mem = '1MB'"))
    conn.ask(query("SHOW work_mem"))
    conn.ask(query("RESET ALL"))
    conn.ask(query("DO $$ BEGIN RAISE NOTICE 'seen'; RAISE WARNING 'and %', 1; END $$"))


def transactions(conn):
    conn.ask(query("BEGIN"))
    conn.ask(query("SAVEPOINT a"))
    conn.ask(query("SELECT 1/0"))
    conn.ask(query("SELECT 1"))
    conn.ask(query("ROLLBACK TO a"))
    conn.ask(query("RELEASE SAVEPOINT a"))
    conn.ask(query("DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 10)"))
    conn.ask(query("FETCH 3 FROM c"))
    conn.ask(query("MOVE 2 IN c"))
    conn.ask(query("CLOSE c"))
    conn.ask(query("COMMIT AND CHAIN"))
    conn.ask(query("SELECT * FROM missing"))
    conn.ask(query("END"))
    conn.ask(query("PREPARE p(int) AS SELECT $1 + 1"))
    conn.ask(query("EXECUTE p(41)"))
    conn.ask(query("EXPLAIN EXECUTE p(41)"))
    conn.ask(query("DEALLOCATE p"))
    conn.ask(query("DISCARD ALL"))


def extended_protocol(conn):
    conn.ask(extended("SELECT $1::int + 1, $2", ["41", "text"], oids=[0, 25]))
    conn.ask(parse("SELECT i, i::text FROM generate_series(1, $1::int) i", "s"), describe("S", "s"), sync())
    conn.ask(bind([b"\0\0\0\x09"], "s", "p", [wire.BINARY], [wire.BINARY, wire.TEXT]), describe("P", "p"), execute("p", 4),
             execute("p", 4), execute("p", 4), execute("p", 4), close("P", "p"), sync())
    conn.ask(bind(["3"], "s"), execute(), sync())
    conn.ask(close("S", "s"), close("S", "s"), sync())
    conn.ask(parse("", "empty"), bind(statement="empty"), describe("P"), execute(), sync())
    conn.send(parse("SELECT 1"), flush())
    conn.until("1")
    conn.send(bind(), describe(), flush())
    conn.until("T")
    conn.send(execute(), flush())
    conn.until("C")
    conn.ask(sync())
    conn.ask(sync())


def pipelined(conn):
    """Five groups in one write: two fail, one of them in its middle."""
    good = extended("SELECT $1::text", ["x"])
    bad = extended("SELECT 1/$1::int", ["0"])
    middle = parse("SELECT 1", "m") + bind(statement="m") + execute() + parse("SELEC 1") + bind() + execute() + sync()
    conn.ask(good, bad, middle, good, query("SELECT 'simple'"), close("S", "m") + sync(), syncs=6)


def errors(conn):
    conn.ask(query("SELEC 1"))
    conn.ask(query("SELECT 100 / (50 - i) FROM generate_series(1, 100) i"))
    conn.ask(query("SELECT 1; SELECT 1/0; SELECT 2"))
    conn.ask(extended("SELECT 100 / (50 - i) FROM generate_series(1, 100) i"))
    conn.ask(bind(statement="missing"), execute(), sync())
    conn.ask(execute("missing"), sync())
    conn.ask(parse("SELECT $1::int"), bind([]), sync())
    conn.ask(parse("SELECT $1::int"), bind(["not a number"]), sync())
    conn.ask(parse("SELECT 1", "twice"), parse("SELECT 2", "twice"), sync())
    conn.ask(query("DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = 'XX123', DETAIL = 'd', HINT = 'h'; END $$"))


def copy_protocol(conn):
    conn.ask(query("CREATE TEMP TABLE c (a int, b text)"))
    conn.send(query("COPY c FROM STDIN"))
    conn.until("G")
    conn.ask(copy_data(b"1\tone\n2\ttwo\n3\t"), copy_data(b"three\n"), copy_done())
    conn.ask(query("COPY c TO STDOUT"))
    conn.ask(query("COPY (SELECT * FROM c, generate_series(1, 50)) TO STDOUT (FORMAT binary)"))
    conn.send(query("COPY c FROM STDIN"))
    conn.until("G")
    conn.ask(copy_data(b"4\tfour\n"), copy_fail("the client's reason"))
    conn.ask(query("COPY c FROM STDIN"), copy_data(b"not a number\tx\n"), copy_done())


def extended_copy(conn):
    """libpq sends Sync with the Execute of a COPY already; the server ignores it while it copies."""
    conn.ask(query("CREATE TEMP TABLE c (a int, b text)"))
    conn.send(parse("COPY c FROM STDIN"), bind(), describe(), execute(), sync())
    conn.until("G")
    conn.ask(copy_data(b"1\tone\n"), copy_done(), sync())
    conn.ask(extended("COPY c TO STDOUT"))
    conn.send(parse("COPY c FROM STDIN"), bind(), describe(), execute(), sync())
    conn.until("G")
    conn.ask(copy_data(b"wrong\n"), copy_done(), sync())
    conn.ask(query("SELECT count(*) FROM c"))


def function_calls(conn):
    four = (4).to_bytes(4, "big")
    conn.ask(function_call(177, [four, four]))
    conn.ask(function_call(177, [four, None]))
    conn.ask(function_call(154, [four, bytes(4)]))
    conn.ask(function_call(4294967295, []))
    conn.ask(query("BEGIN"))
    conn.ask(function_call(957, [(-1).to_bytes(4, "big", signed=True)]))
    conn.ask(query("ROLLBACK"))


def notifications(conn):
    conn.ask(query("LISTEN here"))
    conn.ask(query("NOTIFY here, 'to myself'"))
    conn.ask(query("BEGIN; NOTIFY here, 'later'"))
    conn.ask(query("COMMIT"))
    conn.ask(extended("SELECT pg_notify('here', 'by function')"))
    conn.ask(query("UNLISTEN *"))


def look_alikes(conn):
    """Text that has everything of a page but the tag, and words that look like ours but are not."""
    conn.ask(query("SELECT oid FROM pg_class ORDER BY oid LIMIT 5 OFFSET 10 /* a comment */"))
    conn.ask(query("SELECT oid FROM pg_class ORDER BY oid LIMIT 5 OFFSET 10 /* pgsee k cursor=1 */"))
    conn.ask(query("SELECT 'pgseek' AS name, $$/* pgseek */$$ ORDER BY 1 LIMIT 1"))
    conn.ask(extended("SELECT oid FROM pg_class WHERE relname <> $1 ORDER BY oid LIMIT $2 OFFSET $3", ["pgseek", "5", "10"]))
    conn.ask(extended("SELECT 1 AS \"/* pgseek */\" ORDER BY 1 LIMIT 1"))
    conn.ask(query("SET search_path = public"), )
    conn.ask(query("SELECT set_config('my.setting', 'x', false), current_setting('my.setting')"))
    conn.ask(extended("SELECT set_config($1, $2, false)", ["my.setting", "y"]))


def unfinished(conn):
    """The client leaves in the middle of a transaction and of a group."""
    conn.ask(query("BEGIN"))
    conn.send(parse("SELECT 1"), bind(), execute(), flush())
    conn.until("C")


CONVERSATIONS = [simple, transactions, extended_protocol, pipelined, errors, copy_protocol, extended_copy, function_calls,
                 notifications, look_alikes, unfinished]


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda f: f.__name__)
def test_raw_conversation(tape, conversation):
    with tape.wire() as conn:
        conversation(conn)
        conn.send(terminate())
        conn.is_closed()
    tape.check()


@pytest.mark.parametrize("version,parameters", [
    (wire.PROTOCOL_3_0, {}), (wire.PROTOCOL_3_0 + 1, {}), (wire.PROTOCOL_3_2, {}), (wire.PROTOCOL_3_0 + 3, {}),
    (wire.PROTOCOL_3_0 + 9999, {}), (wire.PROTOCOL_3_0, {"_pq_.an_option": "x"}), (wire.PROTOCOL_3_2, {"_pq_.an_option": "x"}),
    (wire.PROTOCOL_3_0, {"options": "-c work_mem=1MB -c my.setting=a\\ b", "application_name": "x", "DateStyle": "SQL, DMY",
                         "client_encoding": "LATIN1", "extra_float_digits": "0"}),
])
def test_startup_is_relayed(tape, version, parameters):
    with tape.wire(start=False) as conn:
        messages = conn.start(version, user="postgres", database="e2e", **parameters)
        if version == wire.PROTOCOL_3_0 + 9999:
            assert "v" in wire.kinds(messages)
        conn.ask(query("SHOW work_mem"))
        conn.send(terminate())
        conn.is_closed()
    tape.check()


def test_refused_logins_are_relayed(tape):
    for parameters in ({"database": "missing"}, {"user": "nobody_here"}, {"options": "-c no_such_setting=1"}):
        with pytest.raises(wire.ServerError):
            tape.wire(**parameters)
    tape.check()


def test_random_groups(tape):
    """Messages in any order and number, pipelined; most of them fail, and each failure must look the same."""
    seed = random.Random(7)
    pieces = [parse("SELECT 1"), parse("SELECT $1::int", "a"), parse("SELEC", "b"), bind(), bind(["1"], "a"), bind(["x"], "a"),
              describe("S", "a"), describe("P"), execute(), execute("", 1), close("S", "a"), close("P"), flush(), sync(),
              parse("SELECT i FROM generate_series(1, 30) i", "a"), bind(statement="a"), parse("BEGIN"), parse("ROLLBACK")]
    with tape.wire() as conn:
        for _ in range(60):
            group = [seed.choice(pieces) for _ in range(seed.randrange(1, 12))] + [sync()]
            conn.ask(*group, syncs=group.count(sync()))
        conn.send(terminate())
        conn.is_closed()
    tape.check()


# ---- conversations of drivers and programs ---------------------------------------------------------------------------


def test_large_messages(whole_tape):
    with whole_tape.wire() as conn:
        big = "x" * 3_000_000
        assert conn.rows(query(f"SELECT length('{big}')")) == [[b"3000000"]]
        assert conn.rows(extended("SELECT length($1)", [big])) == [[b"3000000"]]
        assert len(conn.rows(query("SELECT repeat('y', 8000000)"))[0][0]) == 8_000_000
        assert len(conn.rows(query("SELECT i, repeat('z', i % 5000) FROM generate_series(1, 5000) i"))) == 5000
        conn.send(terminate())
        conn.is_closed()
    whole_tape.check()


def test_psycopg(whole_tape):
    with whole_tape.connect(sslmode="disable", gssencmode="disable", autocommit=False) as conn:
        conn.add_notice_handler(lambda _: None)
        cursor = conn.cursor(binary=True)
        cursor.execute("CREATE TEMP TABLE p (a int PRIMARY KEY, b text, c timestamptz)")
        cursor.executemany("INSERT INTO p VALUES (%s, %s, now())", [(i, f"row {i}") for i in range(50)])
        cursor.execute("SELECT * FROM p ORDER BY a LIMIT %s OFFSET %s", (10, 20), prepare=True)
        assert [row[0] for row in cursor] == list(range(20, 30))
        with cursor.copy("COPY p (a, b) FROM STDIN") as copy:
            for i in range(1000, 3000):
                copy.write_row((i, "copied"))
        with cursor.copy("COPY p TO STDOUT (FORMAT binary)") as copy:
            assert sum(len(piece) for piece in copy) > 20000
        with conn.pipeline():
            for i in range(100):
                conn.execute("SELECT %s::int", (i,))
        with pytest.raises(psycopg.errors.UniqueViolation):
            conn.execute("INSERT INTO p VALUES (1)")
        conn.rollback()
        with conn.cursor(name="server_side") as named:
            named.itersize = 7
            named.execute("SELECT generate_series(1, 50)")
            assert len(named.fetchall()) == 50
    whole_tape.check()


def test_psql(whole_tape, tmp_path):
    (tmp_path / "in.tsv").write_text("".join(f"{i}\trow {i}\n" for i in range(20000)))
    (tmp_path / "large").write_bytes(os.urandom(300_000))
    script = f"""
        CREATE TEMP TABLE c (a int, b text);
        \\copy c FROM '{tmp_path}/in.tsv'
        \\copy c TO '{tmp_path}/out.tsv'
        \\copy (SELECT a FROM c ORDER BY a LIMIT 10) TO '{tmp_path}/ten.tsv'
        \\d c
        \\lo_import '{tmp_path}/large'
        \\lo_export :LASTOID '{tmp_path}/large.out'
        \\lo_unlink :LASTOID
        \\set FETCH_COUNT 1000
        SELECT * FROM c;
        SELECT 1 AS x \\gdesc
    """
    whole_tape.psql("-o", "/dev/null", input=script)
    assert (tmp_path / "out.tsv").read_bytes() == (tmp_path / "in.tsv").read_bytes()
    assert (tmp_path / "large.out").read_bytes() == (tmp_path / "large").read_bytes()
    whole_tape.check()


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench(whole_tape, server, mode):
    server.run("pgbench", "-i", "-q", "-s", "1")
    whole_tape.run("pgbench", "-n", "-S", "-c", "4", "-j", "2", "-t", "200", "-M", mode)
    whole_tape.run("pgbench", "-n", "-c", "4", "-j", "2", "-t", "50", "-M", mode)
    whole_tape.check()


def test_replication_commands(whole_tape):
    conninfo = whole_tape.dsn(replication="database", sslmode="disable", gssencmode="disable")
    shown = whole_tape.run("psql", "-X", "-At", "-c", "IDENTIFY_SYSTEM", conninfo).stdout
    assert shown.count("|") == 3
    whole_tape.check()


def test_logical_replication(whole_tape, server, tmp_path):
    """START_REPLICATION: COPY BOTH, ended by the client."""
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS decoded; CREATE TABLE decoded (a int PRIMARY KEY)")
        conn.execute("SELECT pg_create_logical_replication_slot('tape', 'test_decoding')")
        conn.execute("INSERT INTO decoded SELECT generate_series(1, 2000)")
        end = conn.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
        whole_tape.run("pg_recvlogical", "-d", "e2e", "--slot", "tape", "--start", "--no-loop", "--endpos", end, "-f",
                       str(tmp_path / "decoded"), timeout=60)
        conn.execute("SELECT pg_drop_replication_slot('tape')")
    assert (tmp_path / "decoded").read_text().count("INSERT:") == 2000
    whole_tape.check()


def test_base_backup(whole_tape, tmp_path):
    """Three connections, one of them streaming the log beside the copy."""
    whole_tape.run("pg_basebackup", "-D", str(tmp_path / "backup"), "-X", "stream", "-c", "fast", timeout=120)
    assert (tmp_path / "backup" / "PG_VERSION").exists()
    whole_tape.check()
