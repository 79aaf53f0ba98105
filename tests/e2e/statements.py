"""What random conversations say: tables, statements over them with places for values, and values in both formats.

It knows SQL and must not know messages. Every statement has one right answer that does not depend on the backend.
"""
import re
import struct
from dataclasses import dataclass, field

INT2, INT4, INT8, TEXT, VARCHAR, FLOAT8, NUMERIC, UNKNOWN = 21, 23, 20, 25, 1043, 701, 1700, 705

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
