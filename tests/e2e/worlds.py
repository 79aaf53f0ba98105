"""Random schemas from a seed: tables with every kind of key, views over them, few values and many ties and NULLs.

It knows types, tables and data and must not know what is asked of them. A world is a schema of its own; its relations
have the same names in each, so that what a proxy remembers of one is wrong for the next.
"""
import random
from typing import NamedTuple

KINDS = """
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS ltree;
CREATE EXTENSION IF NOT EXISTS hstore;
DROP SCHEMA IF EXISTS kinds CASCADE;
CREATE SCHEMA kinds;
CREATE TYPE kinds.mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE kinds.pair AS (x int4, y text);
CREATE DOMAIN kinds.amount AS int4 CHECK (VALUE < 1000);
CREATE DOMAIN kinds.label AS varchar(10);
CREATE DOMAIN kinds.deep AS kinds.amount;
CREATE COLLATION kinds.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION kinds.de (provider = icu, locale = 'de');
"""


class Kind(NamedTuple):
    """A column type. Equal values of a `loose` one may look different; an `unordered` one has no btree order."""
    sql: str
    values: list
    family: str = "other"
    loose: bool = False
    unordered: bool = False


INTS = [Kind("int2", ["-32768", "0", "1", "32767"], "int"), Kind("int4", ["-1", "0", "1", "2"], "int"),
        Kind("int8", ["-9223372036854775808", "0", "9007199254740993"], "int"), Kind("kinds.amount", ["1", "2", "999"], "int"),
        Kind("kinds.deep", ["1", "2", "3"], "int")]
TEXTS = [Kind('text COLLATE "C"', ["", "B", "a", "é", "a b"], "text"), Kind("text", ["", "B", "a", "it''s", "a\\b"], "text"),
         Kind("varchar(8)", ["", "a", "a ", "Z"], "text"), Kind('varchar COLLATE "POSIX"', ["x", "X"], "text"),
         Kind("text COLLATE kinds.de", ["a", "A", "ä", "b"], "text"), Kind("text COLLATE kinds.ci", ["a", "A", "b", "B"], "text", loose=True),
         Kind("citext", ["a", "A", "b", "B"], "citext", loose=True), Kind("kinds.label", ["a", "B"], "text"),
         Kind("bpchar(4)", ["a", "ab", ""], "bpchar"), Kind("name", ["n1", "N1"], "name")]
OTHERS = [
    Kind("numeric", ["1.0", "1.00", "-0.5", "NaN", "123456789012345678901234567890.5"], loose=True), Kind("numeric(8,2)", ["1", "1.5", "-3.25"]),
    Kind("float4", ["0.1", "NaN", "Infinity", "3.4028235e38"]), Kind("float8", ["0.1", "-0", "0", "NaN", "-Infinity"], loose=True),
    Kind("timestamptz", ["2026-01-01 00:00:00+00", "2026-01-01 00:00:00.000001+00", "infinity", "-infinity"]),
    Kind("timestamp(0)", ["2026-01-01", "2026-01-02"]), Kind("date", ["2026-01-01", "infinity", "0044-03-15 BC"]), Kind("time", ["10:00", "24:00"]),
    Kind("timetz", ["10:00+00", "10:00+01"]), Kind("uuid", ["00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000000"]),
    Kind("bytea", ["\\x", "\\x00", "\\xff"]), Kind("bool", ["true", "false"]), Kind("kinds.mood", ["sad", "ok", "happy"]),
    Kind("interval", ["1 mon", "30 days", "-1 year"], loose=True), Kind("inet", ["10.0.0.1", "10.0.0.1/24", "::1"]), Kind("cidr", ["10.0.0.0/8", "::/0"]),
    Kind("macaddr", ["08:00:2b:01:02:03", "08:00:2b:01:02:04"]), Kind("int4[]", ["{1,NULL}", "{}", "{1,2}"]), Kind('text[]', ["{a}", "{b,NULL}"]),
    Kind("int4range", ["[1,3)", "empty", "(,5)"]), Kind("int4multirange", ["{[1,3)}", "{}"]), Kind("kinds.pair", ["(1,a)", "(1,)", "(,)"], "composite"),
    Kind('"char"', ["a", "", "Z"]), Kind("bit(3)", ["101", "001"]), Kind("varbit", ["1", "10", ""]), Kind("oid", ["1", "4000000000"]),
    Kind("money", ["1.00", "-2.50"]), Kind("pg_lsn", ["0/1", "1/0"]), Kind("jsonb", ['{"a": 1}', "[]", "null"]), Kind("ltree", ["a", "a.b", "b"]),
    Kind("hstore", ["a=>1", "b=>NULL"]), Kind("regclass", ["pg_class", "pg_type"]), Kind("tsvector", ["a b", "c"]), Kind("xid8", ["1", "99"]),
    Kind("json", ["{}", "[]"], unordered=True), Kind("point", ["(1,2)", "(0,0)"], unordered=True), Kind("xid", ["1", "2"], unordered=True),
]
IDS = {
    "int4": str, "int8": str, "int2": str, "uuid": lambda n: f"00000000-0000-0000-0000-{n:012d}", 'text COLLATE "C"': lambda n: f"id{n}",
    "numeric": lambda n: f"{n}.50", "timestamptz": lambda n: f"2026-01-01 00:00:00.{n:06d}+00", "varchar(12)": lambda n: f"v{n}",
}


class Column(NamedTuple):
    name: str
    kind: Kind


class Relation(NamedTuple):
    name: str
    columns: list
    lockable: bool = True


SMALL = Kind("int4", ["0", "1", "2", "3"], "int")
# What makes the rows of a table unique, if anything does: (column constraint of id, table constraint, index, ids).
KEYS = [
    ("NOT NULL", "PRIMARY KEY (id)", "", "unique"), ("NOT NULL", "PRIMARY KEY (id)", "", "unique"), ("NOT NULL", "PRIMARY KEY (n, id)", "", "by n"),
    ("NOT NULL", "UNIQUE (id)", "", "unique"), ("", "UNIQUE (id)", "", "nulls"), ("", "UNIQUE NULLS NOT DISTINCT (id)", "", "one null"),
    ("NOT NULL", "UNIQUE (id) DEFERRABLE", "", "unique"), ("NOT NULL", "PRIMARY KEY (id) INCLUDE (m)", "", "unique"),
    ("NOT NULL", "", "CREATE UNIQUE INDEX ON {} (id) WHERE n > 0", "by n above 0"), ("NOT NULL", "", "CREATE UNIQUE INDEX ON {} (coalesce(id, id))", "unique"),
    ("NOT NULL", "", "CREATE UNIQUE INDEX ON {} (id, n)", "by n"), ("NOT NULL", "", "", "any"), ("", "", "", "nulls"),
    ("NOT NULL", "PRIMARY KEY (id), UNIQUE (n, m, id)", "", "unique"), ("NOT NULL", "UNIQUE (n, id), UNIQUE (id, m)", "", "unique"),
]
STRONG_KEYS = [key for key in KEYS if "PRIMARY" in key[1] or key[3] == "one null" or "UNIQUE (n, id)" in key[1] or "(id, n)" in key[2]]
FORMS = ["heap"] * 8 + ["hash", "range", "parent"]


# How values look, and what plans there are: neither may change which rows a page has.
SETTINGS = ["datestyle = 'SQL, DMY'", "timezone = 'Asia/Kathmandu'", "extra_float_digits = 0", "bytea_output = escape", "intervalstyle = iso_8601", "client_encoding = LATIN1",
            "transform_null_equals = on", "lc_monetary = 'C'"]
PLANS = ["enable_seqscan = off", "enable_sort = off", "enable_hashjoin = off", "enable_mergejoin = off", "enable_indexscan = off", "enable_bitmapscan = off",
         "enable_incremental_sort = off", "enable_material = off", "enable_hashagg = off", "plan_cache_mode = force_generic_plan", "plan_cache_mode = force_custom_plan",
         "from_collapse_limit = 1", "join_collapse_limit = 1", "geqo_threshold = 2", "cursor_tuple_fraction = 1"]


class World:
    """`ddl` makes the schema, `relations` are what can be selected from."""

    def __init__(self, seed, with_roles=True):
        self.rng = rng = random.Random(f"world {seed}")
        self.schema = f"w{seed}"
        self.relations = []
        self.tables = []
        lines = [f"CREATE SCHEMA {self.schema}; SET search_path = {self.schema}, public;"]
        for number in range(1, 5):
            lines.append(self.table(number))
        lines += self.views(rng)
        self.role = "app" if with_roles and rng.random() < 0.2 else None
        if self.role:
            lines += self.grants(rng)
        self.ddl = "\n".join(lines)
        self.settings = [f"SET {setting}" for setting in rng.sample(SETTINGS, rng.choice([0, 0, 1, 2, 3]))]
        self.plans = [f"SET {setting}" for setting in rng.sample(PLANS, rng.choice([0, 1, 2, 3]))]

    def drop(self):
        return f"DROP SCHEMA {self.schema} CASCADE"

    def grants(self, rng):
        """A role that may not see every column, nor, where a policy says so, every row."""
        lines = [f"GRANT USAGE ON SCHEMA {self.schema}, kinds TO app;"]
        for relation in self.relations:
            names = [column.name for column in relation.columns if rng.random() < 0.85] or ["n"]
            what = "" if rng.random() < 0.4 else f" ({', '.join(names)})"
            lines.append(f"GRANT SELECT{what}, UPDATE ON {relation.name} TO app;")
        for name in self.tables:
            if rng.random() < 0.25:
                lines += [f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;", f"CREATE POLICY few ON {name} USING (n IS DISTINCT FROM 1);"]
        return lines

    def table(self, number):
        rng, name = self.rng, f"t{number}"
        null, constraint, index, ids = rng.choice(KEYS)
        form = rng.choice(FORMS)
        id_type = rng.choice(["int4"] * 4 + list(IDS))
        family = "int" if id_type.startswith("int") else "text" if "char" in id_type or "text" in id_type else "other"
        kinds = [rng.choice(rng.choice([INTS, TEXTS, TEXTS, OTHERS, OTHERS, OTHERS])) for _ in range(3)]
        columns = [Column("id", Kind(id_type, [], family)), Column("n", SMALL), Column("m", SMALL)]
        columns += [Column(f"{letter}{number}", kind) for letter, kind in zip("pqs", kinds)]
        not_null = [True if "(n, id)" in constraint else rng.random() < 0.5, rng.random() < 0.5] + [kind.family == "composite" or rng.random() < 0.5 for kind in kinds]
        if form in ("hash", "range") and constraint not in ("", "PRIMARY KEY (n, id)"):
            constraint, index, ids, null = "PRIMARY KEY (n, id)", "", "by n", "NOT NULL"
            not_null[0] = True
        if form in ("hash", "range") and "UNIQUE" in index:
            index, ids = "", "any"
        text = ", ".join([f"id {id_type} {null}"] + [f"{column.name} {column.kind.sql}{' NOT NULL' * strict}" for column, strict in zip(columns[1:], not_null)] + ([constraint] if constraint else []))
        ddl = [f"CREATE TABLE {name} ({text}){ {'hash': ' PARTITION BY HASH (n)', 'range': ' PARTITION BY RANGE (n)'}.get(form, '') };"]
        if form == "hash":
            ddl += [f"CREATE TABLE {name}_{i} PARTITION OF {name} FOR VALUES WITH (MODULUS 2, REMAINDER {i});" for i in range(2)]
        if form == "range":
            ddl += [f"CREATE TABLE {name}_a PARTITION OF {name} FOR VALUES FROM (0) TO (2);", f"CREATE TABLE {name}_b PARTITION OF {name} DEFAULT;"]
        rows = self.rows(ids, IDS[id_type], columns, not_null)
        ddl += [f"INSERT INTO {name} VALUES {', '.join(rows)};"] if rows else []
        if form == "parent":
            ddl += [f"CREATE TABLE {name}_child () INHERITS ({name});"] + ([f"INSERT INTO {name}_child VALUES {', '.join(rows[:5])};"] if rows else [])
        ddl += [index.format(name) + ";"] if index else []
        if rng.random() < 0.6:
            ordered = [column.name for column in columns if not column.kind.unordered and column.kind.sql != "hstore"]
            ddl.append(f"CREATE INDEX ON {name} ({', '.join(c + rng.choice(['', ' DESC', ' NULLS FIRST']) for c in rng.sample(ordered, min(len(ordered), 3)))});")
        self.tables.append(name)
        self.relations.append(Relation(name, columns))
        return "\n".join(ddl)

    def rows(self, ids, write, columns, not_null):
        """Rows as VALUES lists; ids are unique, or as far unique as the key says."""
        rng, rows, by_n = self.rng, [], {}
        for serial in range(1, rng.choice([0, 1, 2, 6, 9, 12, 12, 14]) + 1):
            n = None if not not_null[0] and rng.random() < 0.25 else rng.randrange(4)
            number = serial
            if ids == "any" or (ids == "by n above 0" and not (n or 0) > 0):
                number = rng.randrange(1, 5)
            elif ids == "by n":
                number = by_n[n] = by_n.get(n, 0) + 1
                n = n if n is not None or not_null[0] else None
            written = "'" + write(number) + "'"
            if ids == "nulls" and rng.random() < 0.4 or ids == "one null" and serial == 2:
                written = "NULL"
            values = [written, "NULL" if n is None else str(n)]
            for column, strict in zip(columns[2:], not_null[1:]):
                values.append("NULL" if not strict and rng.random() < 0.3 else "'" + rng.choice(column.kind.values) + "'")
            rows.append(f"({', '.join(values)})")
        return rows

    def views(self, rng):
        lines = []
        for number, kind in enumerate(rng.sample(["plain", "join", "group", "distinct", "materialized", "union"], 3), 1):
            one, two = rng.sample(self.relations[:4], 2)
            a, b, name = one.columns, two.columns, f"v{number}"
            keep = [column for column in a if not (kind in ("group", "distinct") and (column.kind.loose or column.kind.unordered))]
            exposed = [Column(column.name if rng.random() < 0.7 else f"c{number}{i}", column.kind) for i, column in enumerate(keep)]
            listed = ", ".join(f"x.{column.name} AS {shown.name}" for column, shown in zip(keep, exposed))
            body = f"SELECT {listed} FROM {one.name} x"
            if kind == "join":
                exposed = exposed + [Column(f"y{number}", b[3].kind)]
                body = f"SELECT {listed}, y.{b[3].name} AS y{number} FROM {one.name} x {rng.choice(['JOIN', 'LEFT JOIN', 'FULL JOIN'])} {two.name} y ON x.n = y.{rng.choice(['n', 'm'])}"
            elif kind == "group":
                exposed = exposed + [Column("total", Kind("int8", [], "int"))]
                body = f"SELECT {listed}, count(*) AS total FROM {one.name} x GROUP BY {', '.join('x.' + column.name for column in keep)}"
            elif kind == "distinct":
                body = body.replace("SELECT", "SELECT DISTINCT")
            elif kind == "union":
                body += f" WHERE x.n < 2 UNION ALL {body} WHERE x.n > 0"
            elif rng.random() < 0.4:
                body += " WHERE x.n > 0"
            lines.append(f"CREATE {'MATERIALIZED ' * (kind == 'materialized')}VIEW {name} AS {body};")
            self.relations.append(Relation(name, exposed, lockable=kind == "plain"))
        return lines


class JoinWorld(World):
    """Small tables of numbers that meet: what a false proof over a join needs to show itself."""

    BIG = 9007199254740992  # as float8 and numeric its neighbours are, or are not, the same number

    def table(self, number):
        rng, name = self.rng, f"t{number}"
        null, constraint, index, ids = rng.choice(KEYS if rng.random() < 0.12 else STRONG_KEYS)
        id_type = rng.choice(["int4"] * 5 + ["int8", "int8", "numeric", "float8", "int2"])
        float_ = rng.choice([Kind("float8", ["1", "2", "3", str(self.BIG), str(self.BIG + 2)], "int"), Kind("numeric", ["1", "1.0", "2"], "int")])
        columns = [Column("id", Kind(id_type, [], "int")), Column("n", SMALL), Column("m", SMALL), Column(f"p{number}", float_), Column(f"q{number}", SMALL)]
        not_null = ["(n, id)" in constraint or rng.random() < 0.5] + [rng.random() < 0.5 for _ in columns[2:]]
        text = ", ".join([f"id {id_type} {null}"] + [f"{column.name} {column.kind.sql}{' NOT NULL' * strict}" for column, strict in zip(columns[1:], not_null)] + ([constraint] if constraint else []))
        base = self.BIG if id_type in ("int8", "numeric") and rng.random() < 0.5 else 0
        rows = self.rows(ids, lambda n: str(base + n), columns, not_null)[:rng.choice([0, 2, 3, 4, 5, 5])]
        self.tables.append(name)
        self.relations.append(Relation(name, columns))
        return "\n".join([f"CREATE TABLE {name} ({text});"] + ([f"INSERT INTO {name} VALUES {', '.join(rows)};"] if rows else []) + ([index.format(name) + ";"] if index else []))
