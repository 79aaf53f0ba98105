"""Row-level security: tenants walk the same tagged statement, and none sees or feels a row of another.

The oracle is a direct session of the same tenant. Tenants are told apart by role, or by a setting under one role.
"""
import pathlib
import tempfile

import cluster
import pytest

import pages
import wire

ROWS = 60
BUILD = f"""
DROP SCHEMA IF EXISTS tenants CASCADE;
DROP ROLE IF EXISTS tenant_1; DROP ROLE IF EXISTS tenant_2; DROP ROLE IF EXISTS tenant_all;
CREATE ROLE tenant_1 LOGIN; CREATE ROLE tenant_2 LOGIN; CREATE ROLE tenant_all LOGIN BYPASSRLS;
CREATE SCHEMA tenants;
CREATE TABLE tenants.members (role name PRIMARY KEY, tenant int4 NOT NULL);
INSERT INTO tenants.members VALUES ('tenant_1', 1), ('tenant_2', 2);
CREATE TABLE tenants.notes (id int8 PRIMARY KEY, tenant int4 NOT NULL, at int4 NOT NULL, body text NOT NULL);
INSERT INTO tenants.notes SELECT i, 1 + i % 2, i / 6, 'of ' || 1 + i % 2 || ' ' || i FROM generate_series(1, {ROWS}) i;
CREATE TABLE tenants.by_setting (LIKE tenants.notes INCLUDING ALL);
INSERT INTO tenants.by_setting SELECT * FROM tenants.notes;
ALTER TABLE tenants.notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants.by_setting ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tenants.notes USING (tenant = (SELECT m.tenant FROM tenants.members m WHERE m.role = CURRENT_USER));
CREATE POLICY own ON tenants.by_setting USING (tenant = NULLIF(current_setting('app.tenant_id', true), '')::int4);
CREATE VIEW tenants.invoker WITH (security_invoker = on) AS SELECT id, at, body FROM tenants.notes;
CREATE VIEW tenants.definer WITH (security_barrier = on) AS SELECT id, at, body FROM tenants.notes WHERE tenant = (SELECT m.tenant FROM tenants.members m WHERE m.role = CURRENT_USER);
CREATE FUNCTION tenants.tell(text) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''told %'', $1; RETURN true; END';
CREATE FUNCTION tenants.enter(int4) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT set_config(''app.tenant_id'', $1::text, false)';
GRANT USAGE ON SCHEMA tenants TO tenant_1, tenant_2, tenant_all, app;
GRANT SELECT ON ALL TABLES IN SCHEMA tenants TO tenant_1, tenant_2, tenant_all, app;
"""
BY_ROLE = "SELECT id, body FROM tenants.notes ORDER BY at DESC LIMIT 4"
BY_SETTING = "SELECT id, body FROM tenants.by_setting ORDER BY at DESC LIMIT 4"
MODES = ["simple", "extended", "named"]
SCOPES = [None, "app.tenant_id", "role, app.tenant_id"]


@pytest.fixture(scope="module", autouse=True)
def tables(server):
    with server.connect() as admin:
        admin.execute(BUILD)
        yield
        admin.execute("DROP SCHEMA tenants CASCADE; DROP ROLE tenant_1; DROP ROLE tenant_2; DROP ROLE tenant_all")


@pytest.fixture(scope="module", params=SCOPES, ids=lambda scope: scope or "no scope")
def scoped(request, server, run_dir):
    """A proxy with this scope, shared by the module; `scope` is what it binds cursors to."""
    proxy = cluster.Proxy(pathlib.Path(tempfile.mkdtemp(prefix="p", dir=run_dir)), server).start(scope=request.param)
    proxy.scope = request.param or ""
    yield proxy
    proxy.stop()


def body_number(row):
    return int(row[1].split()[-1])


def of_tenant(row):
    return int(row[1].split()[1])


class Tenant:
    """A session through the proxy that walks one statement."""

    def __init__(self, endpoint, sql, mode, role="app", setting=None):
        self.conn = endpoint.wire(user=role)
        self.role, self.sql = role, sql
        if setting is not None:
            self.conn.ask(wire.query(f"SELECT set_config('app.tenant_id', '{setting}', false)"))
        self.number = setting if setting is not None else int(role[-1])
        self.asker = pages.MODES[mode](self.conn, sql)

    def ask(self, cursor=None):
        page = self.asker.ask(cursor)
        assert all(of_tenant(row) == self.number for row in page.rows), f"{self.number} sees {page.rows}"
        return page

    def close(self):
        self.conn.close()


def oracle(server, tenant):
    """What the tenant would be given in one piece, and in which total order."""
    sql = tenant.sql.replace("at DESC LIMIT 4", "at DESC, id DESC")
    with server.connect(user=tenant.role) as direct:
        if tenant.role == "app":
            direct.execute("SELECT set_config('app.tenant_id', %s, false)", [str(tenant.number)])
        return [row[0] for row in direct.execute(sql)]


def pair(endpoint, by, mode):
    if by == "role":
        return [Tenant(endpoint, BY_ROLE, mode, f"tenant_{n}") for n in (1, 2)]
    return [Tenant(endpoint, BY_SETTING, mode, setting=n) for n in (1, 2)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["role", "setting"])
def test_two_walk_at_once(server, scoped, by, mode):
    """Page by page in turns; each has all of its own rows in order, and nothing else."""
    tenants = pair(scoped, by, mode)
    seen, cursors, ended = [[], []], [None, None], [False, False]
    while not all(ended):
        for i, tenant in enumerate(tenants):
            if ended[i]:
                continue
            page = tenant.ask(cursors[i])
            seen[i] += [body_number(row) for row in page.rows]
            ended[i], cursors[i] = not page.has_more, page.next
    for i, tenant in enumerate(tenants):
        assert seen[i] == oracle(server, tenant)
        tenant.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("by", ["role", "setting"])
def test_a_cursor_of_the_other(server, scoped, by, mode):
    """Refused where the role or the scope tells them apart; else it is a position among one's own rows."""
    one, two = pair(scoped, by, mode)
    theirs = one.ask(one.ask().next)
    mine = two.ask()
    if by == "role" or "app.tenant_id" in scoped.scope:
        with pytest.raises(wire.ServerError) as refused:
            two.ask(theirs.next)
        assert refused.value.sqlstate == "PS004"
        assert "row" not in refused.value.fields["M"] and "body" not in str(refused.value.fields)
    else:
        last = body_number(theirs.rows[-1])
        after = [n for n in oracle(server, two) if (n // 6, n) < (last // 6, last)]
        assert [body_number(row) for row in two.ask(theirs.next).rows] == after[:4]
    assert [body_number(row) for row in two.ask(mine.next).rows] == oracle(server, two)[4:8]
    one.close()
    two.close()


@pytest.mark.parametrize("by", ["role", "setting"])
def test_nothing_moves_by_a_row_of_the_other(server, proxy, by):
    """Rows of the other at the very boundary, behind the last page and in the total are not felt."""
    table = "tenants.notes" if by == "role" else "tenants.by_setting"
    one, two = pair(proxy, by, "extended")
    two.asker.options = "total=exact"
    whole = oracle(server, two)
    page, seen = two.ask(), []
    with server.connect() as admin:
        admin.execute(f"CREATE TABLE tenants.kept AS SELECT * FROM {table}")
        try:
            number = 1000
            while True:
                seen += [body_number(row) for row in page.rows]
                assert page.has_more == (len(seen) < len(whole))
                total = two.conn.rows(wire.query("SHOW pgseek.total"))
                assert total == [[str(len(whole)).encode()]]
                if not page.has_more:
                    break
                at = body_number(page.rows[-1]) // 6
                for _ in range(5):
                    number += 1
                    admin.execute(f"INSERT INTO {table} VALUES (%s, 1, %s, 'of 1 ' || %s)", [number, at, number])
                    admin.execute(f"INSERT INTO {table} VALUES (%s, 1, %s, 'of 1 ' || %s)", [-number, at - 1, -number])
                admin.execute(f"DELETE FROM {table} WHERE tenant = 1 AND id IN (SELECT id FROM {table} WHERE tenant = 1 ORDER BY random() LIMIT 4)")
                page = two.ask(page.next)
            assert seen == whole
        finally:
            admin.execute(f"TRUNCATE {table}; INSERT INTO {table} SELECT * FROM tenants.kept; DROP TABLE tenants.kept")
    one.close()
    two.close()


@pytest.mark.parametrize("mode", MODES)
def test_who_bypasses_sees_all_and_shares_nothing(server, proxy, mode):
    """A superuser and a role with BYPASSRLS walk over all rows; their cursors are not a tenant's."""
    tenant = Tenant(proxy, BY_ROLE, mode, "tenant_1")
    for role in ("postgres", "tenant_all"):
        with proxy.wire(user=role) as conn:
            asker = pages.MODES[mode](conn, BY_ROLE)
            got = pages.forward(asker)
            assert len(pages.rows_of(got)) == ROWS
            for cursor in (got[0].next, got[3].prev):
                with pytest.raises(wire.ServerError) as refused:
                    tenant.ask(cursor)
                assert refused.value.sqlstate == "PS004"
            with pytest.raises(wire.ServerError) as refused:
                asker.ask(tenant.ask().next)
            assert refused.value.sqlstate == "PS004"
    tenant.close()


def test_row_security_off_is_the_servers_error(proxy):
    tenant = Tenant(proxy, BY_ROLE, "extended", "tenant_1")
    token = tenant.ask().next
    tenant.conn.ask(wire.query("SET row_security = off"))
    with pytest.raises(wire.ServerError) as refused:
        tenant.ask(token)
    assert refused.value.sqlstate == "42501"
    tenant.close()


@pytest.mark.parametrize("mode", ["simple", "extended"])
@pytest.mark.parametrize("cursor", [False, True])
def test_a_function_of_the_clients_is_not_told(proxy, mode, cursor):
    """The page's condition does not stand in front of the policy's: a cheap function sees the tenant's rows alone."""
    tenant = Tenant(proxy, "SELECT id, body FROM tenants.notes WHERE tenants.tell(body) ORDER BY at DESC LIMIT 4", mode, "tenant_1")
    token = tenant.ask().next if cursor else None
    sql = tenant.asker.tagged(tenant.sql, token) if mode == "simple" else tenant.asker.text()
    answer = tenant.conn.ask(wire.query(sql) if mode == "simple" else wire.extended(sql, [token]))
    told = [m.fields()["M"] for m in answer if m.kind == "N"]
    assert told and all(text.startswith("told of 1 ") for text in told), told
    assert len(pages.page_of(answer).rows) == 4
    tenant.close()


@pytest.mark.parametrize("view", ["invoker", "definer"])
@pytest.mark.parametrize("mode", MODES)
def test_through_views(server, proxy, mode, view):
    """Rights of the reader or of the owner: in both a tenant walks its own rows, whoever planned the statement before."""
    sql = BY_ROLE.replace("tenants.notes", f"tenants.{view}")
    if view == "invoker":
        with proxy.wire() as conn:
            assert len(pages.rows_of(pages.forward(pages.MODES[mode](conn, sql)))) == ROWS
    for role in ("tenant_1", "tenant_2"):
        tenant = Tenant(proxy, sql, mode, role)
        got = pages.forward(tenant)
        assert [body_number(row) for row in pages.rows_of(got)] == oracle(server, tenant)
        tenant.close()


@pytest.mark.parametrize("mode", MODES)
def test_one_session_of_many_tenants(server, proxy, mode):
    """SET ROLE changes the tenant between the pages of one session; what was planned or prepared for one is not another's."""
    with proxy.wire() as conn:
        asker = pages.MODES[mode](conn, BY_ROLE)
        cursors = {}
        for _ in range(3):
            for role in ("tenant_1", "tenant_2"):
                conn.ask(wire.query(f"SET ROLE {role}"))
                page = asker.ask(cursors.get(role))
                assert {of_tenant(row) for row in page.rows} == {int(role[-1])}
                cursors[role] = page.next
        conn.ask(wire.query("SET ROLE tenant_1"))
        with pytest.raises(wire.ServerError) as refused:
            asker.ask(cursors["tenant_2"])
        assert refused.value.sqlstate == "PS004"
        conn.ask(wire.query("RESET ROLE"))
        with pytest.raises(wire.ServerError) as refused:
            asker.ask(cursors["tenant_1"])
        assert refused.value.sqlstate == "PS004"


# ---- rights that change between two pages --------------------------------------------------------------------------


@pytest.fixture
def granted(server):
    """A table of its own, of which `app` may read all; the admin's session."""
    with server.connect() as admin:
        admin.execute("""DROP TABLE IF EXISTS tenants.granted;
            CREATE TABLE tenants.granted AS SELECT * FROM tenants.notes; ALTER TABLE tenants.granted ADD PRIMARY KEY (id), ALTER at SET NOT NULL;
            GRANT SELECT ON tenants.granted TO app""")
        yield admin
        admin.execute("DROP TABLE tenants.granted")


GRANTED = "SELECT body FROM tenants.granted ORDER BY at DESC LIMIT 4"


@pytest.mark.parametrize("mode", MODES)
def test_revoke_holds_from_the_next_page_on(proxy, granted, mode):
    with proxy.wire(user="app") as conn:
        asker = pages.MODES[mode](conn, GRANTED)
        token = asker.ask().next
        asker.ask(token)
        granted.execute("REVOKE SELECT ON tenants.granted FROM app")
        for cursor in (token, None):
            with pytest.raises(wire.ServerError) as refused:
                asker.ask(cursor)
            assert refused.value.sqlstate == "42501"
        granted.execute("GRANT SELECT ON tenants.granted TO app")
        assert len(asker.ask(token).rows) == 4


@pytest.mark.parametrize("mode", MODES)
def test_a_policy_holds_from_the_next_page_on(proxy, granted, mode):
    with proxy.wire(user="app") as conn:
        asker = pages.MODES[mode](conn, GRANTED)
        token = asker.ask().next
        assert {row[0].split()[1] for row in asker.ask(token).rows} == {b"1", b"2"}
        granted.execute("ALTER TABLE tenants.granted ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON tenants.granted USING (tenant = 2)")
        rest = pages.forward(asker, token)
        assert {row[0].split()[1] for row in pages.rows_of(rest)} == {b"2"}
        granted.execute("DROP POLICY own ON tenants.granted")
        assert asker.ask(token).rows == [], "nothing is allowed"


@pytest.mark.parametrize("mode", MODES)
def test_a_tie_breaker_that_one_may_not_read(server, proxy, granted, mode):
    """The proof of the owner is no proof for who may not read the key: its page is the server's own."""
    granted.execute("REVOKE SELECT ON tenants.granted FROM app; GRANT SELECT (at, body) ON tenants.granted TO app")
    for user, action in (("postgres", "first"), ("app", "pass: "), ("postgres", "first"), ("app", "pass: ")) * 2:
        with proxy.wire(user=user) as conn:
            page = pages.MODES[mode](conn, GRANTED).ask()
            assert page.action.startswith(action), (user, page.action)
            assert len(page.rows) == 4


@pytest.mark.parametrize("mode", MODES)
def test_a_tie_breaker_that_is_taken_away(proxy, granted, mode):
    """A statement that one may run is run all the same; its cursors hold a key that one may not read any more."""
    with proxy.wire(user="app") as conn:
        asker = pages.MODES[mode](conn, GRANTED)
        token = asker.ask().next
        granted.execute("REVOKE SELECT ON tenants.granted FROM app; GRANT SELECT (at, body) ON tenants.granted TO app")
        with pytest.raises(wire.ServerError) as refused:
            asker.ask(token)
        assert refused.value.sqlstate in ("PS004", "PS005", "42501")
        page = asker.ask()
        assert page.action.startswith("pass") and len(page.rows) == 4


# ---- scope ----------------------------------------------------------------------------------------------------------

WAYS = {
    "SET": "SET app.tenant_id = '2'", "SET LOCAL": "SET LOCAL app.tenant_id = '2'", "set_config": "SELECT set_config('app.tenant_id', '2', false)",
    "set_config, local": "SELECT set_config('app.tenant_id', '2', true)", "a function": "SELECT tenants.enter(2)",
    "a block of code": "DO $$BEGIN PERFORM tenants.enter(2); END$$", "RESET": "RESET app.tenant_id", "DISCARD": "DISCARD ALL",
    "nothing": "SET app.tenant_id = ''",
}


@pytest.fixture(scope="module")
def bound(server, run_dir):
    proxy = cluster.Proxy(pathlib.Path(tempfile.mkdtemp(prefix="p", dir=run_dir)), server)
    yield proxy.start(scope="app.tenant_id, role, session_authorization, TimeZone")
    proxy.stop()


PLAIN = "SELECT id, body FROM tenants.members m JOIN tenants.notes n USING (tenant) ORDER BY at DESC LIMIT 4"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
def test_the_scope_is_the_servers_view(bound, mode, way):
    """Whoever sets it and however: the page that is asked with another value's cursor is refused, in the same round trip."""
    with bound.wire() as conn:
        conn.ask(wire.query("SET app.tenant_id = '1'"))
        asker = pages.MODES[mode](conn, PLAIN)
        first = asker.ask()
        assert asker.ask(first.next).action == "keyset"
        if way == "DISCARD":
            conn.ask(wire.query(WAYS[way]))
            asker = pages.MODES[mode](conn, PLAIN)
        else:
            conn.ask(wire.query("BEGIN"))
            conn.ask(wire.query(WAYS[way]))
        with pytest.raises(wire.ServerError) as refused:
            asker.ask(first.next)
        assert refused.value.sqlstate == "PS004"
        conn.ask(wire.query("ROLLBACK"))
        if way == "DISCARD":
            conn.ask(wire.query("SET app.tenant_id = '1'"))
        assert asker.ask(first.next).action == "keyset", "the value is the old one again"


@pytest.mark.parametrize("where", ["role", "database", "role in database"])
def test_a_scope_given_by_alter(server, bound, where):
    """ALTER ... SET gives the value at log-in: other sessions, other scope."""
    what = {"role": "ROLE app", "database": "DATABASE e2e", "role in database": "ROLE app IN DATABASE e2e"}[where]
    with bound.wire(user="app") as before, server.connect() as admin:
        old = pages.Extended(before, BY_SETTING).ask()
        before.ask(wire.query("SET app.tenant_id = '2'"))
        token = pages.Extended(before, BY_SETTING).ask().next
        admin.execute(f"ALTER {what} SET app.tenant_id = '2'")
        try:
            with bound.wire(user="app") as after:
                page = pages.Extended(after, BY_SETTING).ask(token)
                assert page.action == "keyset" and {of_tenant(row) for row in page.rows} == {2}
                after.ask(wire.query("SET app.tenant_id = '1'"))
                with pytest.raises(wire.ServerError) as refused:
                    pages.Extended(after, BY_SETTING).ask(token)
                assert refused.value.sqlstate == "PS004"
        finally:
            admin.execute(f"ALTER {what} RESET app.tenant_id")
        assert old.rows == []


def test_unset_and_empty_are_one_scope(bound):
    """After SET LOCAL the setting is empty, not absent, for the rest of the session: the cursor from before still holds."""
    with bound.wire() as conn:
        asker = pages.Extended(conn, PLAIN)
        token = asker.ask().next
        conn.ask(wire.query("BEGIN"))
        conn.ask(wire.query("SET LOCAL app.tenant_id = '1'"))
        with pytest.raises(wire.ServerError):
            asker.ask(token)
        conn.ask(wire.query("ROLLBACK"))
        assert asker.ask(token).action == "keyset"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ["SET ROLE tenant_1", "SET SESSION AUTHORIZATION tenant_1", "SET TimeZone = 'Asia/Tokyo'"])
def test_built_in_settings_are_scope_too(bound, mode, change):
    with bound.wire() as conn:
        asker = pages.MODES[mode](conn, PLAIN)
        token = asker.ask().next
        conn.ask(wire.query(change))
        with pytest.raises(wire.ServerError) as refused:
            asker.ask(token)
        assert refused.value.sqlstate == "PS004"


def test_a_tenant_set_within_the_group(bound):
    """Set by a function in the page's own group, in front of it: the guard runs behind and sees it."""
    with bound.wire() as conn:
        conn.ask(wire.query("SET app.tenant_id = '1'"))
        asker = pages.Extended(conn, PLAIN)
        token = asker.ask().next
        enter = wire.parse("SELECT tenants.enter(2)", "enter") + wire.bind([], "enter", "enter") + wire.execute("enter")
        messages = conn.ask(enter, asker.parse(), wire.bind([token]), wire.execute(), wire.sync())
        assert [m.fields()["C"] for m in messages if m.kind == "E"] == ["PS004"]
        assert not any(m.kind == "D" and len(m.row()) == 2 for m in messages)


def test_a_psycopg_session_per_tenant(server, proxy):
    """As an application does it: one role, one transaction per request, SET LOCAL by set_config."""
    sql = BY_SETTING.replace(" LIMIT", ", id DESC LIMIT")
    seen = {1: [], 2: []}
    with proxy.connect(user="app", autocommit=False) as conn:
        cursors = {1: "", 2: ""}
        for _ in range(3):
            for tenant in (1, 2):
                with conn.transaction(), conn.cursor() as cur:
                    cur.execute("SELECT set_config('app.tenant_id', %s, true)", [str(tenant)])
                    cur.execute("SELECT set_config('pgseek.cursor', %s, true)", [cursors[tenant]])
                    rows = cur.execute(sql + " /* pgseek */").fetchall()
                    assert all(body.startswith(f"of {tenant} ") for _, body in rows)
                    seen[tenant] += [number for number, _ in rows]
                    cursors[tenant] = cur.execute("SHOW pgseek.next_cursor").fetchone()[0]
    for tenant in (1, 2):
        with server.connect(user="app") as direct:
            direct.execute("SELECT set_config('app.tenant_id', %s, false)", [str(tenant)])
            assert seen[tenant] == [row[0] for row in direct.execute(sql.replace("LIMIT 4", "LIMIT 12"))]
