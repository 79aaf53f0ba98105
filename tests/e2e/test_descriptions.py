"""What a page is described as: byte for byte what the server says of the original, whichever text was sent."""
import pytest

import pages
import wire

STATEMENTS = {
    "mixed directions": "SELECT id, a AS first, b, note FROM described ORDER BY a, b DESC, id LIMIT 3",
    "star, a nullable key": "SELECT * FROM described ORDER BY note NULLS FIRST, id LIMIT 3",
    "the same name twice": "SELECT id, id, a + b, note AS id FROM described ORDER BY a DESC, b, described.id LIMIT 3",
    "no column at all": "SELECT FROM described ORDER BY a, b DESC, id LIMIT 3",
    "typmods, a domain, unknown literals": "SELECT price, code, 'x' AS x, NULL AS nothing, short FROM described ORDER BY a, b DESC, id LIMIT 3",
    "a view's columns": "SELECT v.id, v.doubled FROM described_view v JOIN described d USING (id) ORDER BY d.a, d.b DESC, d.id LIMIT 3",
    "a set operation": "SELECT id, note FROM described WHERE a = 1 UNION SELECT id, note FROM described WHERE b = 2 ORDER BY note DESC, id LIMIT 3",
    "a window function": "SELECT id, count(*) OVER (PARTITION BY a) AS n FROM described ORDER BY b, id LIMIT 3",
    "a level inside": "SELECT p.*, d.price FROM (SELECT id, note FROM described ORDER BY a, b DESC, id LIMIT 3) p JOIN described d ON d.a = p.id ORDER BY p.id, d.id",
    "grouped": "SELECT a, max(price) FROM described GROUP BY a ORDER BY a DESC LIMIT 3",
}


@pytest.fixture(scope="module", autouse=True)
def table(server):
    with server.connect() as conn:
        conn.execute("""DROP TABLE IF EXISTS described CASCADE; DROP DOMAIN IF EXISTS described_code;
            CREATE DOMAIN described_code AS varchar(7);
            CREATE TABLE described (gone int, id int8 PRIMARY KEY, a int4 NOT NULL, b int4 NOT NULL, price numeric(10,2), code described_code, short char(3), note varchar(20));
            ALTER TABLE described DROP COLUMN gone;
            CREATE VIEW described_view AS SELECT id, a * 2 AS doubled FROM described;
            INSERT INTO described SELECT i, i % 4, i % 3, i, 'c' || i, 's', CASE WHEN i % 5 > 0 THEN 'n' || i % 7 END FROM generate_series(1, 40) i""")
    yield


def described(messages):
    for message in messages:
        if message.kind == "E":
            raise wire.ServerError(message)
    return [message.body for message in messages if message.kind == "T"]


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("result", [wire.TEXT, wire.BINARY])
def test_every_page_is_described_as_the_original(server, proxy, name, result):
    sql = STATEMENTS[name]
    with server.wire() as conn:
        portal, statement = (described(conn.ask(wire.extended(sql, result_formats=[result]))),
                             described(conn.ask(wire.parse(sql), wire.describe("S"), wire.sync())))
        simple = described(conn.ask(wire.query(sql)))
    with proxy.wire() as conn:
        tagged = f"{sql} /* pgseek cursor=$1 */"
        assert described(conn.ask(wire.parse(tagged), wire.describe("S"), wire.sync())) == statement
        cursors, actions = [None], []
        for cursor in cursors:
            messages = conn.ask(wire.extended(tagged, [cursor], result_formats=[result]))
            assert described(messages) == portal
            page = wire.statuses(messages)
            actions.append(page["pgseek.action"])
            again = conn.ask(wire.query(f"{sql} {pages.cursor_comment(cursor)}"))
            assert described(again) == simple
            if len(cursors) < 6:
                cursors += [token for token in (page["pgseek.next_cursor"], page["pgseek.prev_cursor"]) if token]
        assert set(actions) == {"first", "keyset"}, actions


def test_a_named_statement_across_a_rename(server, proxy):
    """The server's own refusal of a changed result is the client's; a new statement shows the new name."""
    sql = "SELECT * FROM renamed ORDER BY a, b DESC, id LIMIT 2"
    with server.connect() as admin:
        admin.execute("DROP TABLE IF EXISTS renamed; CREATE TABLE renamed (id int8 PRIMARY KEY, a int4 NOT NULL, b int4 NOT NULL, old text)")
        admin.execute("INSERT INTO renamed SELECT i, i % 2, i % 3, 'x' FROM generate_series(1, 9) i")
        with proxy.wire() as conn, server.wire() as direct:
            token = pages.Simple(conn, sql).ask().next
            for each, text in ((conn, f"{sql} /* pgseek cursor=$1 */"), (direct, sql)):
                each.ask(wire.parse(text, "n"), wire.bind([token] if each is conn else [], "n"), wire.describe(), wire.execute(), wire.sync())
            admin.execute("ALTER TABLE renamed RENAME old TO new")
            said = [conn.ask(wire.bind([token], "n"), wire.describe(), wire.execute(), wire.sync()), direct.ask(wire.bind([], "n"), wire.describe(), wire.execute(), wire.sync())]
            assert said[0][0].kind == said[1][0].kind == "E"
            assert said[0][0].fields()["C"] == said[1][0].fields()["C"]
            for send in (wire.query(f"{sql} {pages.cursor_comment(token)}"), wire.extended(f"{sql} /* pgseek cursor=$1 */", [token])):
                assert [column.name for column in pages.page_of(conn.ask(send)).columns] == ["id", "a", "b", "new"]
