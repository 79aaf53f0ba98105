"""Random conversations: what a client may say to PostgreSQL, made from a seed.

It knows messages as bytes; it must not know which of two servers is the proxy. A conversation is a list of writes; a
write is a list of steps; a step is one message (or a few that belong together). Its statements are statements.py's, so
two servers with equal databases must answer byte for byte the same; playing.py has them do it.
"""
import random
from dataclasses import dataclass

import statements
import wire
from statements import GROUND, INT2, INT4, INT8, SESSION, TEXT, TRANSACTION, UNKNOWN, UNTAGGED, Statement, binary, literal

INT8_MAX = 2**63 - 1


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
        return statements.odd_page(rng) if rng.random() < 0.2 else statements.page(rng)

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
