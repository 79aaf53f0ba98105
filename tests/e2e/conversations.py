"""Random conversations: what a client may say to PostgreSQL, made from a seed, played and compared.

It knows messages as bytes and replies as (type, body); it must not know which of two servers is the proxy. A
conversation is a list of writes; a write is a list of steps; a step is one message (or a few that belong together).
Everything a conversation says has one right answer that does not depend on the backend, so two servers with equal
databases must answer byte for byte the same.
"""
import random
import re
import socket
import struct
import time
from dataclasses import dataclass, field

import wire

INT2, INT4, INT8, TEXT, VARCHAR, FLOAT8, NUMERIC, UNKNOWN = 21, 23, 20, 25, 1043, 701, 1700, 705
INT8_MAX = 2**63 - 1
PATIENCE_S = 8  # a reply that takes longer will not come
MINIMISE_S = 60

SCHEMA = """
CREATE TABLE authors (id int4 PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO authors VALUES (1, 'ann'), (2, 'bob'), (3, 'cy');
CREATE TABLE posts (
    id int8 PRIMARY KEY, feed_id int4 NOT NULL, created_at timestamptz NOT NULL, score numeric(6,2) NOT NULL,
    title varchar(20) NOT NULL, body text, author_id int4 NOT NULL);
INSERT INTO posts
    SELECT i, i % 3, timestamptz '2026-01-01 00:00:00+00' + make_interval(mins => i / 4), (i / 5) * 1.25,
           'title ' || i / 3, CASE WHEN i % 7 <> 0 THEN 'body ' || i END, 1 + i % 3
      FROM generate_series(1, 14) i;
CREATE INDEX ON posts (created_at, id);
CREATE TABLE scratch (id int4 PRIMARY KEY, note text NOT NULL);
INSERT INTO scratch SELECT i, 'note ' || i FROM generate_series(1, 6) i;
CREATE SCHEMA other;
CREATE TABLE other.posts (LIKE public.posts);
INSERT INTO other.posts SELECT * FROM public.posts WHERE id % 2 = 0;
ANALYZE;
"""


# ---- values ------------------------------------------------------------------------------------------------------


def binary(value, oid):
    """The binary form of an integer under a type; a text that no type has stays text."""
    if isinstance(value, str) or oid in (0, TEXT, VARCHAR, UNKNOWN):
        return str(value).encode()
    if oid == NUMERIC:
        if value >= 10000 or value < 0:
            return struct.pack('>hhHh', 0, 0, 0xC000, 0)  # NaN
        return struct.pack('>hhHh', 1 if value else 0, 0, 0, 0) + (struct.pack('>h', value) if value else b'')
    if oid == FLOAT8:
        return struct.pack('>d', value)
    width, code = {INT2: (16, '>h'), INT4: (32, '>i'), INT8: (64, '>q')}[oid]
    return struct.pack(code, value) if -(1 << width - 1) <= value < 1 << width - 1 else struct.pack('>q', value)


# ---- statements --------------------------------------------------------------------------------------------------


@dataclass
class Statement:
    sql: str
    types: list = field(default_factory=list)  # what the server infers for $1, $2 ...
    kinds: list = field(default_factory=list)  # what values suit them
    columns: int = 1
    extra: int = 0  # parameters that only the tag names: text, to be declared

    def declared(self, rng):
        """An OID list for Parse: mostly none, sometimes partial, right, or another type."""
        oids = []
        if self.types and rng.random() < 0.5:
            for inferred in self.types:
                choice = rng.choice([0, 0, inferred, inferred, UNKNOWN, rng.choice([INT2, INT4, INT8, TEXT, FLOAT8, NUMERIC])])
                oids.append(choice)
            oids = oids[:rng.choice([len(oids), len(oids), rng.randrange(len(oids) + 1)])]
        if self.extra:
            oids += [0] * (len(self.types) - len(oids)) + [TEXT] * self.extra
        return oids


TAGS = ['/* pgseek */'] * 6 + [
    '/*pgseek*/', '-- pgseek\n', "/*controller='x',pgseek='on'*/", '/* pgseek tail=on */', '/* pgseek page=first */',
    "/* pgseek cursor='' */", '/* pgseek cursor=NULL */', '/* pgseek deliver=status, mode=rewrite */', '/* pgseek strict=off */',
]

# {F} a feed, {T} a text, {L} a limit, {O} an offset clause. Each order is total by itself, so that the server's own
# answer to the original is the only right one.
PAGES = [
    ('SELECT id, body FROM posts ORDER BY created_at DESC, id DESC LIMIT {L}', 2),
    ('SELECT body, feed_id FROM posts WHERE feed_id = {F} ORDER BY created_at, id LIMIT {L}', 2),
    ('SELECT * FROM posts ORDER BY score DESC, posts.id DESC LIMIT {L} {O}', 7),
    ('SELECT p.title AS t, a.name FROM posts p JOIN authors a ON a.id = p.author_id WHERE p.feed_id = {F}'
     ' ORDER BY p.id LIMIT {L}', 2),
    ('SELECT id, title, upper(body) FROM posts WHERE title > {T} ORDER BY title, id FETCH FIRST {P} ROWS ONLY', 3),
    ("SELECT id pid, NULL, 'x', 1.5::numeric(5,2) FROM posts ORDER BY 1 {O} LIMIT {L}", 4),
    ('SELECT title AS id, body AS title FROM posts ORDER BY posts.created_at, posts.id LIMIT {L}', 2),
    ('SELECT id, note FROM scratch ORDER BY id LIMIT {L}', 2),
    ('SELECT note FROM scratch WHERE id > {F} ORDER BY note DESC, id DESC LIMIT {L} {O}', 1),
    ('SELECT {F} AS feed, posts.* FROM posts ORDER BY id DESC LIMIT {L}', 8),
    ('SELECT id FROM posts WHERE feed_id = {F} AND feed_id <> 99 ORDER BY id {O} FETCH NEXT {P} ROWS ONLY;', 1),
    ('SELECT id, created_at FROM public.posts AS p ORDER BY p.created_at USING <, p.id LIMIT {L}', 2),
]
# Tagged and not to be rewritten (by this slice or ever), or failing on the server.
ODD_PAGES = [
    ('SELECT count(*) FROM posts', 1), ('SELECT id FROM posts ORDER BY id', 1), ('SELECT 1', 1), ('SELECT', 0),
    ('SELECT nosuch FROM posts ORDER BY id LIMIT {L}', 1), ('SELECT id FROM nosuch ORDER BY id LIMIT 3', 1),
    ('SELECT id FROM posts ORDER BY nosuch LIMIT {L}', 1), ('SELECT id FROM posts ORDER BY id LIMIT', 1),
    ('SELECT id, 10 / (id - 2) FROM posts ORDER BY id LIMIT 4', 2), ('SELECT id FROM posts ORDER BY id LIMIT -1', 1),
    ("SELECT id FROM posts ORDER BY id LIMIT 'x'", 1), ('SELECT id FROM posts ORDER BY id LIMIT (SELECT 3)', 1),
    ('SELECT id, body FROM posts ORDER BY body, id LIMIT {L}', 2), ('SELECT id FROM posts ORDER BY created_at DESC, id LIMIT {L}', 1),
    ('SELECT DISTINCT feed_id FROM posts ORDER BY feed_id LIMIT {L}', 1), ('SELECT id FROM posts ORDER BY id LIMIT 2 FOR UPDATE', 1),
    ('SELECT id FROM posts ORDER BY id LIMIT 2.5', 1), ("SELECT id FROM posts ORDER BY id LIMIT '3'", 1),
    ('SELECT feed_id, count(*) FROM posts GROUP BY feed_id ORDER BY feed_id LIMIT {L}', 2), ('TABLE scratch ORDER BY id LIMIT 2', 2),
    ('SELECT id FROM posts UNION ALL SELECT id FROM authors ORDER BY 1 LIMIT 1', 1), ('VALUES (1), (2) ORDER BY 1 LIMIT 1', 1),
    ('UPDATE scratch SET note = note WHERE id = 1', 0), ('SELECT id::text AS id FROM posts ORDER BY id LIMIT {L}', 1),
    ('SELECT generate_series(1, 3) AS g, id FROM posts ORDER BY id, g LIMIT 4', 2),
]
UNTAGGED = [
    Statement('SELECT 1'), Statement("SELECT '/* pgseek */' AS t"), Statement(''), Statement(' ; '), Statement('SELECT', columns=0),
    Statement('SELECT id, body FROM posts WHERE feed_id = $1 ORDER BY id', [INT4], ['feed'], 2), Statement('SELECT 1 / 0'),
    Statement('SELECT $1::text, $2::int4 + 1', [TEXT, INT4], ['text', 'feed'], 2), Statement('SELEC 1'),
    Statement('SELECT nosuch'), Statement('SELECT i FROM generate_series(1, 5) i'), Statement('SELECT 10 / (3 - i) FROM generate_series(1, 5) i'),
    Statement("INSERT INTO scratch VALUES (1001, 'new') ON CONFLICT DO NOTHING", columns=0),
    Statement("INSERT INTO scratch VALUES (1, 'twice')", columns=0),
    Statement('DELETE FROM scratch WHERE id = $1 RETURNING id', [INT4], ['feed']), Statement("UPDATE scratch SET note = 'changed' WHERE id = 3", columns=0),
    Statement("DO $$ BEGIN RAISE NOTICE 'hello'; END $$", columns=0), Statement('SELECT id FROM posts ORDER BY id OFFSET 2 LIMIT 3'),
]
TRANSACTION = ['BEGIN', 'BEGIN', 'COMMIT', 'ROLLBACK', 'SAVEPOINT a', 'SAVEPOINT b', 'ROLLBACK TO a', 'ROLLBACK TO SAVEPOINT b',
               'RELEASE a', 'RELEASE SAVEPOINT b', 'START TRANSACTION', 'END', 'ABORT', 'COMMIT AND CHAIN', 'ROLLBACK AND CHAIN',
               'BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN READ ONLY', '/* x */ begin', 'SET TRANSACTION READ ONLY']
SESSION = ['DEALLOCATE ALL', 'DEALLOCATE s1', 'DEALLOCATE PREPARE s2', 'DISCARD ALL', 'DISCARD PLANS', 'DISCARD TEMP', 'CLOSE ALL',
           'CLOSE p1', 'RESET ALL', "SET application_name = 'x'", "SET TIME ZONE 'UTC'", "SET TIME ZONE 'Asia/Tokyo'", 'SHOW server_version_num',
           "SET DateStyle = 'German'", 'RESET DateStyle', 'SET extra_float_digits = 0', 'SELECT 1; SELECT 2', 'SELECT 1; SELECT 1 / 0; SELECT 2', ';;',
           "INSERT INTO scratch VALUES (1002, 'x'); SELECT nosuch", "SET work_mem = '1MB'", 'SET plan_cache_mode = force_generic_plan',
           'DECLARE c CURSOR FOR SELECT id FROM posts ORDER BY id', 'FETCH 2 FROM c', 'MOVE 1 IN c', 'CLOSE c',
           'DECLARE d CURSOR FOR SELECT id FROM posts ORDER BY id LIMIT 4 /* pgseek */', 'FETCH ALL FROM d',
           'COPY (SELECT id, body FROM posts ORDER BY id) TO STDOUT', 'COPY (SELECT id FROM posts ORDER BY id LIMIT 3 /* pgseek */) TO STDOUT',
           'PREPARE q1 AS SELECT id FROM posts ORDER BY id LIMIT $1 /* pgseek */', 'EXECUTE q1(3)', 'EXECUTE s1', 'EXECUTE s1(1, 2)', 'DEALLOCATE q1',
           'DECLARE e CURSOR WITH HOLD FOR SELECT id FROM posts ORDER BY id LIMIT 4 /* pgseek */', 'FETCH 2 FROM e', 'COPY (SELECT 1 /* pgseek */) TO STDOUT',
           'EXPLAIN (COSTS off) SELECT id FROM posts WHERE nosuch ORDER BY id LIMIT 3 /* pgseek */', 'EXPLAIN (COSTS off) SELECT id FROM posts ORDER BY id LIMIT 3 /* pgseek */',
           'EXPLAIN (COSTS off, nosuch) SELECT id FROM posts ORDER BY id LIMIT 3 /* pgseek */', 'CREATE TEMP TABLE made AS SELECT id FROM posts ORDER BY id LIMIT 2 /* pgseek */']
# What changes the ground under a page: the proxy may refuse the page (PS005), but never answer it differently.
GROUND = ['SET search_path = other, public', 'SET search_path = public', "SET LOCAL search_path = 'other'", 'RESET search_path', 'SET ROLE limited',
          'RESET ROLE', "SET client_encoding = 'LATIN1'", 'SET standard_conforming_strings = off', 'RESET standard_conforming_strings',
          "SET client_encoding = 'SJIS'", "RESET client_encoding", 'ALTER TABLE scratch ALTER note DROP NOT NULL', 'ALTER TABLE scratch DROP CONSTRAINT scratch_pkey',
          "ALTER TABLE scratch ADD COLUMN more int", 'CREATE TEMP TABLE scratch AS SELECT 7 AS id, text \'temp\' AS note', 'DROP TABLE pg_temp.scratch',
          'SET SESSION AUTHORIZATION limited', 'RESET SESSION AUTHORIZATION', 'BEGIN', 'BEGIN', 'ROLLBACK', 'ROLLBACK']


@dataclass
class Step:
    data: bytes
    label: str
    unsure: bool = False  # a simple query behind unsynced messages: it may be skipped, so its ReadyForQuery may not come


class Conversation:
    """One client's side, from a seed. `ground` also changes search_path, roles and tables."""

    def __init__(self, seed, ground=False):
        self.seed = seed
        self.rng = random.Random(f'{seed}/{ground}')
        self.ground = ground
        self.steps = []
        self.by_sql = {}  # the same, by PREPARE
        self.statements = {}  # what the client believes to be prepared under a name
        self.unsynced = False
        self.stale = False  # there was a simple query, so the unnamed portal may be none of ours
        self.bound = False  # the unnamed portal was bound in this group
        self.pipelined = self.rng.random() < 0.6
        self.tagged = self.rng.choice([0.4, 0.7, 0.9])
        self.errors = self.rng.choice([0.02, 0.1, 0.3])
        # Names that change hands in groups that fail, while the next groups are on their way already.
        self.churn = self.rng.random() < 0.25
        if self.churn:
            self.errors = 0.3
        if self.rng.random() < 0.5:
            self.query("DELETE FROM scratch WHERE id > 6")
        if self.rng.random() < 0.4:
            self.command('BEGIN')
        for _ in range(self.rng.randrange(2, 14)):
            self.rng.choices([self.page, self.chaos, self.transaction, self.session, self.simple, self.rebind, self.prepared],
                             [10, 6, 1, 1, 1, 5, 2] if self.churn else [6, 3, 2 + 2 * ground, 1 + 2 * ground, 2, 4, 4])[0]()
        self.sync()
        self.query('ROLLBACK')
        self.query("SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; SET client_encoding = 'UTF8'")
        self.writes = self.delivery()

    # -- saying one message

    def say(self, data, label, unsure=False):
        self.steps.append(Step(data, label, unsure))
        self.unsynced = data[:1] not in (b'S', b'Q')
        self.bound = self.bound and self.unsynced

    def sync(self):
        self.say(wire.sync(), 'Sync')

    def query(self, sql):
        self.say(wire.query(sql), f'Query {sql!r}', self.unsynced)
        self.statements.pop('', None)
        self.stale = self.stale or bool(sql.strip(' ;'))

    def parse(self, name, statement):
        """Returns the name that is used: a token's place must be the same in all that a name may hold, or a client that is
        wrong about what was prepared would bind another value there."""
        if statement.extra:
            name = f't{len(statement.types)}'
        oids = statement.declared(self.rng)
        types = [oid if oid not in (0, UNKNOWN) else statement.types[i] if i < len(statement.types) else TEXT
                 for i, oid in enumerate(oids)]
        types += statement.types[len(types):]
        self.statements[name] = (statement, types)
        self.say(wire.parse(statement.sql, name, oids), f'Parse {name!r} {statement.sql!r} {oids}')
        return name

    def bind(self, portal, name):
        statement, types = self.statements.get(name, (Statement('SELECT 1'), []))
        rng = self.rng
        kinds = statement.kinds + ['token'] * statement.extra
        values = [self.value(kind) for kind in kinds]
        formats = rng.choice([[], [0], [1], [rng.randrange(2) for _ in values]])
        if rng.random() < self.errors:
            values, formats = self.spoil(values, formats)
        results = rng.choice([[], [], [0], [1], [rng.randrange(2) for _ in range(statement.columns)]])
        if rng.random() < self.errors:
            results = rng.choice([[2], [0, 1], [0] * (statement.columns + 1), [1, 1, 1, 1, 1], [-1]])
        sent = []
        for i, value in enumerate(values):
            code = 0 if not formats else formats[0] if len(formats) == 1 else formats[i] if i < len(formats) else 0
            oid = types[i] if i < len(types) else TEXT
            sent.append(None if value is None else binary(value, oid) if code == 1 else str(value).encode())
        if sent and not statement.extra and rng.random() < self.errors / 3:
            sent[rng.randrange(len(sent))] = rng.choice([b'', b'\xff\xfe', b'\x00\x00\x00', b'1 ', b'-0', b'1e2', b'9' * 30])
        self.bound = self.bound or portal == ''
        self.say(wire.bind(sent, name, portal, formats, results), f'Bind {portal!r} {name!r} {sent} {formats} {results}')

    def value(self, kind):
        rng = self.rng
        if kind == 'token':
            return rng.choice([None, ''])
        if rng.random() < 0.06:
            return None
        if kind == 'text':
            return rng.choice(['title 1', 'title 3', '', 'z', "it's", 'é'])
        if kind == 'feed':
            return rng.randrange(4)
        if kind == 'offset':
            return rng.choice([0, 0, 1, 2, 7, 100] + [-1] * (rng.random() < self.errors))
        return rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 13, 14, 15, 100, 32767, INT8_MAX] + [-1, -5] * (rng.random() < self.errors))

    def spoil(self, values, formats):
        rng = self.rng
        what = rng.randrange(5)
        if what == 0 and values:
            return values[:-1], formats
        if what == 1:
            return values + ['1'], formats
        if what == 2:
            return values, [0] * (len(values) + 2)
        if what == 3:
            return values, [rng.choice([2, 7, -1])]
        return [rng.choice(['abc', '1.5', ' 3 ', '']) if value not in (None, '') else value for value in values], [0]

    # -- groups of messages

    def end(self):
        """Ends a group, mostly; without a Sync the next thing said joins it."""
        if self.rng.random() < 0.85:
            self.sync()
        elif self.rng.random() < 0.3:
            self.say(wire.flush(), 'Flush')

    def pick(self):
        rng = self.rng
        if rng.random() >= self.tagged:
            return rng.choice(UNTAGGED)
        return odd_page(rng) if rng.random() < 0.2 else page(rng)

    def name(self):
        return self.rng.choice(['', '', 's1', 's2'])

    def portal(self):
        return self.rng.choice(['', '', '', 'p1', 'p2'])

    def page(self):
        """What drivers do: Parse, Bind, Describe, Execute, in their several orders."""
        rng, name, portal = self.rng, self.name(), self.portal()
        if name and rng.random() < 0.7:
            self.say(wire.close('S', name), f'Close S {name!r}')
        name = self.parse(name, self.pick())
        if rng.random() < 0.3:
            self.say(wire.describe('S', name), f'Describe S {name!r}')
            if rng.random() < 0.5:
                self.sync()
        self.run(name, portal)
        self.end()

    def rebind(self):
        if not self.statements and self.rng.random() < 0.9:
            self.page()
            return
        self.run(self.rng.choice(list(self.statements) or ['s1']), self.portal())
        self.end()

    def run(self, name, portal):
        rng = self.rng
        if portal and rng.random() < 0.6:
            self.say(wire.close('P', portal), f'Close P {portal!r}')
        self.bind(portal, name)
        if rng.random() < 0.6:
            self.say(wire.describe('P', portal), f'Describe P {portal!r}')
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            self.execute(portal)
        if rng.random() < (0.4 if self.churn else 0.1):
            self.close_either(name, portal)

    def close_either(self, name, portal):
        kind, closed = self.rng.choice([('S', name), ('P', portal)])
        self.say(wire.close(kind, closed), f'Close {kind} {closed!r}')

    def execute(self, portal):
        # PostgreSQL itself (15 and 18) crashes on: BEGIN in the unnamed portal, a failing simple query, another, Execute.
        portal = portal or ('p1' if self.stale and not self.bound else '')
        rows = self.rng.choice([0, 0, 0, 1, 2, 3, 4, 5, 14, 15, -1])
        self.say(wire.execute(portal, rows), f'Execute {portal!r} {rows}')
        if self.rng.random() < 0.05:
            self.say(wire.describe('P', portal), f'Describe P {portal!r}')

    def chaos(self):
        rng = self.rng
        for _ in range(rng.randrange(1, 6)):
            name, portal = self.name(), self.portal()
            rng.choice([
                lambda: self.parse(name, self.pick()), lambda: self.bind(portal, name), lambda: self.execute(portal), lambda: self.execute(portal),
                lambda: self.say(wire.describe('S', name), f'Describe S {name!r}'), lambda: self.say(wire.describe('P', portal), f'Describe P {portal!r}'),
                lambda: self.say(wire.close('S', name), f'Close S {name!r}'), lambda: self.say(wire.close('P', portal), f'Close P {portal!r}'),
                lambda: self.say(wire.flush(), 'Flush'), self.sync,
            ])()
        self.end()

    def command(self, sql):
        """A statement without parameters, in either protocol."""
        if self.rng.random() < 0.5:
            if self.unsynced and self.rng.random() < 0.9:
                self.sync()
            self.query(sql)
            return
        self.parse('', Statement(sql, columns=0))
        self.bind('', '')
        self.say(wire.execute('', 0), "Execute '' 0")
        self.end()

    def transaction(self):
        self.command(self.rng.choice(TRANSACTION))

    def session(self):
        if self.ground and self.rng.random() < 0.7:
            self.command(self.rng.choice(GROUND))
        elif self.rng.random() < 0.1:
            if self.unsynced:
                self.sync()
            self.say(wire.query('COPY scratch FROM STDIN') + wire.copy_data(b'1003\tcopied\n') + wire.copy_done(), 'COPY FROM STDIN')
            self.unsynced = False
        else:
            self.command(self.rng.choice(SESSION))

    def simple(self):
        if self.unsynced and self.rng.random() < 0.9:
            self.sync()
        statement = self.pick()
        # A cursor=$n in a simple query is refused, which is not what this comparison is about.
        self.query(literal(statement, self) if statement.extra or self.rng.random() < 0.95 else statement.sql)

    # -- what SQL prepares and executes by name

    def prepared(self):
        """PREPARE, EXECUTE and DEALLOCATE of tagged and other statements; the names are those of the protocol's, too."""
        rng = self.rng
        name = rng.choice(['q1', 'q1', 'q2', 's1'])
        if name not in self.by_sql or rng.random() < 0.3:
            statement = self.pick()
            while statement.extra and rng.random() < 0.5:
                statement = self.pick()
            if rng.random() < 0.8:
                self.command(f'DEALLOCATE {name}')
            self.command(f'PREPARE {name}{self.sql_types(statement)} AS {statement.sql}')
            self.by_sql[name] = statement
        for _ in range(rng.randrange(3)):
            self.execute_by_sql(name)
        if rng.random() < 0.2:
            self.command(rng.choice([f'DEALLOCATE {name}', 'DEALLOCATE ALL', f'EXPLAIN (COSTS off) EXECUTE {name}(1, 2, 3, 4, 5, 6)']))

    def sql_types(self, statement):
        names = {INT2: 'int2', INT4: 'int4', INT8: 'bigint', TEXT: 'text'}
        if statement.extra or (statement.types and self.rng.random() < 0.5):
            return '(' + ', '.join([names[oid] for oid in statement.types] + ['text'] * statement.extra) + ')'
        return ''

    def execute_by_sql(self, name):
        rng, statement = self.rng, self.by_sql[name]
        values = [self.value(kind) for kind in statement.kinds + ['token'] * statement.extra]
        spelled = ['NULL' if value is None else "'" + value.replace("'", "''") + "'" if isinstance(value, str) else
                   rng.choice([str(value), str(value), f"'{value}'", f'{value}::int8']) for value in values]
        if spelled and rng.random() < self.errors:
            spelled = spelled[:-1]
        arguments = f'({", ".join(spelled)})' if spelled else ''
        sql = f'EXECUTE {name}{arguments}' + rng.choice(['', '', ';', ' /* pgseek */', ' -- x'])
        if rng.random() < 0.4:
            self.run(self.parse(self.name(), Statement(sql, columns=statement.columns)), self.portal())
            self.end()
        else:
            self.command(sql)

    # -- how the steps are cut into writes

    def delivery(self):
        if self.churn:
            return [self.steps]
        writes, current = [], []
        for step in self.steps:
            current.append(step)
            ends = step.data[:1] in (b'S', b'Q')
            if (ends and (not self.pipelined or self.rng.random() < 0.15)) or self.rng.random() < 0.03:
                writes.append(current)
                current = []
        return writes + [current] if current else writes


def fill(sql, rng):
    """Puts parameters or literals where a page's text has places, and the tag somewhere."""
    statement = Statement('')
    offset = rng.random() < 0.4

    def parameter(kind, oid, form='{}'):
        statement.types.append(oid)
        statement.kinds.append(kind)
        return form.format(f'${len(statement.types)}')

    def place(match):
        kind = match.group(1)
        if kind == 'F':
            return parameter('feed', INT4, '{}::int4' if sql.startswith('SELECT {F}') else '{}') if rng.random() < 0.7 else str(rng.randrange(4))
        if kind == 'T':
            return parameter('text', TEXT) if rng.random() < 0.7 else "'title 2'"
        if kind == 'P':
            return rng.choice([lambda: str(rng.choice([0, 1, 3, 20])), lambda: parameter('limit', INT8), lambda: '(1 + 2)'])()
        if kind == 'L':
            return rng.choice([lambda: str(rng.choice([0, 1, 2, 3, 5, 14, 20])), lambda: parameter('limit', INT8), lambda: parameter('limit', INT8),
                               lambda: parameter('feed', INT4, '{}::int'), lambda: parameter('feed', INT4, '({} + 1)'),
                               lambda: rng.choice(['ALL', 'NULL', '1 + 2', '(2)', '3::int8', 'CAST(2 AS int2)'])])()
        if not offset:
            return ''
        return 'OFFSET ' + rng.choice([lambda: str(rng.choice([0, 1, 3, 50])), lambda: parameter('offset', INT8), lambda: parameter('offset', INT4, '({} - 0) * 2'),
                                       lambda: 'NULL', lambda: parameter('offset', INT8, '{}')])()

    statement.sql = re.sub(r'\{([FTLPO])\}', place, sql)
    tag = rng.choice(TAGS)
    if statement.types and rng.random() < 0.1:
        statement.extra = 1
        tag = f'/* pgseek cursor=${len(statement.types) + 1} */'
    where = rng.randrange(3)
    if where == 0:
        statement.sql = f'{tag} {statement.sql}'
    elif where == 1:
        statement.sql = f'{statement.sql} {tag}'
    else:
        statement.sql = statement.sql.replace(' ', f' {tag} ', 1) if ' ' in statement.sql else statement.sql + tag
    return statement


def page(rng):
    if rng.random() < 0.05:
        return Statement('SELECT id, title FROM posts ORDER BY id LIMIT $1 OFFSET ($2 - 1) * $1 /* pgseek */', [INT4, INT4], ['feed', 'feed'], 2)
    sql, columns = rng.choice(PAGES)
    statement = fill(sql, rng)
    statement.columns = columns
    return statement


def odd_page(rng):
    sql, columns = rng.choice(ODD_PAGES)
    statement = fill(sql, rng)
    statement.columns = columns
    return statement


def literal(statement, conversation):
    """The statement for the simple protocol: values in the place of parameters."""
    sql = statement.sql
    if statement.extra:
        sql = re.sub(r'cursor=\$\d+', 'cursor=NULL', sql)
    for i in reversed(range(len(statement.kinds))):
        value = conversation.value(statement.kinds[i])
        spelled = 'NULL' if value is None else "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
        sql = sql.replace(f'${i + 1}', spelled)
    return sql


# ---- playing -----------------------------------------------------------------------------------------------------


class Hung(Exception):
    """A reply that was owed did not come; `got` holds what did."""

    def __init__(self, got, why):
        super().__init__(f'{why} after {len(got)} replies')
        self.got = got


END = 'end of the conversation'


def pieces(data, split):
    """Cuts a write at the points that `split` (a Random, or 1 for single bytes) asks for."""
    if split is None:
        return [data]
    if split == 1:
        return [data[i:i + 1] for i in range(len(data))]
    cuts = sorted({split.randrange(len(data) + 1) for _ in range(split.randrange(1, 12))} | {0, len(data)})
    return [data[a:b] for a, b in zip(cuts, cuts[1:])]


def play(endpoint, database, writes, split=None, **startup):
    """Says it all, reads it all. Waits after a write that ends a group, where the count of answers is certain."""
    replies, expected, seen, certain = [], 0, 0, True
    with endpoint.wire(database=database, **startup) as conn:
        conn.sock.settimeout(PATIENCE_S)
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for write in writes:
                for piece in pieces(b''.join(step.data for step in write), split):
                    conn.send(piece)
                certain = certain and not any(step.unsure for step in write)
                expected += sum(step.data[:1] in (b'S', b'Q') for step in write)
                while certain and seen < expected and write[-1].data[:1] in (b'S', b'Q'):
                    replies.append(conn.read())
                    seen += replies[-1].kind == 'Z'
            conn.send(wire.sync(), wire.query(f"SELECT '{END}'"))
            while not (len(replies) > 2 and replies[-1].kind == 'Z' and END.encode() in replies[-3].body):
                replies.append(conn.read())
        except (OSError, EOFError) as error:
            raise Hung(replies, repr(error)) from None
    return replies


def hide_oids(body):
    """A RowDescription with the table OIDs of tables that the conversation has made itself (they differ by backend) set to 1."""
    out, at = bytearray(body), 2
    for _ in range(struct.unpack_from('>H', body)[0]):
        at = body.index(b'\0', at) + 1
        if struct.unpack_from('>I', body, at)[0] > hide_oids.last_known:
            struct.pack_into('>I', out, at, 1)
        at += 18
    return bytes(out)


hide_oids.last_known = 2**32 - 1


def visible(replies):
    """Replies without what pgseek adds."""
    return [(kind, hide_oids(body) if kind == 'T' else body) for kind, body in replies if not (kind == 'S' and body.startswith(b'pgseek.'))]


def refusal(replies, *marks):
    """The index of the first error that holds one of these, or None."""
    for i, (kind, body) in enumerate(replies):
        if kind == 'E' and any(mark in body for mark in marks):
            return i
    return None


# EXECUTE with an argument that may be a cursor and is no literal is refused: the cursor would be ignored.
REFUSALS = (b'Mthis statement cannot be paginated: execute_args',)
GROUND_REFUSALS = (b'CPS004\0', b'CPS005\0')  # only where the ground changes


def first_difference(expected, got, may_refuse):
    """None when equal; else the index. A refusal that is allowed ends the comparison."""
    end = refusal(got, *REFUSALS, *(GROUND_REFUSALS if may_refuse else ()))
    if end is not None:
        expected, got = expected[:end], got[:end]
    for i, pair in enumerate(zip(expected, got)):
        if pair[0] != pair[1]:
            return i
    return None if len(expected) == len(got) else min(len(expected), len(got))


# ---- reporting ---------------------------------------------------------------------------------------------------


def show(reply):
    kind, body = reply
    if kind in 'EN':
        fields = [part.decode('utf8', 'replace') for part in body.split(b'\0') if part]
        return f'{kind} ' + ' | '.join(field for field in fields if field[0] in 'CMDHPW')
    return f'{kind} {body[:120]!r}'


def transcript(writes, expected, got, at):
    lines = ['client:']
    for i, write in enumerate(writes):
        lines.append(f'  -- write {i + 1}')
        lines += [f'  {step.label}' for step in write]
    lines.append(f'first difference at reply {at}:')
    for name, replies in (('server', expected), ('pgseek', got)):
        lines.append(f'  {name}:')
        lines += [f'   {"*" if i == at else " "} {show(replies[i])}' for i in range(max(0, at - 6), min(len(replies), at + 4))]
    return '\n'.join(lines)


def minimise(writes, fails):
    """Leaves out steps as long as the conversation still fails."""
    flat = [(i, step) for i, write in enumerate(writes) for step in write]

    def regroup(steps):
        groups = {}
        for i, step in steps:
            groups.setdefault(i, []).append(step)
        return list(groups.values())

    deadline = time.monotonic() + MINIMISE_S
    size = max(1, len(flat) // 2)
    while time.monotonic() < deadline:
        at, removed = 0, False
        while at < len(flat) and time.monotonic() < deadline:
            shorter = flat[:at] + flat[at + size:]
            if shorter and fails(regroup(shorter)):
                flat, removed = shorter, True
            else:
                at += size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return regroup(flat)
