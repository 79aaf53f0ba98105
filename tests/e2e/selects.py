"""Random SELECT statements over a world: joins, derived tables, CTEs, grouping, set operations, windows, any ORDER BY.

It knows SQL and must not know how statements are sent or what is rewritten. A statement is kept in parts, so that a
failing one can be made smaller by leaving parts out.
"""
import copy
from typing import NamedTuple, Optional

from worlds import SMALL, Column, Kind

COUNT = Kind("int8", [], "int")
ALIASES = ["id", "n", "m", "p1", "q2", "x", "k", "s3"]


class Item(NamedTuple):
    """One item of ORDER BY: a position, a bare name or an expression, and what follows it."""
    text: str
    tail: str
    kind: str  # "position", "name", "expression"
    position: Optional[int] = None  # the output column that it means, where known


class Source(NamedTuple):
    """One item of FROM and how it is joined to what stands before."""
    join: str
    text: str
    on: str


class Select:
    """Everything about one statement. Fragments may hold {v} for a value, whose number is given at the end."""

    def __init__(self):
        self.withs, self.sources, self.outputs, self.where, self.group, self.having, self.order = [], [], [], [], [], [], []
        self.distinct, self.rest, self.tail = "", [], ""
        self.features = set()

    def text(self, outputs=None, order=True):
        """The statement with $n, without LIMIT, and its parameters."""
        sources = "".join(("" if i == 0 else source.join) + source.text + ("" if i == 0 else source.on) for i, source in enumerate(self.sources))
        sql = f"WITH {', '.join(self.withs)} " if self.withs else ""
        sql += f"SELECT {self.distinct}{', '.join(self.outputs + (outputs or []))} FROM {sources}"
        sql += f" WHERE {' AND '.join(self.where)}" if self.where else ""
        sql += f" GROUP BY {', '.join(self.group)}" if self.group else ""
        sql += f" HAVING {' AND '.join(self.having)}" if self.having else ""
        sql += "".join(self.rest)
        if order:
            sql += f" ORDER BY {', '.join(item.text + item.tail for item in self.order)}"
        params, parts = [], sql.split("{v")
        for number, part in enumerate(parts[1:], 1):
            value, after = part.split("}", 1)
            params.append(int(value))
            parts[number] = f"${number}{after}"
        return "".join(parts), params

    def smaller(self):
        """Statements with one part less."""
        for name in ("rest", "order", "where", "having", "outputs", "group", "sources", "withs"):
            parts = getattr(self, name)
            for i in range(len(parts)):
                if len(parts) > 1 or name in ("rest", "where", "having", "group", "withs"):
                    less = copy.deepcopy(self)
                    del getattr(less, name)[i]
                    yield less
        for name in ("distinct", "tail"):
            if getattr(self, name):
                less = copy.deepcopy(self)
                setattr(less, name, "")
                yield less
        for i, item in enumerate(self.order):
            if item.tail:
                less = copy.deepcopy(self)
                less.order[i] = item._replace(tail=" DESC" if "DESC" in item.tail and item.tail != " DESC" else "")
                yield less


class Scope:
    """What the sources of a level offer: columns with the alias that they are reached by."""

    def __init__(self):
        self.columns = []  # (alias, Column)

    def add(self, alias, columns):
        self.columns += [(alias, column) for column in columns]

    def pick(self, rng, test=lambda column: True):
        fitting = [(alias, column) for alias, column in self.columns if test(column)]
        return rng.choice(fitting) if fitting else None

    def int(self, rng, alias=None):
        fitting = [(a, column) for a, column in self.columns if column.kind.family == "int" and (alias is None or a == alias)]
        return "{}.{}".format(*(lambda pair: (pair[0], pair[1].name))(rng.choice(fitting))) if fitting else None


class Generator:
    """Makes Selects over one world."""

    def __init__(self, world, rng):
        self.world, self.rng = world, rng

    def chance(self, share):
        return self.rng.random() < share

    # ---- FROM -------------------------------------------------------------------------------------------------------

    def select(self):
        rng = self.rng
        s, scope = Select(), Scope()
        for number in range(rng.choice([1, 1, 1, 2, 2, 3])):
            self.source(s, scope, f"a{number}")
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            self.condition(s, scope)
        kind = rng.choice(["plain"] * 9 + ["group", "group", "distinct", "distinct", "distinct on", "set", "window", "locking"])
        s.features.add(kind)
        getattr(self, kind.replace(" ", "_"))(s, scope)
        for item in s.order:
            s.features.add("order " + item.kind)
        if len({("DESC" in item.tail or ">" in item.tail) for item in s.order}) > 1:
            s.features.add("mixed")
        return s

    def joined(self):
        """A tree of joins over two to four relations, sorted by a few of their columns."""
        rng, s, scope = self.rng, Select(), Scope()
        count = rng.choice([2, 2, 3, 3, 4])
        text = self.tree(s, scope, [f"a{i}" for i in range(count)])
        s.sources = [Source("", text, "")]
        for _ in range(rng.choice([0, 0, 0, 1])):
            self.condition(s, scope)
        s.outputs = [f"{alias}.{column.name}" for alias, column in scope.columns if column.name in ("id", "n", "m")]
        for _ in range(rng.choice([1, 1, 2])):
            alias, column = rng.choice(scope.columns)
            s.order.append(Item(f"{alias}.{column.name}", self.tail(), "expression"))
        s.features.add(f"tree of {count}")
        return s

    def tree(self, s, scope, aliases):
        """The text of a join tree; what it offers is added to the scope."""
        rng = self.rng
        if len(aliases) == 1:
            if self.chance(0.15):
                body, columns = self.body(None)
                scope.add(aliases[0], columns)
                return f"({body}) {aliases[0]}"
            relation = self.relation() if self.chance(0.2) else rng.choice(self.world.relations[:4])
            scope.add(aliases[0], relation.columns)
            return f"{relation.name} {aliases[0]}"
        cut, left, right = rng.randrange(1, len(aliases)), Scope(), Scope()
        one, two = self.tree(s, left, aliases[:cut]), self.tree(s, right, aliases[cut:])
        scope.columns += left.columns + right.columns
        how = rng.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN", "CROSS JOIN"])
        s.features.add(how.lower())
        if how == "CROSS JOIN":
            return f"{one} CROSS JOIN ({two})" if len(aliases) - cut > 1 else f"{one} CROSS JOIN {two}"
        two = f"({two})" if len(aliases) - cut > 1 else two
        common = sorted({c.name for _, c in left.columns} & {c.name for _, c in right.columns})
        if common and self.chance(0.12):
            return f"{one} {how} {two} USING ({', '.join(rng.sample(common, rng.choice([1, min(2, len(common))])))})"
        conditions = [self.equation(left, right) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
        if how != "FULL JOIN" and self.chance(0.3):
            conditions.append(rng.choice([f"{(left if self.chance(0.4) else right).int(rng) or 1} = 1", f"{right.int(rng) or 1} > 0", "true", f"{left.int(rng) or 1} = {left.int(rng) or 1}"]))
        return f"{one} {how} {two} ON {' AND '.join(conditions)}"

    def equation(self, left, right):
        one, two = left.int(self.rng), right.int(self.rng)
        if self.chance(0.5):  # keys meet more often than chance would have it
            one = next((f"{a}.id" for a, c in left.columns if c.name == "id"), one)
        if self.chance(0.5):
            two = next((f"{a}.id" for a, c in reversed(right.columns) if c.name == "id"), two)
        if not one or not two:
            return "true"
        return self.rng.choice([f"{one} = {two}", f"{two} = {one}"])

    def relation(self):
        return self.rng.choice(self.world.relations[:4] * 3 + self.world.relations[4:])

    def source(self, s, scope, alias):
        rng = self.rng
        kind = rng.choice(["relation"] * 9 + ["derived", "derived", "with", "values", "function", "lateral"])
        if kind == "lateral" and not scope.columns:
            kind = "derived"
        if kind == "relation":
            relation = self.relation()
            kind = "view" if relation.name.startswith("v") else "table"
            text, columns = f"{'ONLY ' * (kind == 'table' and self.chance(0.05))}{relation.name} {rng.choice(['', 'AS '])}{alias}", relation.columns
        elif kind == "values":
            columns = [Column("id", SMALL), Column("n", SMALL)]
            text = f"(VALUES (1, 1), (2, 1), (3, NULL), (3, 2)) {alias}(id, n)"
        elif kind == "function":
            columns = [Column("g", SMALL), Column("n", COUNT)]
            text = f"generate_series(1, 4) WITH ORDINALITY AS {alias}(g, n)"
        else:
            body, columns = self.body(scope.int(rng) if kind == "lateral" else None)
            text = f"{'LATERAL ' * (kind == 'lateral')}({body}) {alias}"
            if kind == "with":
                s.withs.append(f"w_{alias} AS {rng.choice(['', '', 'MATERIALIZED ', 'NOT MATERIALIZED '])}({body})")
                text = f"w_{alias} {alias}"
        s.features.add(kind)
        join, on = self.join(s, scope, alias, columns, kind) if scope.columns else ("", "")
        scope.add(alias, columns)
        s.sources.append(Source(join, text, on))

    def body(self, outer):
        """A sub-select of one relation, and its columns."""
        rng, relation = self.rng, self.relation()
        kind = rng.choice(["plain", "plain", "group", "distinct", "distinct on", "limit", "star"])
        fitting = [c for c in relation.columns if not (kind in ("group", "distinct", "distinct on", "limit") and (c.kind.loose or c.kind.unordered))]
        chosen = relation.columns if kind == "star" else rng.sample(fitting, min(len(fitting), rng.choice([2, 3, 4, 6])))
        shown = [Column(c.name if self.chance(0.8) or kind == "star" else f"d{i}", c.kind) for i, c in enumerate(chosen)]
        listed = "*" if kind == "star" else ", ".join(f"z.{c.name}" + (f" AS {d.name}" if c.name != d.name else "") for c, d in zip(chosen, shown))
        names = [f"z.{c.name}" for c in chosen]
        where = f" WHERE z.{self.ints(relation)} = {outer}" if outer and self.ints(relation) else f" WHERE z.{self.ints(relation)} > 0" if self.chance(0.3) and self.ints(relation) else ""
        if kind == "group":
            return f"SELECT {listed}, count(*) AS c FROM {relation.name} z{where} GROUP BY {', '.join(names)}", shown + [Column("c", COUNT)]
        if kind == "distinct":
            return f"SELECT DISTINCT {listed} FROM {relation.name} z{where}", shown
        if kind == "distinct on":
            return f"SELECT DISTINCT ON ({names[0]}) {listed} FROM {relation.name} z{where} ORDER BY {', '.join(names)}", shown
        if kind == "limit":
            return f"SELECT {listed} FROM {relation.name} z{where} ORDER BY {', '.join(names)} LIMIT 3", shown
        return f"SELECT {listed} FROM {relation.name} z{where}", shown

    def ints(self, relation):
        names = [c.name for c in relation.columns if c.kind.family == "int" and c.kind.sql == "int4"]
        return self.rng.choice(names) if names else None

    def join(self, s, scope, alias, columns, kind):
        rng = self.rng
        new = Scope()
        new.add(alias, columns)
        how = rng.choice(["INNER JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ",", "NATURAL", "USING"])
        if kind == "lateral" and how in ("RIGHT JOIN", "FULL JOIN", "USING", "NATURAL"):
            how = "LEFT JOIN"
        s.features.add("comma" if how == "," else how.lower().replace("inner join", "join"))
        names = [c.name for c in columns]
        common = [c.name for _, c in scope.columns if c.name in names]
        if how == "USING" and common:
            return f" {rng.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'])} ", f" USING ({', '.join(rng.sample(sorted(set(common)), rng.choice([1, 1, min(2, len(set(common)))])))})"
        if how == "NATURAL" and common:
            return f" NATURAL {rng.choice(['JOIN', 'LEFT JOIN', 'FULL JOIN'])} ", ""
        if how in ("CROSS JOIN", ",", "NATURAL", "USING"):
            if how == "," and self.chance(0.8) and scope.int(rng) and new.int(rng):
                s.where.append(f"{scope.int(rng)} = {new.int(rng)}")
            return (", " if how == "," else " CROSS JOIN "), ""
        conditions = []
        for _ in range(rng.choice([1, 1, 2])):
            left, right = scope.int(rng), new.int(rng)
            conditions.append(rng.choice([f"{left} = {right}", f"{right} = {left}"]) if left and right else "true")
        if self.chance(0.15) and how != "FULL JOIN" and new.int(rng):
            conditions.append(rng.choice([f"{new.int(rng)} = 1", f"{new.int(rng)} > 0"]))
        return f" {how} ", f" ON {' AND '.join(conditions)}"

    def condition(self, s, scope):
        rng, one, two = self.rng, scope.int(self.rng), scope.int(self.rng)
        if not one:
            return
        s.where.append(rng.choice([
            f"{one} = {{v{rng.randrange(3)}}}", f"{one} = {rng.randrange(3)}", f"{one} IS NOT NULL", f"{one} <> {{v1}}", f"{one} IN (0, 1, 2)",
            f"{one} = {two}", f"({one} > 0 OR {two} = 1)", f"{one} >= {{v0}}", f"EXISTS (SELECT FROM t1 e WHERE e.n = {one})", f"{one} IS NOT DISTINCT FROM {two}"]))

    # ---- what a level selects and sorts by --------------------------------------------------------------------------

    def expression(self, scope):
        """An expression over input columns, and its kind."""
        rng = self.rng
        alias, column = scope.pick(rng)
        name = f"{alias}.{column.name}"
        if column.kind.family == "int" and column.kind.sql in ("int4", "int8"):
            return rng.choice([name, name, f"{name} % 3", f"-({name} % 5)", f"coalesce({name}, 7)", f"({name} IS NULL)", f"CASE WHEN {name} > 1 THEN 1 END",
                               f"{name}::text", f"nullif({name}, 1)", f"greatest({name}, 1)", f"{name} % 3 + 1"]), None
        if column.kind.family == "text":
            return rng.choice([name, name, f"lower({name})", f"upper({name})", f"length({name})", f"{name} || '-'", f"coalesce({name}, 'zz')",
                               f'{name} COLLATE "C"', f"{name} COLLATE kinds.de", f"{name} COLLATE kinds.ci", f"substr({name}, 1, 1)"]), None
        return rng.choice([name] * 6 + [f"({name} IS NULL)", f"coalesce({name}, {name})"]), column.kind

    def output(self, scope, star=True):
        rng = self.rng
        draw = rng.random()
        if star and draw < 0.12:
            return "*"
        if star and draw < 0.2:
            return scope.pick(rng)[0] + ".*"
        if draw < 0.3:
            return rng.choice(["1 AS one", "'x' AS lit", "NULL AS nothing", "(SELECT count(*) FROM t1 c) AS c", "row(1, 'a') AS r", "'u'"])
        text, _ = self.expression(scope)
        return text + (f" AS {rng.choice(ALIASES)}" if self.chance(0.4) else "")

    def tail(self):
        return self.rng.choice(["", "", "", " ASC", " DESC", " DESC", " NULLS FIRST", " NULLS LAST", " DESC NULLS LAST", " DESC NULLS FIRST"])

    def items(self, scope, outputs):
        """ORDER BY of a plain level."""
        rng, items = self.rng, []
        way = rng.choice([None, None, "", " DESC"])
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            tail = self.tail() if way is None else way
            kind = rng.choice(["expression", "expression", "column", "column", "column", "name", "name", "position"])
            alias, column = scope.pick(rng)
            if kind == "position":
                items.append(Item(str(rng.randrange(len(outputs)) + 1), tail, kind))
            elif kind == "name":
                given = [output.split(" AS ")[1] for output in outputs if " AS " in output and output[0] != "("]
                items.append(Item(rng.choice(given) if given and self.chance(0.6) else column.name, tail, kind))
            elif kind == "column":
                tail = rng.choice([" USING <", " USING >"]) if self.chance(0.05) else tail
                items.append(Item(f"{alias}.{column.name}", tail, "expression"))
            else:
                items.append(Item(self.expression(scope)[0], tail, "expression"))
        if self.chance(0.3):
            ids = [alias for alias, column in scope.columns if column.name == "id"]
            if ids:
                items.append(Item(f"{rng.choice(ids)}.id", self.tail() if way is None else way, "expression"))
        return items

    def plain(self, s, scope):
        s.outputs = [self.output(scope) for _ in range(self.rng.choice([1, 2, 3, 4]))]
        s.order = self.items(scope, s.outputs)

    def locking(self, s, scope):
        self.plain(s, scope)
        s.tail = self.rng.choice([" FOR UPDATE", " FOR SHARE", f" FOR SHARE OF {self.rng.choice(scope.columns)[0]}", " FOR NO KEY UPDATE"])

    def exact(self, scope, most):
        """Columns whose equal values look the same, as expressions."""
        found = [f"{alias}.{column.name}" for alias, column in scope.columns if not (column.kind.loose or column.kind.unordered)]
        return self.rng.sample(found, min(len(found), most))

    def group(self, s, scope):
        rng = self.rng
        s.group = self.exact(scope, rng.choice([1, 2, 3])) or ["1"]
        if self.chance(0.2) and scope.int(rng):
            s.group.append(f"{scope.int(rng)} % 2")
        aggregates = ["count(*)", "count(*) AS n", "count(*) % 2"] + ([f"sum({scope.int(rng)}) AS total", f"max({scope.int(rng)})", f"min({scope.int(rng)}) AS id"] if scope.int(rng) else [])
        s.outputs = rng.sample(s.group, rng.randrange(len(s.group)) + 1) + rng.sample(aggregates, rng.choice([0, 1, 2]))
        if self.chance(0.3):
            s.outputs[0] += f" AS {rng.choice(ALIASES)}"
        if self.chance(0.2):
            s.having.append("count(*) > {v0}")
        candidates = [Item(text, self.tail(), "expression") for text in s.group if text != "1"] + [Item(str(i + 1), self.tail(), "position") for i in range(len(s.outputs))]
        candidates += [Item(output.split(" AS ")[0], self.tail(), "expression") for output in s.outputs] + [Item("count(*)", self.tail(), "expression")]
        candidates += [Item(output.split(" AS ")[1], self.tail(), "name") for output in s.outputs if " AS " in output]
        s.order = [item for item in rng.sample(candidates, min(len(candidates), rng.choice([1, 2, 3]))) if item.text != "1" or item.kind == "position"] or [Item("1", "", "position")]

    def positions(self, s, count=None):
        rng = self.rng
        places = rng.sample(range(len(s.outputs)), rng.randrange(len(s.outputs)) + 1)
        items = []
        for place in places:
            output = s.outputs[place]
            named = output.split(" AS ")[1] if " AS " in output else None
            text = rng.choice([named or str(place + 1), str(place + 1)] + ([] if named or count else [output]))
            items.append(Item(text, self.tail(), "position", place + 1))
        return items

    def distinct(self, s, scope):
        s.distinct = "DISTINCT "
        s.outputs = self.exact(scope, self.rng.choice([1, 2, 3])) or ["1 AS one"]
        if self.chance(0.3) and scope.int(self.rng):
            s.outputs.append(f"{scope.int(self.rng)} % 2 AS half")
        if self.chance(0.2):
            s.outputs.append("'c' AS c")
        s.order = self.positions(s)

    def distinct_on(self, s, scope):
        """Every output and ON expression is sorted by, so that it is certain which row of a group stays."""
        rng = self.rng
        names = self.exact(scope, 4) or ["1"]
        on = names[:rng.choice([1, 1, 2])]
        s.distinct = f"DISTINCT ON ({', '.join(rng.sample(on, len(on)))}) "
        s.outputs = rng.sample(names, rng.randrange(len(names)) + 1)
        s.order = [Item(name, self.tail(), "expression") for name in names if name != "1"] or [Item("1", "", "position")]

    def set(self, s, scope):
        rng = self.rng
        how = rng.choice(["UNION", "UNION", "UNION ALL", "INTERSECT", "EXCEPT", "UNION ALL"])
        s.features.add(how.lower())
        shared = [column for column in ("n", "m") if any(c.name == column for _, c in scope.columns)]
        if not shared:
            return self.plain(s, scope)
        name = {column: next(f"{alias}.{column}" for alias, c in scope.columns if c.name == column) for column in shared}
        s.outputs = [name[column] + f" AS {column}" for column in shared] + ["'one' AS arm"] * self.chance(0.5)
        arm = ", ".join(f"u.{column}" for column in shared) + (", " + rng.choice(["'two'", "'one'"]) if len(s.outputs) > len(shared) else "")
        s.rest = [f" {how} SELECT {arm} FROM t{rng.randrange(1, 5)} u"]
        s.order = self.positions(s, count=True)

    def window(self, s, scope):
        self.plain(s, scope)
        one, two = scope.int(self.rng), scope.int(self.rng)
        if one:
            s.outputs.append(self.rng.choice([f"count(*) OVER (PARTITION BY {one}) AS w", f"rank() OVER (ORDER BY {one}) AS w", f"sum({one}) OVER (PARTITION BY {two}) AS w", "count(*) OVER () AS w"]))
            if self.chance(0.3):
                s.order.insert(0, Item("w", self.tail(), "name"))
