"""The order matrix: every direction, null placement and nullability of up to three keys, both ways, from every row.

    PGSEEK_MATRIX=whole /usr/bin/python3 -m pytest tests/e2e/test_order_matrix.py

walks every spelling in every form at every page size. By default the plain form has every order by its meaning, at one
size for each boundary, and the other forms have a slice that PGSEEK_SEED chooses. The order itself comes from the
server: rank() tells which rows are ties, and one page with all rows how pgseek orders those.
"""
import itertools
import os
import random

import pytest

import seek
import wire

WHOLE = os.environ.get("PGSEEK_MATRIX") == "whole"
SEED = int(os.environ.get("PGSEEK_SEED", "0"))
SIZES = [1, 2, 3, 7, 100]
SLICE = 12  # orders of each form but the plain one
CHUNKS = 8  # of the plain form: tests that name where a failure is

SCHEMA = """
DROP SCHEMA IF EXISTS matrix CASCADE;
CREATE SCHEMA matrix;
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TABLE matrix.t (id int4 PRIMARY KEY, a int4, b int4, c int4, an int4 NOT NULL, bn int4 NOT NULL, cn int4 NOT NULL);
INSERT INTO matrix.t
    SELECT row_number() OVER (ORDER BY (7 * i) % 23), a, b, c, coalesce(a, 2), coalesce(b, 1), coalesce(c, 2)
    FROM (SELECT i, nullif(i % 3, 0) AS a, nullif(i / 3 % 3, 0) AS b, nullif(i / 9 % 3, 0) AS c FROM generate_series(1, 27) i) x
    WHERE i % 9 NOT IN (2, 4) AND i % 4 <> 1
    UNION ALL SELECT 101, NULL, NULL, NULL, 2, 1, 2 UNION ALL SELECT 102, 1, NULL, 1, 1, 1, 1 UNION ALL SELECT 103, 1, NULL, 1, 1, 1, 1;
CREATE INDEX ON matrix.t (a, b, c, id);
CREATE INDEX ON matrix.t (an, bn DESC, c NULLS FIRST, id);
CREATE TABLE matrix.other AS SELECT i AS id, i % 3 AS n FROM generate_series(1, 30) i WHERE i % 7 <> 0;
INSERT INTO matrix.other VALUES (101, 1), (102, 2);
ALTER TABLE matrix.other ADD PRIMARY KEY (id);
CREATE TABLE matrix.parent (id int4 PRIMARY KEY, a int4, an int4 NOT NULL);
INSERT INTO matrix.parent SELECT i, nullif(i % 3, 0), i % 3 FROM generate_series(1, 7) i;
CREATE TABLE matrix.child (id int4 PRIMARY KEY, parent int4 NOT NULL, b int4, c int4, bn int4 NOT NULL, cn int4 NOT NULL);
INSERT INTO matrix.child SELECT id, id % 7 + 1, b, c, bn, cn FROM matrix.t;
CREATE TABLE matrix.part (LIKE matrix.t) PARTITION BY RANGE (an);
CREATE TABLE matrix.part1 PARTITION OF matrix.part FOR VALUES FROM (0) TO (2);
CREATE TABLE matrix.part2 PARTITION OF matrix.part FOR VALUES FROM (2) TO (9);
ALTER TABLE matrix.part ADD PRIMARY KEY (an, id);
INSERT INTO matrix.part SELECT * FROM matrix.t;
CREATE TABLE matrix.kinds (id int4 PRIMARY KEY, a citext, b numeric, c text COLLATE "C", an citext NOT NULL, bn numeric NOT NULL, cn text COLLATE "C" NOT NULL);
INSERT INTO matrix.kinds
    SELECT id, (ARRAY['a', 'B'])[a], (ARRAY[1.0, 'NaN'])[b], (ARRAY['', 'é'])[c],
           (ARRAY['a', 'A', 'b'])[an + id % 2], (ARRAY[1.0, 1.00, 2])[bn + id % 2], (ARRAY['', 'é'])[cn] FROM matrix.t;
CREATE VIEW matrix.seen AS SELECT id, a, b, c, an, bn, cn FROM matrix.t;
ANALYZE;
"""

# Each form: its statement, and how it writes the keys. {k} is ORDER BY's list, {{}} LIMIT's number.
ALL = "id, a, b, c, an, bn, cn"
PLAIN = "SELECT r.id, r.a, r.cn FROM matrix.t r ORDER BY {k} LIMIT {{}}"
FORMS = {
    "plain": (PLAIN, "r.{}"),
    "names": ("SELECT * FROM matrix.t ORDER BY {k} LIMIT {{}}", "{}"),
    "aliases": ("SELECT a AS x_a, b AS x_b, c AS x_c, an AS x_an, bn AS x_bn, cn AS x_cn, -id AS id FROM matrix.t ORDER BY {k} LIMIT {{}}", "x_{}"),
    "expressions": ("SELECT r.id FROM matrix.t r ORDER BY {k} LIMIT {{}}", "(r.{} + 1) % 7"),
    "locking": ("SELECT r.id, r.b FROM matrix.t r ORDER BY {k} LIMIT {{}} FOR SHARE", "r.{}"),
    "left join": ("SELECT o.id, o.n, r.id, r.c FROM matrix.other o LEFT JOIN matrix.t r ON r.id = o.id ORDER BY {k} LIMIT {{}}", "r.{}"),
    "full join": ("SELECT o.id, r.id FROM matrix.other o FULL JOIN matrix.t r ON r.id = o.id + 2 ORDER BY {k} LIMIT {{}}", "r.{}"),
    "two relations": ("SELECT y.id, x.id FROM matrix.child y JOIN matrix.parent x ON x.id = y.parent ORDER BY {k} LIMIT {{}}",
                      {"a": "x.a", "an": "x.an", "b": "y.b", "bn": "y.bn", "c": "y.c", "cn": "y.cn"}),
    "derived table": (f"SELECT r.id FROM (SELECT {ALL} FROM matrix.t WHERE id > 0) r ORDER BY {{k}} LIMIT {{{{}}}}", "r.{}"),
    "with": (f"WITH r AS (SELECT {ALL} FROM matrix.t) SELECT r.id, r.b FROM r ORDER BY {{k}} LIMIT {{{{}}}}", "r.{}"),
    "view": ("SELECT r.id, r.a FROM matrix.seen r ORDER BY {k} LIMIT {{}}", "r.{}"),
    "group by": ("SELECT a, b, c, an, bn, cn, count(*) AS n FROM matrix.t GROUP BY a, b, c, an, bn, cn ORDER BY {k} LIMIT {{}}", "{}"),
    "aggregate keys": ("SELECT r.an, r.b, sum(r.c) AS c FROM matrix.t r GROUP BY r.an, r.b, r.bn, r.a ORDER BY {k} LIMIT {{}}",
                       {"a": "r.a", "an": "count(*)", "b": "sum(r.c)", "bn": "r.bn", "c": "max(r.id) % 4", "cn": "min(r.cn)"}),
    "distinct": ("SELECT DISTINCT a, b, c, an, bn, cn FROM matrix.t ORDER BY {k} LIMIT {{}}", "{}"),
    "union all": (f"SELECT {ALL} FROM matrix.t WHERE id < 10 UNION ALL SELECT {ALL} FROM matrix.t WHERE id >= 10 ORDER BY {{k}} LIMIT {{{{}}}}", "{}"),
    "union": (f"SELECT {ALL} FROM matrix.t WHERE id < 20 UNION SELECT {ALL} FROM matrix.t WHERE id >= 10 ORDER BY {{k}} LIMIT {{{{}}}}", "{}"),
    "window": ("SELECT r.id, r.a, sum(r.bn) OVER (PARTITION BY r.an) AS s FROM matrix.t r ORDER BY {k} LIMIT {{}}", "r.{}"),
    "partitioned": ("SELECT r.id, r.a FROM matrix.part r ORDER BY {k} LIMIT {{}}", "r.{}"),
    "operators": ("SELECT r.id, r.b FROM matrix.kinds r ORDER BY {k} LIMIT {{}}", "r.{}"),
    "volatile": ("SELECT r.id FROM matrix.t r WHERE random() < 2 ORDER BY {k} LIMIT {{}}", "r.{}"),
}
KEYS = {"union all": "id"}  # key= of the tag
MODES = ["simple"] + ["unnamed"] * 3 + ["named"] * 12  # by what they cost
WAYS = ["", " DESC"]
PLACEMENTS = ["", " NULLS FIRST", " NULLS LAST"]


def spellings(letter):
    """The twelve ways to sort by one key: (column, what follows it)."""
    return [(letter + null, way + place) for null, way, place in itertools.product(["", "n"], WAYS, PLACEMENTS)]


def meanings(letter):
    """The eight that differ in meaning: the default placement is one of the two others."""
    return [(column, text) for column, text in spellings(letter) if "NULLS" in text]


def orders(of):
    """All orders of one, two and three keys."""
    for count in (1, 2, 3):
        yield from itertools.product(*(of(letter) for letter in "abc"[:count]))


def shorten(order, rng):
    """The same order with default placements left out here and there."""
    default = {" NULLS LAST": " NULLS LAST", " DESC NULLS FIRST": " NULLS FIRST"}
    return tuple((column, text.replace(default[text], "") if text in default and rng.random() < 0.5 else text) for column, text in order)


@pytest.fixture(scope="module")
def matrix(server):
    with server.connect() as conn:
        conn.execute("SET client_min_messages = warning")
        conn.execute(SCHEMA)
        yield conn
        conn.execute("DROP SCHEMA matrix CASCADE")


@pytest.fixture
def both(server, proxy, matrix):
    with server.wire() as direct, proxy.wire() as through:
        for conn in (direct, through):
            conn.ask(wire.query("SET search_path = public, matrix"))
        yield direct, through


def texts(form, order):
    """The statement, and one that gives its rows with their ranks behind them."""
    sql, key = FORMS[form]
    written = [key[column] if isinstance(key, dict) else key.format(column) for column, _ in order]
    items = [expr + text for expr, (_, text) in zip(written, order)]
    statement = sql.format(k=", ".join(items))
    core = statement[:statement.index(" ORDER BY")]
    if form in ("names", "aliases", "distinct", "union", "union all", "group by", "window"):
        names = items if form != "window" else [item.replace("r.", "k_") for item in items]
        if form == "window":
            core = core.replace(" FROM", ", " + ", ".join(f"{expr} AS k_{column}" for expr, (column, _) in zip(written, order)) + " FROM", 1)
        return statement, f"SELECT q.*, rank() OVER (ORDER BY {', '.join(names)}) FROM ({core}) q", len(order) if form == "window" else 0
    return statement, core.replace(" FROM", f", rank() OVER (ORDER BY {', '.join(items)}) FROM", 1) if form not in ("derived table", "with") else \
        core.replace(" FROM r" if form == "with" else " FROM (", f", rank() OVER (ORDER BY {', '.join(items)})" + (" FROM r" if form == "with" else " FROM ("), 1), 0


def ranks_of(direct, ranked, extra):
    rows = direct.rows(wire.query(ranked))
    return seek.ranks_of([(*row[:len(row) - 1 - extra], row[-1]) for row in rows])


def check(direct, through, form, order, number, sizes_of):
    """Every row of one order as a boundary. Returns the number of pages, or the reason why it is passed."""
    statement, ranked, extra = texts(form, order)
    mode = MODES[number % len(MODES)]
    try:
        ranks = ranks_of(direct, ranked, extra)
        pager = seek.Pager(through, statement, mode=mode, key=KEYS.get(form))
        everything = pager.ask(size=1000)
        if everything.action.startswith("pass"):
            pager.close()
            return everything.action
        seek.check_ranks(everything.rows, ranks)
        seek.check_first_pages(pager, everything.rows, SIZES, form == "locking")
        pages = 1 + len(SIZES)
        for size_of in sizes_of:
            pages += seek.check_seeks(pager, everything.rows, everything.cursors, range(len(everything.rows)), size_of, form == "locking")
        pager.close()
        return pages
    except (seek.Mismatch, wire.ServerError) as error:
        pytest.fail(f"{form}, {mode}:\n{statement}\n{error}", pytrace=False)


def rotating(number):
    """One page size for each boundary; another one in the next order."""
    return lambda i: SIZES[(i + number) % len(SIZES)]


def run(direct, through, form, chosen):
    sizes = [lambda i, size=size: size for size in SIZES] if WHOLE else None
    done, passed = 0, {}
    for number, order in chosen:
        result = check(direct, through, form, order, number, sizes or [rotating(number)])
        if isinstance(result, str):
            passed[result] = passed.get(result, 0) + 1
        else:
            done += 1
    return done, passed


def expect_rewritten(done, passed):
    assert not passed and done


def plain_orders():
    if WHOLE:
        return list(orders(spellings))
    rng = random.Random(SEED)
    return [shorten(order, rng) for order in orders(meanings)]


def sliced(form):
    rng = random.Random(f"{form} {SEED}")
    everything = list(orders(spellings))
    return everything if WHOLE else rng.sample(everything, SLICE)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_order_from_every_row(both, chunk):
    expect_rewritten(*run(*both, "plain", [(n, order) for n, order in enumerate(plain_orders()) if n % CHUNKS == chunk]))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
def test_every_form_of_statement(both, form):
    expect_rewritten(*run(*both, form, list(enumerate(sliced(form)))))
