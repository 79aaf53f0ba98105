"""The client's encoding: names of the catalog that a careless quoting would break, and bytes that mean something else.

In SJIS, BIG5, GBK, UHC, JOHAB and GB18030 a character may end in a byte that looks like ASCII, a backslash too. Names are
anybody's to choose, so whoever can make a table could end a literal of ours in the session of somebody else.
"""
import pytest

import pages
import wire

# An encoding, a name in it whose last byte is a backslash (where it has such), and whether pages are made of the name.
ENCODINGS = {
    "SJIS": ("\u8868", False), "BIG5": ("\u529f", False), "GBK": ("\u4e57", False), "GB18030": ("\u4e57", False), "UHC": ("\uac02", False),
    "JOHAB": ("\u4e6d", False), "EUC_JP": ("\u8868", True), "EUC_KR": ("\uac00", True), "EUC_CN": ("\u4e2d", True), "LATIN1": ("\xe9", True),
    "WIN1251": ("\u0439", True), "UTF8": ("\u8868", True), "SQL_ASCII": ("\u8868", True),
}
# What stands around the character in a name.
NAMES = ["{}", "{}'", "{}\\", "{}' OR 1=1--", "a\\'{}", '"{}"', "{}*/ x", "$1{}"]
SQL = "SELECT a FROM {} ORDER BY a LIMIT 4"


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def admin(server):
    with server.connect() as conn:
        yield conn
        conn.execute("DROP SCHEMA IF EXISTS odd CASCADE")


def build(admin, name):
    """The name is a column's, an index's, a table's below a view, and a type's with labels."""
    admin.execute("DROP SCHEMA IF EXISTS odd CASCADE")
    admin.execute("CREATE SCHEMA odd")
    name = quoted(name)
    label = "'" + name.replace("'", "''") + "'"
    admin.execute(f"CREATE TYPE odd.{name} AS ENUM ('a', {label})")
    admin.execute(f"CREATE TABLE odd.columns (a int NOT NULL, {name} int8 CONSTRAINT {name} PRIMARY KEY)")
    admin.execute("INSERT INTO odd.columns SELECT g / 3, g FROM generate_series(1, 9) g")
    admin.execute(f"CREATE TABLE odd.{quoted('t' + name)} AS SELECT * FROM odd.columns")
    admin.execute(f"ALTER TABLE odd.{quoted('t' + name)} ALTER a SET NOT NULL, ADD PRIMARY KEY ({name})")
    admin.execute(f"CREATE VIEW odd.view AS SELECT a, {name}, '{{}}\\'::text || {label} AS x FROM odd.{quoted('t' + name)}")
    admin.execute(f"CREATE TABLE odd.labels (id int8 PRIMARY KEY, a odd.{name} NOT NULL)")
    admin.execute("INSERT INTO odd.labels SELECT g, 'a' FROM generate_series(1, 9) g")


@pytest.mark.parametrize("slashes", ["safe_encoding", "on"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_odd_names(server, proxy, admin, encoding, slashes):
    character, is_made = ENCODINGS[encoding]
    for name in NAMES:
        build(admin, name.format(character))
        with proxy.wire() as conn, server.wire() as direct:
            for each in (conn, direct):
                each.ask(wire.query(f"SET client_encoding = {encoding}; SET backslash_quote = {slashes}"))
            for table in ("odd.columns", "odd.view", "odd.labels"):
                sql = SQL.format(table)
                page = pages.Simple(conn, sql).ask()
                assert page.rows == [tuple(row) for row in direct.rows(wire.query(sql))], (name, table)
                assert page.action == ("first" if is_made else "pass: encoding"), (name, table)
                if is_made:
                    assert len(pages.Simple(conn, sql).ask(page.next).rows) == 4


# ---- the same bytes ---------------------------------------------------------------------------------------------------

LATIN, CYRILLIC = "LATIN1", "WIN1251"
BYTES = b"\xe9"  # e with an accent, or a letter of another alphabet


@pytest.fixture
def letters(admin):
    admin.execute("CREATE SCHEMA odd")
    admin.execute("CREATE TABLE odd.letters (id int8 PRIMARY KEY, t text NOT NULL)")
    admin.execute("INSERT INTO odd.letters SELECT g, CASE g % 2 WHEN 0 THEN '\xe9' ELSE '\u0439' END FROM generate_series(1, 20) g")


def say(conn, encoding):
    conn.ask(wire.query(f"SET client_encoding = {encoding}"))


def by_text(conn, token):
    return conn.ask(wire.query(b"SELECT id FROM odd.letters WHERE t = '" + BYTES + b"' ORDER BY id LIMIT 3 /* pgseek cursor='" + token.encode() + b"' */"))


def by_value(conn, token, oid=25):
    sql = "SELECT id FROM odd.letters WHERE t = ($1::text[])[1] ORDER BY id LIMIT 3 /* pgseek cursor=$2 */" if oid == 1009 else \
        "SELECT id FROM odd.letters WHERE t = $1 ORDER BY id LIMIT 3 /* pgseek cursor=$2 */"
    value = b"{" + BYTES + b"}" if oid == 1009 else BYTES
    return conn.ask(wire.parse(sql, oids=[oid]), wire.bind([value, token]), wire.execute(), wire.sync())


WAYS = {"text": by_text, "value": by_value, "varchar": lambda conn, token: by_value(conn, token, 1043),
        "array": lambda conn, token: by_value(conn, token, 1009)}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_bytes_are_another_filter(proxy, letters, way):
    with proxy.wire() as conn:
        say(conn, LATIN)
        first = pages.page_of(WAYS[way](conn, ""))
        assert [row[0] for row in first.rows] == [b"2", b"4", b"6"]
        say(conn, CYRILLIC)
        with pytest.raises(wire.ServerError) as caught:
            pages.page_of(WAYS[way](conn, first.next))
        assert caught.value.sqlstate == "PS004"
        say(conn, LATIN)
        assert [row[0] for row in pages.page_of(WAYS[way](conn, first.next)).rows] == [b"8", b"10", b"12"]


def test_the_same_value_in_other_bytes_is_the_same(proxy, letters):
    sql = "SELECT id FROM odd.letters WHERE t = $1 ORDER BY id LIMIT 3 /* pgseek cursor=$2 */"
    with proxy.wire() as conn:
        first = pages.page_of(conn.ask(wire.extended(sql, ["\xe9", ""])))
        say(conn, LATIN)
        assert [row[0] for row in pages.page_of(conn.ask(wire.extended(sql, [BYTES, first.next]))).rows] == [b"8", b"10", b"12"]


def test_the_same_bytes_are_another_scope(make_proxy, letters):
    proxy = make_proxy(scope="app.tenant")
    ask = "SELECT id FROM odd.letters ORDER BY id LIMIT 3 /* pgseek cursor='{}' */"
    with proxy.wire() as conn:
        say(conn, LATIN)
        conn.ask(wire.query(b"SET app.tenant = '" + BYTES + b"'"))
        token = pages.page_of(conn.ask(wire.query(ask.format("")))).next
        say(conn, CYRILLIC)
        assert len(pages.page_of(conn.ask(wire.query(ask.format(token)))).rows) == 3  # the same value, in other bytes
        conn.ask(wire.query(b"SET app.tenant = '" + BYTES + b"'"))
        with pytest.raises(wire.ServerError) as caught:
            pages.page_of(conn.ask(wire.query(ask.format(token))))
        assert caught.value.sqlstate == "PS004"


# ---- long names -------------------------------------------------------------------------------------------------------

LONG = "\xe9" * 40  # 40 bytes at a server of LATIN1, and 80 where the client speaks UTF8


@pytest.fixture
def latin(admin):
    admin.execute("CREATE DATABASE odd_latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    yield "odd_latin"
    admin.execute("DROP DATABASE odd_latin WITH (FORCE)")


@pytest.mark.parametrize("sql", [
    'SELECT id FROM t WHERE "{0}a" > 2 ORDER BY id LIMIT 3',
    'WITH "{0}w" AS (SELECT id FROM t), "{0}v" AS (SELECT 10 - id AS id FROM t) SELECT id FROM "{0}v" ORDER BY id LIMIT 3',
    'SELECT id, "{0}a" AS "{0}x", "{0}b" AS "{0}y" FROM t ORDER BY "{0}y" LIMIT 3',
    'SELECT * FROM (SELECT id, "{0}a" AS "{0}x", "{0}b" AS "{0}y" FROM t) s ORDER BY "{0}y" LIMIT 3',
])
def test_names_that_the_parser_would_cut(server, proxy, latin, sql):
    """Two names that differ behind the cut would be one to a contract."""
    with server.connect(dbname=latin) as admin:
        admin.execute(f'CREATE TABLE t (id int8 PRIMARY KEY, "{LONG}a" int NOT NULL, "{LONG}b" int NOT NULL)')
        admin.execute("INSERT INTO t SELECT g, g, 10 - g FROM generate_series(1, 9) g")
    sql = sql.format(LONG)
    with proxy.wire(database=latin, client_encoding="UTF8") as conn, server.wire(database=latin, client_encoding="UTF8") as direct:
        page = pages.Simple(conn, sql).ask()
        assert page.rows == [tuple(row) for row in direct.rows(wire.query(sql))]
        assert page.action == "pass: encoding"
