"""Random tables and statements over them, from a seed, with the order that a page walk must reproduce.

It knows SQL and types and must not know how statements are sent. Values are few, so that ties are heavy; ids are
adjacent; some values are equal without being the same (1.0 and 1.00, '1 mon' and '30 days', citext).
"""
import random

PREPARE = """
CREATE EXTENSION IF NOT EXISTS citext;
CREATE SCHEMA oracle;
CREATE TYPE oracle.mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN oracle.amount AS int4 CHECK (VALUE < 1000);
CREATE DOMAIN oracle.label AS varchar(10);
CREATE TABLE oracle.ref (ref int4 PRIMARY KEY, name text NOT NULL);
INSERT INTO oracle.ref SELECT i, 'ref ' || i FROM generate_series(0, 3) i;
"""

TYPES = {
    "int2": ["-32768", "-1", "0", "1", "32767"],
    "int4": ["-2147483648", "-1", "0", "1", "2147483647"],
    "int8": ["-9223372036854775808", "-1", "0", "9007199254740993", "9223372036854775807"],
    'text COLLATE "C"': ["", "B", "Z", "a", "é", "a b"],
    "text": ["", "B", "a", "it''s", "a\\b", "ä"],
    'text COLLATE "POSIX"': ["x", "X", "y"],
    "varchar(8)": ["", "a", "a ", "b", "Z"],
    "bpchar(4)": ["a", "a   ", "ab", "b", ""],
    "numeric": ["1.0", "1.00", "-0.5", "NaN", "123456789012345678901234567890.5", "0"],
    "numeric(8,2)": ["1", "1.5", "-3.25", "0"],
    "float4": ["0.1", "-0", "0", "NaN", "Infinity", "16777217", "3.4028235e38"],
    "float8": ["0.1", "0.30000000000000004", "-0", "0", "NaN", "-Infinity", "1e-300"],
    "timestamptz": ["2026-01-01 00:00:00+00", "2026-01-01 00:00:00.000001+00", "infinity", "-infinity", "2026-10-25 01:30:00+00"],
    "timestamptz(0)": ["2026-01-01 00:00:00+00", "2026-01-01 00:00:01+00"],
    "date": ["2026-01-01", "2026-01-02", "infinity", "0044-03-15 BC"],
    "uuid": ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002", "ffffffff-0000-0000-0000-000000000000"],
    "bytea": ["\\x", "\\x00", "\\x0001", "\\xff"],
    "bool": ["true", "false"],
    "oracle.mood": ["sad", "ok", "happy"],
    "interval": ["1 mon", "30 days", "24:00", "1 day", "-1 year"],
    "inet": ["10.0.0.1", "10.0.0.1/24", "::1", "9.255.0.0/8"],
    "citext": ["a", "A", "b", "B"],
    "oracle.amount": ["1", "2", "999"],
    "oracle.label": ["a", "B", "b"],
}
IDS = {
    "int4": lambda n: str(n), "int8": lambda n: str(n), "int2": lambda n: str(n),
    "uuid": lambda n: f"00000000-0000-0000-0000-{n:012d}", 'text COLLATE "C"': lambda n: f"id{n}", "numeric": lambda n: f"{n}.50",
    "timestamptz": lambda n: f"2026-01-01 00:00:00.{n:06d}+00", "varchar(12)": lambda n: f"v{n}",
}


def quote(value):
    return "'" + value + "'"


class Table:
    """oracle.t<seed>: two tenants, two random keys, a unique id, and a `mark` that tells every row from every other."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.name = f"oracle.t{seed}"
        self.key_types = [rng.choice(list(TYPES)) for _ in range(2)]
        self.id_type = rng.choice(list(IDS))
        self.composite = rng.random() < 0.3
        self.count = rng.choice([0, 1, 2, 20, 21, 40, 60, 60, 97])
        self.next_id = 1

    def ddl(self):
        k1, k2 = self.key_types
        unique = self.rng.choice([
            "PRIMARY KEY ({0})", "UNIQUE ({0})", "PRIMARY KEY ({0}) INCLUDE (mark)"]).format("tenant, id" if self.composite else "id")
        ddl = (f"CREATE TABLE {self.name} (tenant int4 NOT NULL, k1 {k1} NOT NULL, k2 {k2} NOT NULL, id {self.id_type} NOT NULL,"
               f" mark text NOT NULL, note text, ref_id int4 NOT NULL, {unique});\n")
        if self.rng.random() < 0.6:
            ddl += f"CREATE INDEX ON {self.name} ({self.rng.choice(['k1, k2, id', 'tenant, k1, id', 'k1 DESC, k2 DESC, id DESC', 'k2'])});\n"
        rows = ", ".join(self.row() for _ in range(self.count))
        return ddl + (f"INSERT INTO {self.name} VALUES {rows};\n" if rows else "") + f"ANALYZE {self.name};\n"

    def row(self):
        rng, n = self.rng, self.next_id
        self.next_id += rng.choice([1, 1, 1, 2])
        keys = [quote(rng.choice(TYPES[kind])) for kind in self.key_types]
        return f"({rng.randrange(2)}, {keys[0]}, {keys[1]}, {quote(IDS[self.id_type](n))}, 'm{n}', 'n', {rng.randrange(4)})"

    def insert(self):
        return f"INSERT INTO {self.name} VALUES {self.row()}"


class Statement:
    """A SELECT that pages through a table: `sql` with $n and a LIMIT place, and `full`, the whole ordered result."""

    def __init__(self, table, rng):
        self.table = table
        way = rng.choice(["", " DESC", " ASC"])
        join = rng.random() < 0.35
        alias = rng.choice(["t", "t", "x"])
        self.params = []
        columns, self.mark = self.list(rng, alias)
        items = self.order(rng, alias, columns)
        where = []
        if rng.random() < 0.6:
            self.params.append(rng.randrange(2))
            where.append(f"{alias}.tenant = ${len(self.params)}")
        if rng.random() < 0.3:
            self.params.append(rng.choice(["m3", "m9"]))
            where.append(f"{alias}.mark <> ${len(self.params)}")
        source = f"{table.name} {rng.choice(['AS ', ''])}{alias}"
        if join:
            source += f" {rng.choice(['INNER JOIN', 'JOIN'])} oracle.ref r ON r.ref = {alias}.ref_id"
            columns = columns if columns == ["*"] else columns + ["r.name"]
        core = f"SELECT {', '.join(columns)} FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        tie = [f"{alias}.{c}" for c in (["tenant", "id"] if table.composite else ["id"])]
        self.sql = f"{core} ORDER BY {', '.join(item + way for item in items)}"
        self.full = f"{core} ORDER BY {', '.join(item + way for item in items + tie)}"
        self.limits = rng.choice(["LIMIT {}", "limit {}", "FETCH FIRST {} ROWS ONLY", "LIMIT {} OFFSET 0", "OFFSET 0 FETCH NEXT {} ROWS ONLY"])
        self.bound_limit = rng.random() < 0.4

    @staticmethod
    def list(rng, alias):
        """A select list, and the position of `mark` in it."""
        return rng.choice([
            (["*"], 4), ([f"{alias}.mark"], 0), ([f"{alias}.id AS k1", f"{alias}.mark"], 1), (["mark", "k1", "k2"], 0),
            ([f"{alias}.k2", f"upper({alias}.mark) AS loud", f"{alias}.mark AS id"], 2), (["k1 AS a", "k2 AS b", "id AS c", "mark AS d"], 3),
            ([f"{alias}.mark", "note", "1 AS one"], 0)])

    @staticmethod
    def order(rng, alias, columns):
        """Sort items; all mean k1, or k1 and k2, or k2 and id."""
        choices = [[f"{alias}.k1"], [f"{alias}.k1", f"{alias}.k2"], [f"{alias}.k2", f"{alias}.id"], [f"{alias}.id"], [f"{alias}.tenant", f"{alias}.k1"]]
        if "k1 AS a" in columns:
            choices += [["a", "b"], ["1", "2", "3"], ["b", "c"], ["2"]]
        if columns == ["*"]:
            choices += [["k1", "k2"], ["k2"], ["2"], ["3", "4"]]
        if columns[-1].endswith("k2") and len(columns) == 3:
            choices += [["k1"], ["2", "k2"]]
        return rng.choice(choices)

    def page(self, size):
        """The text and parameters of a page."""
        if self.bound_limit:
            return f"{self.sql} {self.limits.format(f'${len(self.params) + 1}')}", [*self.params, size]
        return f"{self.sql} {self.limits.format(size)}", self.params
