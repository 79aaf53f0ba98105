"""What the parser asks the server about: in rounds, at no risk for the client, under any search_path and any role.

A probe (a text of ours that is described) is asked outside and inside of transactions; the transaction must be as if
nobody had asked. The facts must not trust what stands in front of pg_catalog.
"""
import psycopg
import pytest

import pages
import wire

ROWS = 40
BUILD = """
DROP SCHEMA IF EXISTS inquiry CASCADE;
CREATE SCHEMA inquiry;
CREATE TABLE inquiry.post (id int4 PRIMARY KEY, title text NOT NULL, at timestamptz NOT NULL, tag text);
INSERT INTO inquiry.post SELECT i, 'T' || i %% 7, '2026-01-01'::timestamptz + i %% 5 * interval '1 hour', nullif(i %% 3, 0)::text
  FROM generate_series(1, %d) i;
CREATE VIEW inquiry.plain AS SELECT id, title, at FROM inquiry.post;
CREATE VIEW inquiry.deeper AS SELECT p.id AS key, p.title AS name FROM inquiry.plain p WHERE p.id > 0;
CREATE VIEW inquiry.deepest AS SELECT * FROM inquiry.deeper;
GRANT USAGE ON SCHEMA inquiry TO app;
GRANT SELECT (id, title) ON inquiry.post TO app;
""" % ROWS
BY_EXPRESSION = "SELECT id FROM inquiry.post ORDER BY lower(title) DESC, id LIMIT 3"


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as conn:
        conn.execute(BUILD)
        yield
        conn.execute("DROP SCHEMA inquiry CASCADE")


def fresh(sql):
    """The same statement, which no plan is kept for."""
    fresh.serial = getattr(fresh, "serial", 0) + 1
    return sql.replace(" LIMIT", f" /* {fresh.serial} */ LIMIT")


def walk(conn, server, sql, order, mode="extended"):
    """All pages by the proxy are what the server gives in the full order."""
    got = pages.forward(pages.MODES[mode](conn, fresh(sql)))
    with server.connect() as direct:
        direct.execute("SET search_path = inquiry")
        whole = direct.execute(order).fetchall()
    assert pages.rows_of(got) == [tuple(None if v is None else str(v).encode() for v in row) for row in whole]
    assert not any(page.action.startswith("pass") for page in got)


@pytest.mark.parametrize("mode", ["simple", "extended", "named"])
def test_an_expression_is_probed(conn, server, mode):
    walk(conn, server, "SELECT title, id::text FROM inquiry.post ORDER BY lower(title) DESC, post.id LIMIT 3",
         "SELECT title, id::text FROM post ORDER BY lower(title) DESC, post.id", "simple" if mode == "simple" else "extended")


@pytest.mark.parametrize("view", ["plain", "deepest"])
def test_a_view_is_followed(conn, server, view):
    key = "id" if view == "plain" else "key"
    name = "title" if view == "plain" else "name"
    walk(conn, server, f"SELECT {key}::text, {name} FROM inquiry.{view} v ORDER BY {name} LIMIT 4",
         f"SELECT {key}::text, {name} FROM inquiry.{view} v ORDER BY v.{name}, v.{key}")


def action(messages):
    return wire.statuses(messages).get("pgseek.action")


def ready(messages):
    return messages[-1].body[:1]


@pytest.mark.parametrize("mode", ["simple", "extended", "named"])
def test_a_probe_leaves_a_block_as_it_was(conn, mode):
    """Its savepoint is gone, the client's own of the same depth is not."""
    conn.ask(wire.query("BEGIN; SAVEPOINT mine; INSERT INTO inquiry.post VALUES (1000, 'T9', now())"))
    page = pages.MODES[mode](conn, fresh(BY_EXPRESSION)).ask()
    assert page.action == "first" and page.rows[0] in [(b"1000",), ((1000).to_bytes(4, "big"),)], page
    assert ready(conn.ask(wire.query("ROLLBACK TO mine"))) == b"T"
    assert conn.rows(wire.query("SELECT count(*) FROM inquiry.post")) == [[str(ROWS).encode()]]
    assert ready(conn.ask(wire.query("ROLLBACK"))) == b"I"


def test_nothing_is_probed_behind_what_has_run(conn):
    """A refusal would undo what is not committed yet: such a page passes, the next one is planned."""
    sql = fresh(BY_EXPRESSION) + " /* pgseek */"
    page = (wire.parse(sql), wire.bind(), wire.describe(), wire.execute())
    messages = conn.ask(wire.parse("SELECT 1"), wire.bind(), wire.execute(), *page, wire.sync())
    assert action(messages) == "pass: facts_failed"
    assert [message.row() for message in messages if message.kind == "D"][1:]
    assert action(conn.ask(*page, wire.sync())) == "first"
    messages = conn.ask(wire.parse("SELECT 1"), wire.bind(), wire.execute(), *page, wire.sync())
    assert action(messages) == "first"


HOSTILE = """
CREATE SCHEMA inquiry_evil;
CREATE FUNCTION inquiry_evil.boom(oid, oid) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.boom(name, name) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.boom("char", "char") RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.boom(int2, int2) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.boom(int4, int4) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.boom(text, text) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE FUNCTION inquiry_evil.concat_ws(text, VARIADIC text[]) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''boom''; END';
CREATE TABLE inquiry_evil.pg_class (oid oid, relname name);
CREATE TABLE inquiry_evil.pg_type (oid oid);
CREATE DOMAIN inquiry_evil.text AS pg_catalog.text CHECK (VALUE OPERATOR(pg_catalog.=) 'never');
"""


def test_the_search_path_is_not_believed(server, proxy):
    operators = "".join(
        f"CREATE OPERATOR inquiry_evil.{name} (LEFTARG = {kind}, RIGHTARG = {kind}, FUNCTION = inquiry_evil.boom);"
        for name in ("=", "<>", "<", ">", "<=", ">=") for kind in ("oid", "name", '"char"', "int2", "int4", "pg_catalog.text"))
    with server.connect() as admin:
        admin.execute("DROP SCHEMA IF EXISTS inquiry_evil CASCADE")
        admin.execute(HOSTILE.replace("CREATE DOMAIN", operators + "CREATE DOMAIN"))
        try:
            with proxy.wire() as conn:
                conn.ask(wire.query("SET search_path = inquiry_evil, pg_catalog, inquiry"))
                for sql in (BY_EXPRESSION, "SELECT id FROM inquiry.post ORDER BY at LIMIT 3", "SELECT key FROM deepest ORDER BY key LIMIT 3"):
                    messages = conn.ask(wire.query("BEGIN"), syncs=1)
                    messages = conn.ask(wire.query(fresh(sql) + " /* pgseek */"))
                    assert [message.fields()["M"] for message in messages if message.kind == "E"] == []
                    assert ready(conn.ask(wire.query("COMMIT"))) == b"I"
        finally:
            admin.execute("DROP SCHEMA inquiry_evil CASCADE")


def test_rights_are_the_servers_business(proxy):
    """A column that the role may not read is no tie-breaker and raises nothing; what it may not read at all is 42501."""
    with proxy.connect(user="app") as conn:
        assert conn.execute(fresh(BY_EXPRESSION) + " /* pgseek */").fetchall()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(fresh("SELECT id FROM inquiry.post ORDER BY at LIMIT 3") + " /* pgseek */")
        with pytest.raises(psycopg.errors.UndefinedTable):
            conn.execute(fresh("SELECT id FROM inquiry.none ORDER BY lower(at) LIMIT 3") + " /* pgseek */")


def test_a_view_that_is_replaced_is_seen(server, proxy):
    """The next page of a walk over a view whose meaning has changed is refused or right, never a mix."""
    with server.connect() as admin, proxy.wire() as conn:
        admin.execute("CREATE OR REPLACE VIEW inquiry.changing AS SELECT id, title FROM inquiry.post")
        asker = pages.Extended(conn, fresh("SELECT id::text FROM inquiry.changing ORDER BY id DESC LIMIT 3"))
        page = asker.ask()
        assert page.action == "first"
        admin.execute("CREATE OR REPLACE VIEW inquiry.changing AS SELECT id / 2 AS id, title FROM inquiry.post")
        try:
            after = asker.ask(page.next)
        except wire.ServerError as error:
            assert error.sqlstate in ("PS004", "PS005")
        else:
            assert False, after


@pytest.mark.parametrize("sql, reads", [("SELECT id FROM inquiry.post WHERE title <> 'it\\'s' ORDER BY id LIMIT 2", True),
                                        ("SELECT id FROM inquiry.post WHERE title <> 'it\\' ORDER BY id LIMIT 2", False)])
def test_old_literals_hide_no_cursor(proxy, sql, reads):
    """With standard_conforming_strings = off a backslash decides where a comment is one: as the server reads it."""
    with proxy.wire() as conn:
        token = pages.Simple(conn, "SELECT id FROM inquiry.post ORDER BY id LIMIT 2").ask().next
        conn.ask(wire.query("SET escape_string_warning = off"))
        conn.ask(wire.query("SET standard_conforming_strings = off"))
        errors = [m.fields()["C"] for m in conn.ask(wire.query(f"{sql} /* pgseek cursor={token} */")) if m.kind == "E"]
        assert errors == (["PS005"] if reads else ["42601"])
        if reads:
            messages = conn.ask(wire.query(f"{sql} /* pgseek */"))
            assert action(messages) == "pass: strings" and sum(m.kind == "D" for m in messages) == 2


@pytest.mark.parametrize("mode", ["simple", "extended", "named"])
def test_a_stable_key_is_bound_to_the_settings(conn, mode):
    """Days begin elsewhere in another zone: its cursor is refused there, and good again when the zone is."""
    asker = pages.MODES[mode](conn, "SELECT id::text FROM inquiry.post ORDER BY date_trunc('day', at) DESC, id LIMIT 3")
    first = asker.ask()
    second = asker.ask(first.next).rows
    conn.ask(wire.query("SET TIME ZONE 'Asia/Tokyo'"))
    with pytest.raises(wire.ServerError) as refused:
        asker.ask(first.next)
    assert refused.value.sqlstate == "PS004"
    conn.ask(wire.query("RESET TIME ZONE"))
    assert asker.ask(first.next).rows == second
    conn.ask(wire.query("SET work_mem = '5MB'"))
    assert asker.ask(first.next).rows == second


def test_a_replaced_function_is_another_order(server, conn):
    """As a key its cursor is refused; elsewhere the page is only planned anew."""
    body = "CREATE OR REPLACE FUNCTION inquiry.turned(int4) RETURNS int4 IMMUTABLE LANGUAGE sql AS 'SELECT $1 %s 7'"
    with server.connect() as admin:
        admin.execute(body % "%")
        key = pages.Extended(conn, fresh("SELECT id::text FROM inquiry.post ORDER BY inquiry.turned(id), id LIMIT 3"))
        other = pages.Extended(conn, fresh("SELECT id::text FROM inquiry.post WHERE inquiry.turned(id) >= 0 ORDER BY post.id LIMIT 3"))
        first, second = key.ask(), other.ask()
        assert (first.action, second.action) == ("first", "first")
        admin.execute(body % "*")
        with pytest.raises(wire.ServerError) as refused:
            key.ask(first.next)
        assert refused.value.sqlstate == "PS004"
        assert other.ask(second.next).rows == [(b"4",), (b"5",), (b"6",)]
        admin.execute((body % "+").replace("IMMUTABLE", "VOLATILE"))
        assert key.ask().action == "pass: volatile"


def test_arrays_without_nulls_find_the_tables_all_the_same(server, proxy):
    """array_nulls = off reads NULL in an array's text as a name."""
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS no_nulls; CREATE TABLE no_nulls (id int PRIMARY KEY)")
    with proxy.wire() as conn:
        conn.ask(wire.query("SET array_nulls = off"))
        replies = conn.ask(wire.query("SELECT id FROM no_nulls ORDER BY id LIMIT 1 /* pgseek */"))
        assert action(replies) == "first"
