"""Random join trees over tables with every kind of key, from a seed, with data that shows a false claim.

It knows SQL and must not know how keys are proved. All values are few and small, NULL among them, so that what is not
unique by a rule is soon not unique in the data.
"""
import random

import pytest

OUTCOMES = pytest.StashKey()  # the run's counts: how many orders were claimed, and why the others were not

SCHEMA = """
CREATE EXTENSION IF NOT EXISTS citext;
DROP SCHEMA IF EXISTS joins CASCADE; CREATE SCHEMA joins; SET search_path = joins, public;
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE one (id int4 PRIMARY KEY, a int4, b int4 NOT NULL);
CREATE TABLE two (id int4 NOT NULL, a int4 NOT NULL, b int4, PRIMARY KEY (id, a));
CREATE TABLE keys (id int4 PRIMARY KEY, a int4 NOT NULL UNIQUE, b int4);
CREATE TABLE hole (id int4 UNIQUE, a int4, b int4 NOT NULL);
CREATE TABLE solid (id int4, a int4, b int4);
CREATE TABLE solid2 (id int4, a int4, b int4 NOT NULL);
CREATE TABLE none (id int4, a int4, b int4 NOT NULL);
CREATE TABLE wide (id int8 PRIMARY KEY, a int2 NOT NULL UNIQUE, b float8 NOT NULL);
CREATE TABLE loud (id float8 PRIMARY KEY, a numeric NOT NULL, b int8);
CREATE TABLE word (id text PRIMARY KEY, a text COLLATE ci NOT NULL, b citext NOT NULL UNIQUE);
CREATE TABLE term (id varchar(8) PRIMARY KEY, a text COLLATE "C", b text COLLATE ci NOT NULL UNIQUE);
CREATE TABLE part (id int4 NOT NULL, a int4 NOT NULL, b int4, PRIMARY KEY (id, a)) PARTITION BY RANGE (a);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (MINVALUE) TO (1);
CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (1) TO (MAXVALUE);
CREATE TABLE parent (id int4 PRIMARY KEY, a int4, b int4 NOT NULL);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE half (id int4 NOT NULL, a int4 NOT NULL, b int4);
CREATE UNIQUE INDEX ON half (id) WHERE a > 1; CREATE UNIQUE INDEX ON half ((id + a * 10 + coalesce(b, 5) * 100));
CREATE TABLE late (id int4 NOT NULL UNIQUE DEFERRABLE, a int4 NOT NULL, b int4);
CREATE VIEW seen AS SELECT id, a, b FROM one WHERE b > 0;
CREATE VIEW pairs AS SELECT o.id, t.a, t.b FROM one o JOIN two t ON t.id = o.a;
CREATE VIEW sums AS SELECT id, max(a) AS a, count(*) AS b FROM none GROUP BY id;
"""
NULLS_NOT_DISTINCT = "CREATE UNIQUE INDEX ON joins.solid (id) NULLS NOT DISTINCT; CREATE UNIQUE INDEX ON joins.solid2 (id, b) NULLS NOT DISTINCT;"  # from 15 on

# Table: the values of its columns; a None may be NULL.
NUMBERS, MAYBE = [0, 1, 2, 3], [0, 1, 2, None]
WORDS, SOFT = ["a", "A", "b", "B"], ["a", "b", "c"]
TABLES = {
    "one": (NUMBERS, MAYBE, NUMBERS), "two": (NUMBERS, NUMBERS, MAYBE), "keys": (NUMBERS, NUMBERS, MAYBE), "hole": (MAYBE, MAYBE, NUMBERS),
    "solid": (MAYBE, MAYBE, MAYBE), "solid2": (MAYBE, MAYBE, NUMBERS), "none": (MAYBE, MAYBE, NUMBERS), "part": (NUMBERS, NUMBERS, MAYBE),
    "parent": (NUMBERS, MAYBE, NUMBERS), "child": (NUMBERS, MAYBE, NUMBERS), "half": (NUMBERS, NUMBERS, MAYBE), "late": (NUMBERS, NUMBERS, MAYBE),
    "wide": ([9007199254740992, 9007199254740993, 1, 2], NUMBERS, ["9007199254740992", 1, 2]), "loud": ([9007199254740992, 1, 2, 1.5], [1, 2, 1.5], MAYBE),
    "word": (WORDS, SOFT, WORDS), "term": (WORDS, [*WORDS, None], WORDS),
}
NUMERIC = [name for name in TABLES if name not in ("word", "term", "child")] + ["seen", "pairs", "sums"]
TEXTUAL = ["word", "term", "word"]


def fill(rng):
    """INSERTs of random rows; rows that a key refuses are left out by the server."""
    lines = [f"TRUNCATE {', '.join('joins.' + name for name in TABLES)};"]
    for name, columns in TABLES.items():
        for _ in range(rng.choice([0, 3, 6, 10, 10])):
            values = ", ".join("NULL" if value is None else f"'{value}'" for value in (rng.choice(column) for column in columns))
            conflict = "" if name in ("late", "half") else " ON CONFLICT DO NOTHING"
            lines.append(f"INSERT INTO joins.{name} SELECT {values}{conflict};" if conflict else guarded(name, values))
    return lines


def guarded(name, values):
    """ON CONFLICT takes no deferrable key: an error of a key is caught instead."""
    return f"DO $$ BEGIN INSERT INTO joins.{name} VALUES ({values}); EXCEPTION WHEN unique_violation THEN NULL; END $$;"


class Tree:
    """A statement: `core` is its FROM and WHERE, `sql` has an ORDER BY and a LIMIT that nothing reaches."""

    def __init__(self, seed):
        self.rng = random.Random(f"tree {seed}")
        self.aliases = 0
        self.words = self.rng.random() < 0.15
        self.columns = []  # alias.column of everything that FROM holds
        source = self.item(self.rng.choice([2, 2, 3, 3, 4]))
        if self.rng.random() < 0.2:
            source += f", {self.item(1)}"
        where = f" WHERE {self.condition(self.columns, self.columns)}" if self.rng.random() < 0.4 else ""
        self.core = f"FROM {source}{where}"
        self.sql = self.statement()

    # ---- FROM ----

    def item(self, relations):
        """A FROM item of so many relations."""
        rng = self.rng
        if relations == 1:
            return self.leaf()
        left_count = rng.randrange(1, relations)
        before = len(self.columns)
        left = self.item(left_count)
        lefts = self.columns[before:]
        kind = rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "LEFT JOIN", "FULL JOIN"])
        if kind in ("JOIN", "LEFT JOIN", "CROSS JOIN") and rng.random() < 0.12 and not self.words:
            return f"{left} {kind} {self.lateral(lefts)}{'' if kind == 'CROSS JOIN' else ' ON true'}"
        middle = len(self.columns)
        right = self.item(relations - left_count)
        rights = self.columns[middle:]
        if relations - left_count > 1:
            right = f"({right})"
        if kind == "CROSS JOIN":
            return f"{left} CROSS JOIN {right}"
        if rng.random() < 0.15 and left_count == 1 and relations == 2:
            return f"{left} {kind} {right} USING ({rng.choice(['id', 'id, a', 'a'])})"
        if kind == "FULL JOIN":  # the server takes no other conditions there
            return f"{left} {kind} {right} ON {' AND '.join(f'{rng.choice(lefts)} = {rng.choice(rights)}' for _ in range(rng.choice([1, 1, 2])))}"
        return f"{left} {kind} {right} ON {self.condition(lefts, rights)}"

    def name(self):
        self.aliases += 1
        return f"t{self.aliases}"

    def leaf(self):
        rng, alias = self.rng, self.name()
        table = f"joins.{rng.choice(TEXTUAL if self.words else NUMERIC)}"
        if rng.random() < 0.1 and table == "joins.parent":
            table = "ONLY joins.parent"
        self.columns += [f"{alias}.id", f"{alias}.a", f"{alias}.b"]
        if rng.random() < 0.7 or self.words:
            return f"{table} {alias}"
        return f"({self.derived(table)}) {alias}"

    def derived(self, table):
        """A sub-select with columns id, a and b."""
        rng = self.rng
        other = f"joins.{rng.choice(NUMERIC)}"
        return rng.choice([
            f"SELECT id, max(a) AS a, count(*) AS b FROM {table} GROUP BY id",
            f"SELECT id, a, min(b) AS b FROM {table} GROUP BY id, a",
            f"SELECT DISTINCT id, a, 1 AS b FROM {table}",
            f"SELECT DISTINCT ON (id) id, a, b FROM {table} ORDER BY id, a, b",
            f"SELECT b AS id, a, id AS b FROM {table} WHERE a = 1",
            f"SELECT max(id) AS id, max(a) AS a, max(b) AS b FROM {table}",
            f"SELECT id, a, b FROM {table} LIMIT 1",
            f"SELECT id, a, b FROM {table} UNION SELECT id, a, b FROM {other}",
            f"SELECT id, a, b FROM {table} UNION ALL SELECT id, a, b FROM {other}",
            f"SELECT x.id, y.a, y.b FROM {table} x JOIN {other} y ON y.id = x.a",
            f"SELECT x.id, y.id AS a, y.b FROM {table} x LEFT JOIN {other} y ON y.id = x.id",
            f"SELECT id, a, row_number() OVER (ORDER BY a) AS b FROM {table}",
            f"SELECT id AS id, a + 1 AS a, b FROM {table} WHERE b IS NOT NULL",
            f"SELECT v.id, v.a, v.b FROM (VALUES (1, 2, 3), (1, 2, 3), (2, NULL, 1)) v(id, a, b)"])

    def lateral(self, lefts):
        alias, outer = self.name(), self.rng.choice(lefts)
        self.columns += [f"{alias}.id", f"{alias}.a", f"{alias}.b"]
        table = f"joins.{self.rng.choice(NUMERIC)}"
        return "LATERAL " + self.rng.choice([
            f"(SELECT x.id, x.a, x.b FROM {table} x WHERE x.id = {outer}) {alias}",
            f"(SELECT max(x.id) AS id, max(x.a) AS a, count(*) AS b FROM {table} x WHERE x.id = {outer}) {alias}",
            f"(SELECT x.id, x.a, x.b FROM {table} x WHERE x.id >= {outer} ORDER BY x.id, x.a, x.b LIMIT 1) {alias}",
            f"(VALUES (1, {outer}, 2), (1, {outer}, 2)) {alias}(id, a, b)"])

    # ---- conditions ----

    def condition(self, lefts, rights):
        rng = self.rng
        terms = [self.term(lefts, rights) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
        return (" OR " if rng.random() < 0.1 else " AND ").join(terms)

    def term(self, lefts, rights):
        rng = self.rng
        left, right, value = rng.choice(lefts), rng.choice(rights), "'a'" if self.words else rng.choice(["1", "2", "'1'"])
        equal = [f"{left} = {right}", f"{right} = {left}"]
        if self.words:
            more = [f'{left} = {right} COLLATE ci', f'{left} = {right} COLLATE "C"', f"{left} = 'a' COLLATE ci", f"lower({left}) = lower({right})", f"{left}::text = {right}::text",
                    f"{left} = 'a'::citext", f"{left}::varchar(1) = {right}"]
        else:
            more = [f"{left} + 0 = {right}", f"{left}::int8 = {right}::int8", f"{left}::float8 = {right}", f"{left} = {value} + 0", f"{left} < {right}", f"{left} IN ({value}, 0)",
                    f"{left} = ANY (ARRAY[{value}])", f"({left}, {right}) = (1, 2)", f"{left} IS NOT DISTINCT FROM {right}", f"NOT {left} <> {right}", f"{left} = ({left}) * 1"]
        return rng.choice(equal * 4 + [f"{left} = {value}"] * 3 + [f"{right} = {value}", f"{left} IS NOT NULL", f"{right} IS NULL", f"{left} = {left}", "true"] + more)

    # ---- the rest ----

    def statement(self):
        rng = self.rng
        first, second, third = (rng.choice(self.columns) for _ in range(3))
        order = rng.choice([first, f"{first} DESC", f"{first}, {second}", f"{first} DESC NULLS LAST, {second}"])
        form = rng.random()
        if form < 0.08:
            return f"SELECT DISTINCT {first}, {second} AS second, {third} AS third {self.core} ORDER BY {first} LIMIT 100000"
        if form < 0.16:
            return f"SELECT {first}, {second} AS second, count(*) {self.core} GROUP BY {first}, {second} ORDER BY {first} LIMIT 100000"
        return f"SELECT {first} AS x, {third} AS y {self.core} ORDER BY {order} LIMIT 100000"
