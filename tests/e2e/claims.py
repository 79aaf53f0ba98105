"""Random statements with derived tables of every kind, from a seed, over tables that are nearly empty or full of NULL.

It knows SQL and must not know how anything is proved. joins.py has the joins that pages are made of; here are the
statements around them: grouping, DISTINCT, sets, LATERAL, WITH, views, functions, as deep as three levels.
"""
SCHEMA = """
DROP SCHEMA IF EXISTS claims CASCADE; CREATE SCHEMA claims; SET search_path = claims;
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE pk (id int PRIMARY KEY, a int, b int8);
CREATE TABLE pair (x int, y int, a int, PRIMARY KEY (x, y));
CREATE TABLE two (id int8 PRIMARY KEY, u int NOT NULL UNIQUE, a int);
CREATE TABLE hole (x int UNIQUE, a int NOT NULL, b int);
CREATE TABLE solid (x int, y int);
CREATE TABLE solid1 (x int, a int);
CREATE TABLE bag (a int, b int NOT NULL, f float8);
CREATE TABLE word (w text COLLATE ci PRIMARY KEY, t text, x int);
CREATE TABLE term (w text PRIMARY KEY, v varchar NOT NULL UNIQUE, a int);
CREATE TABLE parent (id int PRIMARY KEY, a int);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE part (id int PRIMARY KEY, a int) PARTITION BY RANGE (id);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (MINVALUE) TO (2);
CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (2) TO (MAXVALUE);
CREATE VIEW v1 AS SELECT pk.id, pk.a, pair.y FROM pk LEFT JOIN pair ON pair.x = pk.id AND pair.y = pk.a;
CREATE VIEW v2 (g, n) AS SELECT a, count(*) FROM bag GROUP BY a;
CREATE VIEW v3 AS SELECT DISTINCT a, b FROM bag;
CREATE VIEW v4 AS SELECT p.id AS i, p.b, q.u FROM pk p JOIN two q USING (id);
CREATE VIEW v5 AS SELECT a FROM bag UNION SELECT x FROM hole;
CREATE VIEW v6 AS SELECT v1.id, v2.n FROM v1 JOIN v2 ON v2.g = v1.a;
"""
NULLS_NOT_DISTINCT = """
CREATE UNIQUE INDEX ON claims.solid (x, y) NULLS NOT DISTINCT;
CREATE UNIQUE INDEX ON claims.solid1 (x) NULLS NOT DISTINCT;
"""  # from 15 on

# Table: the choices of each column, None for NULL, and how many rows at most.
NUMBER, MAYBE, LETTER = [0, 1, 2, 3], [0, 1, 2, 3, None, None], ["a", "A", "b", "B"]
DATA = {
    "pk": ((NUMBER, MAYBE, MAYBE), 9), "pair": ((NUMBER, NUMBER, MAYBE), 9), "two": ((NUMBER, NUMBER, MAYBE), 9),
    "hole": ((MAYBE, NUMBER, MAYBE), 9), "solid": ((MAYBE, MAYBE), 9), "solid1": ((MAYBE, MAYBE), 5),
    "bag": ((MAYBE, NUMBER, [None, 0, 1, 2]), 9), "word": ((LETTER, ["a", "A", None], MAYBE), 5),
    "term": ((LETTER, LETTER, MAYBE), 5), "parent": ((NUMBER, MAYBE), 4), "child": ((NUMBER, MAYBE), 4),
    "part": ((NUMBER, MAYBE), 4),
}
# What may stand in FROM: its columns, i for numbers, f for float8, t for texts.
TABLES = {
    "pk": "id:i a:i b:i", "pair": "x:i y:i a:i", "two": "id:i u:i a:i", "hole": "x:i a:i b:i", "solid": "x:i y:i",
    "solid1": "x:i a:i", "bag": "a:i b:i f:f", "word": "w:t t:t x:i", "term": "w:t v:t a:i", "parent": "id:i a:i",
    "ONLY parent": "id:i a:i", "child": "id:i a:i", "part": "id:i a:i", "v1": "id:i a:i y:i", "v2": "g:i n:i",
    "v3": "a:i b:i", "v4": "i:i b:i u:i", "v5": "a:i", "v6": "id:i n:i",
}


def fill(rng):
    """INSERTs of random rows; rows that a key refuses are left out by the server."""
    lines = [f"TRUNCATE {', '.join('claims.' + name for name in DATA)};"]
    for name, (columns, most) in DATA.items():
        for _ in range(rng.randint(0, most)):
            values = ", ".join("NULL" if value is None else f"'{value}'" for value in map(rng.choice, columns))
            lines.append(f"INSERT INTO claims.{name} VALUES ({values}) ON CONFLICT DO NOTHING;")
    return lines


class Column:
    """A column that can be written: alias.name, and what kind of values it has."""

    def __init__(self, alias, name, kind):
        self.name, self.kind, self.text = name, kind, f"{alias}.{name}"


class Statement:
    """`sql` is the statement; `source` its FROM and WHERE if it is SELECT * of them, else None; `head` its WITH."""

    def __init__(self, rng):
        self.rng, self.number, self.queries = rng, 0, []
        self.head = self._with() if rng.random() < 0.2 else ""
        self.source = None
        if rng.random() < 0.5:
            self.source, _ = self._from(2)
            self.sql = f"{self.head}SELECT * FROM {self.source}"
        else:
            self.sql = self.head + self._select(2)[0]

    def _one_in(self, n):
        return self.rng.randrange(n) == 0

    def _alias(self, letter="t"):
        self.number += 1
        return f"{letter}{self.number}"

    def _with(self):
        parts = []
        for _ in range(self.rng.randint(1, 2)):
            sql, columns = self._select(1)
            name = self._alias("w")
            parts.append(f"{name} AS ({sql})")
            self.queries.append((name, columns))
        return f"WITH {', '.join(parts)} "

    # ---- items of FROM: each gives its text and its columns

    def _named(self, text, columns, alias, always=False):
        """Puts the alias behind, now and then with names for the first columns."""
        if not always and not self._one_in(6):
            return f"{text} AS {alias}", [Column(alias, name, kind) for name, kind in columns]
        count = len(columns) if always else self.rng.randint(1, len(columns))
        names = [self._alias("c") for _ in range(count)]
        renamed = [Column(alias, name, kind) for name, (_, kind) in zip(names + [name for name, _ in columns[count:]], columns)]
        return f"{text} AS {alias} ({', '.join(names)})", renamed

    def _table(self):
        name = self.rng.choice(list(TABLES))
        return self._named(name, [column.split(":") for column in TABLES[name].split()], self._alias())

    def _derived(self, depth, before=None):
        sql, columns = self._select(depth - 1, before)
        return self._named(f"{'LATERAL ' if before else ''}({sql})", columns, self._alias())

    def _query(self):
        name, columns = self.rng.choice(self.queries)
        return self._named(name, columns, self._alias())

    def _function(self):
        alias, last = self._alias(), self.rng.randint(0, 2)
        if self._one_in(2):
            return f"generate_series(0, {last}) WITH ORDINALITY AS {alias}", [Column(alias, "ordinality", "i")]
        text = f"unnest('{{1,1,2}}'::int[]) WITH ORDINALITY AS {alias} (x, n)"
        return text, [Column(alias, "x", "i"), Column(alias, "n", "i")]

    def _named_join(self, depth):
        text, columns = self._join(depth - 1, plain=True)
        return self._named(f"({text})", [(column.name, column.kind) for column in columns], self._alias(), always=True)

    def _item(self, depth):
        pick = self.rng.random()
        if depth <= 0 or pick < 0.45:
            return self._table()
        if pick < 0.62:
            return self._derived(depth)
        if pick < 0.68 and self.queries:
            return self._query()
        if pick < 0.73:
            return self._function()
        return self._named_join(depth) if pick < 0.77 else self._join(depth)

    # ---- joins

    def _side(self, depth, plain, before=None):
        if plain:
            return self._table()
        return self._derived(depth, before) if before else self._item(depth)

    def _condition_of(self, left, right):
        """Mostly equalities between the sides; FULL JOIN takes only those."""
        first = self.rng.choice(left)
        partners = [column for column in right if column.kind == first.kind]
        if not partners or self._one_in(4):
            return self._condition(left + right)
        pair = [first.text, self.rng.choice(partners).text]
        self.rng.shuffle(pair)
        return " = ".join(pair)

    def _using(self, left, right):
        names = [column.name for column in left]
        others = [column.name for column in right]
        common = {column.name for column in left for other in right if (column.name, column.kind) == (other.name, other.kind)}
        common = sorted(name for name in common if names.count(name) == others.count(name) == 1)
        return self.rng.sample(common, self.rng.randint(1, len(common))) if common else []

    def _join(self, depth, plain=False):
        left_text, left = self._side(depth - 1, plain)
        kind = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        lateral = not plain and depth > 0 and kind in ("JOIN", "LEFT JOIN") and self._one_in(4)
        right_text, right = self._side(depth - 1, plain, left if lateral else None)
        if " JOIN " in right_text and not right_text.startswith(("(", "LATERAL")):
            right_text = f"({right_text})"
        text = f"{left_text} {kind} {right_text}"
        using = self._using(left, right) if self._one_in(8) else []
        if kind == "CROSS JOIN":
            return text, left + right
        if using and not plain:
            return f"{text} USING ({', '.join(using)})", left + right
        if kind != "FULL JOIN":
            on = " AND ".join(self._condition_of(left, right) for _ in range(self.rng.choice([1, 1, 2, 2, 3])))
            return f"{text} ON {on}", left + right
        pairs = [(one, other) for one in left for other in right if one.kind == other.kind]
        if not pairs:
            return f"{left_text} CROSS JOIN {right_text}", left + right
        one, other = self.rng.choice(pairs)
        return f"{text} ON {one.text} = {other.text}", left + right

    def _condition(self, columns, outer=()):
        rng, pick, column = self.rng, self.rng.random(), self.rng.choice(columns)
        beyond = [other for other in outer if other.kind == column.kind]
        if beyond and rng.random() < 0.4:
            return f"{column.text} = {rng.choice(beyond).text}"
        others = [other for other in columns if other is not column and (other.kind == column.kind or
                                                                      (self._one_in(5) and "t" not in (other.kind, column.kind)))]
        if pick < 0.55 and others:
            return f"{column.text} = {rng.choice(others).text}"
        if pick < 0.70:
            return f"{column.text} = " + ("'a'" if column.kind == "t" else str(rng.randint(0, 3)))
        if pick < 0.84:
            return f"{column.text} IS {rng.choice(['', 'NOT '])}NULL"
        if pick < 0.90:
            return f"({self._condition(columns)} OR {self._condition(columns)})"
        return "true" if pick < 0.95 else f"NOT ({self._condition(columns)})"

    def _from(self, depth, outer=None):
        text, columns = self._item(depth)
        if self._one_in(5):
            more, others = self._derived(depth, columns) if self._one_in(3) else self._item(depth - 1)
            text, columns = f"{text}, {more}", columns + others
        if outer or self._one_in(2):
            conditions = [self._condition(columns, outer or ()) for _ in range(self.rng.choice([1, 1, 2]))]
            text += f" WHERE {' AND '.join(conditions)}"
        return text, columns

    # ---- SELECT: gives its text and the names and kinds of its columns

    def _set(self, depth, outer):
        width = self.rng.randint(1, 2)
        left, columns = self._plain(depth - 1, outer, width)
        right, _ = self._plain(depth - 1, outer, width)
        return f"({left}) {self.rng.choice(['UNION', 'UNION ALL', 'INTERSECT', 'EXCEPT'])} ({right})", columns

    def _plain(self, depth, outer, width):
        """A SELECT of so many numbers."""
        text, columns = self._from(depth, outer)
        numbers = [column.text for column in columns if column.kind == "i"] or ["1"]
        names = [self._alias("c") for _ in range(width)]
        items = ", ".join(f"{self.rng.choice(numbers)} AS {name}" for name in names)
        return f"SELECT {items} FROM {text}", [(name, "i") for name in names]

    def _expression(self, column):
        if column.kind != "i" or not self._one_in(10):
            return column.text
        return self.rng.choice([f"coalesce({column.text}, 7)", f"{column.text} + 0", f"-{column.text}"])

    def _grouped(self, items, names, source, columns):
        by = [self.rng.choice([item, str(place + 1), name]) for place, (item, name) in enumerate(zip(items, names))]
        by += [column.text for column in columns if self._one_in(10)]
        having = " HAVING count(*) > 1" if self._one_in(5) else ""
        listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names))
        return f"SELECT {listed}, count(*) AS many FROM {source} GROUP BY {', '.join(by)}{having}"

    def _select(self, depth, outer=None):
        if self._one_in(12):
            return self._set(depth, outer)
        source, columns = self._from(depth, outer)
        picked = self.rng.sample(columns, self.rng.randint(1, min(5, len(columns))))
        items, names = [self._expression(column) for column in picked], [self._alias("c") for _ in picked]
        listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names))
        out = [(name, column.kind) for name, column in zip(names, picked)]
        form = self.rng.random()
        if form < 0.12:
            return self._grouped(items, names, source, columns), [*out, ("many", "i")]
        if form < 0.20:
            return f"SELECT DISTINCT {listed} FROM {source}", out
        if form < 0.26:
            on = self.rng.sample(items, self.rng.randint(1, len(items)))
            return f"SELECT DISTINCT ON ({', '.join(on)}) {listed} FROM {source}", out
        if form < 0.30:
            return f"SELECT {listed} FROM {source} LIMIT {self.rng.choice([0, 1, 1, 2])}", out
        if form < 0.33:
            having = self.rng.choice(["", "", " HAVING count(*) > 0"])
            return f"SELECT count(*) AS many, max({columns[0].text}) AS most FROM {source}{having}", [("many", "i"), ("most", columns[0].kind)]
        if form < 0.35:
            return f"SELECT {listed} FROM {source} GROUP BY GROUPING SETS (({', '.join(items)}), ())", out
        if form < 0.37:
            return f"SELECT {listed}, generate_series(1, 2) AS step FROM {source}", [*out, ("step", "i")]
        return f"SELECT {listed} FROM {source}", out
