"""Statements at the parser's limits: what is too large passes with that reason, what is just below is a page like any
other, and nothing overflows a stack.
"""
import pytest

import pages
import wire

ROWS = 8
TOKENS = 8000


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute(f"""DROP TABLE IF EXISTS sized; CREATE TABLE sized (id int4 PRIMARY KEY, a int4 NOT NULL, n int4, t text NOT NULL, v int4[] NOT NULL);
            INSERT INTO sized SELECT i, i % 2, nullif(i % 3, 0), 't', '{{1}}' FROM generate_series(1, {ROWS}) i""")
    yield
    with server.connect() as conn:
        conn.execute("DROP TABLE sized")


def where(condition):
    return f"SELECT id FROM sized WHERE {condition} ORDER BY {{order}} LIMIT 3"


def chain(link, count, start="", end=""):
    return start + link * count + end


# How each text grows: a function of the number of links, and the tokens that one link has.
GROWTH = {
    "plus": (lambda n: where(chain("1+", n, "0 < ", "1")), 2),
    "minus signs": (lambda n: where(chain("- ", n, "0 = ", "0")), 1),
    "NOT": (lambda n: where(chain("NOT ", n // 2 * 2, "", "true")), 1),
    "AND": (lambda n: where(chain("a >= 0 AND ", n, "", "true")), 4),
    "OR": (lambda n: where(chain("a < 0 OR ", n, "", "true")), 4),
    "AND and OR": (lambda n: where(chain("a < 0 OR a >= 0 AND ", n, "", "true")), 8),
    "concatenation": (lambda n: where(chain("t || ", n, "'' < ", "'x'")), 2),
    "IN": (lambda n: where(chain("1, ", n, "a IN (0, ", "2)")), 2),
    "casts": (lambda n: where(chain("::int4", n, "a", " >= 0")), 2),
    "IS NOT NULL": (lambda n: where(chain(" IS NOT NULL", n, "a", "")), 3),
    "COLLATE": (lambda n: where(chain(' COLLATE "C"', n, "t", " > ''")), 2),
    "AT TIME ZONE": (lambda n: where(chain(" AT TIME ZONE 'UTC'", n // 2 * 2, "timestamp 'now'", " IS NOT NULL")), 4),
    "subscripts": (lambda n: where(chain("[1]", n, "v", " IS NULL OR true")), 3),
    "CASE": (lambda n: where(chain("CASE WHEN true THEN ", n, "0 < ", "1" + " END" * n)), 5),
    "CASE in ELSE": (lambda n: where(chain("CASE WHEN a > 5 THEN 0 ELSE ", n, "0 < ", "1" + " END" * n)), 8),
    "WHEN": (lambda n: where(chain("WHEN a > 5 THEN 0 ", n, "0 < CASE ", "ELSE 1 END")), 6),
    "array items": (lambda n: where(chain("1, ", n, "a <> ALL (ARRAY[9, ", "8])")), 2),
    "JSON arrows": (lambda n: where(chain(" -> 'a'", n, "to_jsonb(a)", " IS NULL")), 2),
    "BETWEEN": (lambda n: where(chain("a BETWEEN 0 AND 9 AND ", n, "", "true")), 6),
    "columns": (lambda n: "SELECT " + chain("a, ", n) + "id FROM sized ORDER BY {order} LIMIT 3", 2),
    "sort keys": (lambda n: "SELECT id FROM sized ORDER BY " + chain("a + 1, ", n) + "{order} LIMIT 3", 4),
    "UNION": (lambda n: chain("SELECT id, a, n FROM sized UNION ", n) + "SELECT id, a, n FROM sized ORDER BY {order} LIMIT 3", 9),
    "UNION ALL in FROM": (lambda n: "SELECT q.id FROM (" + chain("SELECT 1 AS id UNION ALL ", n) + "SELECT 2) q JOIN sized USING (id) ORDER BY {order} LIMIT 3", 6),
    "joins": (lambda n: "SELECT sized.id FROM sized" + "".join(f" JOIN sized s{i} ON s{i}.id = sized.id" for i in range(n)) + " ORDER BY {order} LIMIT 3", 11),
    "commas": (lambda n: "SELECT sized.id FROM sized" + "".join(f", (SELECT 1) s{i}" for i in range(n)) + " ORDER BY {order} LIMIT 3", 6),
    "WITH": (lambda n: "WITH " + "".join(f"w{i} AS (SELECT id, a, n FROM {f'w{i - 1}' if i else 'sized'}), " for i in range(n)) + f"z AS (SELECT * FROM {f'w{n - 1}' if n else 'sized'})"
             " SELECT id FROM z ORDER BY {order} LIMIT 3", 13),
    "VALUES": (lambda n: "SELECT id FROM sized JOIN (VALUES " + chain("(1), ", n) + "(2)) v(x) ON x = id ORDER BY {order} LIMIT 3", 4),
}
NESTING = {
    "parentheses": lambda n: where("(" * n + "true" + ")" * n),
    "sub-selects": lambda n: where("EXISTS (SELECT 1 WHERE " * n + "true" + ")" * n),
    "scalar sub-selects": lambda n: where("0 < " + "(SELECT " * n + "1" + ")" * n),
    "function calls": lambda n: where("0 < " + "abs(" * n + "1" + ")" * n),
    "arrays": lambda n: where("a IS NOT NULL OR 1 < " + "cardinality(ARRAY[" * n + "1" + "])" * n),
    "rows": lambda n: where("ROW(" * n + "1" + ")" * n + " IS NOT NULL"),
    "derived tables": lambda n: "SELECT id FROM " + "(SELECT * FROM " * n + "sized" + ") q" * n + " ORDER BY {order} LIMIT 3",
    "joins": lambda n: "SELECT sized.id FROM " + "(" * n + "sized" + "".join(f" JOIN (SELECT 1) s{i} ON true)" for i in range(n)) + " ORDER BY {order} LIMIT 3",
    "set operations": lambda n: "(SELECT id, a, n FROM sized UNION " * n + "SELECT id, a, n FROM sized" + ")" * n + " ORDER BY {order} LIMIT 3",
    "CTEs": lambda n: "WITH w AS (" * n + "SELECT id, a, n FROM sized" + ") SELECT * FROM w" * n + " ORDER BY {order} LIMIT 3",
}
ORDERS = {"uniform": "id", "mixed": "n DESC NULLS LAST, id"}


def qualified(sql, order):
    return sql.format(order=", ".join(f"sized.{item}" for item in order.split(", ")) if "sized.id" in sql or "USING (id)" in sql or " ON x" in sql else order)


@pytest.fixture
def ends(server, proxy):
    """One raw connection to each side."""
    with server.wire() as direct, proxy.wire() as through:
        for conn in (direct, through):
            conn.rows(wire.query("SET join_collapse_limit = 1; SET from_collapse_limit = 1; SET jit = off"))
        yield direct, through


def ask(conn, sql, cursor=None, options=""):
    """The page, or the error."""
    try:
        return pages.Extended(conn, sql, options=options).ask(cursor)
    except wire.ServerError as error:
        return error


def ask_directly(conn, sql):
    try:
        return pages.page_of(conn.ask(wire.extended(sql)))
    except wire.ServerError as error:
        return error


def compare(ends, sql):
    """Runs the statement both ways and returns the page; where the server gives an error there is none."""
    direct, through = ends
    expected, page = ask_directly(direct, sql), ask(through, sql)
    assert through.rows(wire.query("SELECT 7")) == [[b"7"]]
    if isinstance(expected, wire.ServerError):
        assert isinstance(page, wire.ServerError) and page.sqlstate == expected.sqlstate, page
        return None
    assert not isinstance(page, wire.ServerError), page
    if page.action.startswith("pass"):
        assert page.rows == expected.rows
    return page


def expect_too_large(ends, sql):
    """Refused under strict, so that the server need not plan it."""
    error = ask(ends[1], sql, options="strict=on")
    assert isinstance(error, wire.ServerError), error.action
    if error.sqlstate != "PS005":  # the server's own depth is smaller: its error came with Parse
        assert ask_directly(ends[0], sql).sqlstate == error.sqlstate
    else:
        assert "8,000 tokens" in error.fields["D"], error.fields
    assert ends[1].rows(wire.query("SELECT 7")) == [[b"7"]]


def walk_or_pass(ends, sql):
    """A page that is rewritten leads on to the end: the first never promises what the next cannot hold."""
    page = compare(ends, sql)
    if page is None or page.action.startswith("pass"):
        return
    seen = list(page.rows)
    while page.has_more:
        page = ask(ends[1], sql, page.next)
        assert not isinstance(page, wire.ServerError), page
        seen += page.rows
    assert sorted(seen) == sorted(ask_directly(ends[0], sql.replace("LIMIT 3", "LIMIT 100")).rows)


@pytest.mark.parametrize("name", GROWTH)
def test_more_tokens_than_the_limit(ends, name):
    grow, width = GROWTH[name]
    expect_too_large(ends, qualified(grow(TOKENS // width + 10), "id"))


@pytest.mark.parametrize("name", ["plus", "AND", "IN", "casts", "CASE"])
def test_what_is_too_large_passes(ends, name):
    grow, width = GROWTH[name]
    page = compare(ends, qualified(grow(TOKENS // width + 10), "id"))
    assert page is None or page.action == "pass: too_large"


@pytest.mark.parametrize("name", GROWTH)
def test_just_below_the_limit_of_tokens(ends, name):
    grow, width = GROWTH[name]
    few = {"columns": 700, "joins": 30, "commas": 40, "WITH": 60, "UNION": 200, "UNION ALL in FROM": 300, "sort keys": 10}.get(name, TOKENS)
    walk_or_pass(ends, qualified(grow(min(few, (TOKENS - 60) // width)), ORDERS["mixed"]))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", NESTING)
def test_nesting_around_the_limit(ends, name, order):
    for depth in (60, 126):
        walk_or_pass(ends, qualified(NESTING[name](depth), ORDERS[order]))


@pytest.mark.parametrize("name", NESTING)
def test_nesting_above_the_limit(ends, name):
    expect_too_large(ends, qualified(NESTING[name](130), "id"))
    expect_too_large(ends, qualified(NESTING[name](1500), "id"))


def test_long_texts(server, make_proxy):
    """Longer than the parser takes, and short enough for the session to hold."""
    long = where(f"t <> '{'x' * (2 << 20)}'").format(order="id")
    with server.wire() as direct, make_proxy(max_tagged_size="16MB").wire() as through:
        page = compare((direct, through), long)
        assert page.action == "pass: too_large"
        token = ask(through, "SELECT id FROM sized ORDER BY id LIMIT 3").next
        assert ask(through, long, token).sqlstate == "PS005"


def test_what_is_too_large_never_ignores_a_cursor(ends):
    token = ask(ends[1], "SELECT id FROM sized ORDER BY id LIMIT 3").next
    for sql in (where(chain("1+", 4500, "0 < ", "1")), where(chain("1, ", 4500, "a IN (0, ", "2)"))):
        assert ask(ends[1], sql.format(order="id"), token).sqlstate == "PS005"
