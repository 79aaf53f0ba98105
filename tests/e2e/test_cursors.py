"""Cursor faults: what a token that is not the right one gets, and that nothing else suffers from it."""
import base64
import random
import subprocess

import cluster
import pytest

import pages
import wire

SQL = "SELECT id, at FROM cursor_rows WHERE feed = $1 ORDER BY at DESC, id DESC LIMIT 3"
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS cursor_rows; CREATE TABLE cursor_rows (id int8 PRIMARY KEY, feed int4 NOT NULL, at timestamptz NOT NULL)")
        conn.execute("INSERT INTO cursor_rows SELECT i, i % 2, timestamptz '2026-01-01' + make_interval(secs => i / 3) FROM generate_series(1, 40) i")
        conn.execute("DROP SCHEMA IF EXISTS cursor_other CASCADE; CREATE SCHEMA cursor_other; CREATE TABLE cursor_other.cursor_rows (LIKE cursor_rows INCLUDING ALL)")
        conn.execute("GRANT SELECT ON cursor_rows, cursor_other.cursor_rows TO app; GRANT USAGE ON SCHEMA cursor_other TO app")
    yield


@pytest.fixture
def token(conn):
    return pages.Extended(conn, SQL, ["1"]).ask().next


def fault(conn, messages, *codes, block=False):
    """One ErrorResponse of these codes with DETAIL and HINT, no row, and the session as after any error."""
    errors = [message.fields() for message in messages if message.kind == "E"]
    assert len(errors) == 1, wire.kinds(messages)
    assert errors[0]["C"] in codes, errors[0]
    assert errors[0].get("D") and errors[0].get("H"), errors[0]
    assert not any(message.kind == "D" for message in messages)
    assert messages[-1].kind == "Z" and messages[-1].body == (b"E" if block else b"I")
    return errors[0]


def simple(conn, token, feed=1, sql=SQL):
    return conn.ask(wire.query(f"{sql.replace('$1', str(feed))} /* pgseek cursor={token} */"))


def extended(conn, token, feed="1", sql=SQL):
    return conn.ask(wire.extended(f"{sql} /* pgseek cursor=$2 */", [feed, token]))


BOTH = pytest.mark.parametrize("say", [simple, extended])


def flipped(token, bit):
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[bit // 8] ^= 1 << bit % 8
    return base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()


@BOTH
def test_flipped_bits(conn, token, say):
    bits = len(token) * 6 // 8 * 8
    for bit in sorted(random.Random(1).sample(range(bits), min(60, bits)) + [0, 8, 16, bits - 1]):
        fault(conn, say(conn, flipped(token, bit)), "PS001", "PS002")
    if say is extended:  # as a literal, $1 makes another statement
        assert len(pages.page_of(say(conn, token)).rows) == 3


@BOTH
def test_truncated_and_lengthened(conn, token, say):
    for length in {1, 2, 3, 4, 10, len(token) // 2, len(token) - 4, len(token) - 1}:
        fault(conn, say(conn, token[:length]), "PS001", "PS002")
    for more in ("A", "AAAA", token):
        fault(conn, say(conn, token + more), "PS001", "PS002")


@BOTH
def test_no_token_at_all(conn, say):
    for nonsense in ("A" * 4, "A" * 2048, "A" * 2049, "A" * 10000, "!!!!", "abc=", "ab+/"):
        fault(conn, say(conn, nonsense), "PS001", "PS002")


def test_bytes_in_a_bound_token(conn):
    for nonsense in (b"\xff\xfe", b" ", b"a b", b"\n", "é".encode(), b"x" * 70000):
        messages = conn.ask(wire.extended(f"{SQL} /* pgseek cursor=$2 */", ["1", nonsense]))
        assert [m.fields()["C"] for m in messages if m.kind == "E"] in (["PS001"], ["PS002"], ["22021"])
        assert messages[-1].body == b"I"


@BOTH
@pytest.mark.parametrize("other", [
    "SELECT id FROM cursor_rows WHERE feed = $1 ORDER BY at DESC, id DESC LIMIT 3", "SELECT id, at FROM cursor_rows WHERE feed = $1 ORDER BY at, id LIMIT 3",
    "SELECT id, at FROM cursor_rows WHERE feed = $1 ORDER BY id DESC LIMIT 3", "SELECT id, at FROM cursor_other.cursor_rows WHERE feed = $1 ORDER BY at DESC, id DESC LIMIT 3",
    "SELECT id, at FROM cursor_rows WHERE feed <> $1 ORDER BY at DESC, id DESC LIMIT 3", "SELECT id, at FROM cursor_rows WHERE feed = $1 AND id > 0 ORDER BY at DESC, id DESC LIMIT 3"])
def test_of_another_statement(conn, token, say, other):
    fault(conn, say(conn, token, sql=other) if say is extended else say(conn, pages.Simple(conn, SQL, [1]).ask().next, sql=other), "PS004")


def test_of_another_filter_value(conn, token):
    fault(conn, extended(conn, token, feed="0"), "PS004")
    fault(conn, simple(conn, pages.Simple(conn, SQL, [1]).ask().next, feed=0), "PS004")
    assert len(pages.page_of(extended(conn, token)).rows) == 3


def test_a_cast_of_somebodys_own_does_not_make_two_values_one(conn, server):
    with server.connect() as admin:
        admin.execute("""CREATE SCHEMA cursor_cast; CREATE TYPE cursor_cast.pair AS (a int4, b int4);
            CREATE FUNCTION cursor_cast.same(cursor_cast.pair) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'same'::text $$;
            CREATE CAST (cursor_cast.pair AS text) WITH FUNCTION cursor_cast.same(cursor_cast.pair);
            CREATE TABLE cursor_cast.pairs (id int8 PRIMARY KEY, p cursor_cast.pair NOT NULL);
            INSERT INTO cursor_cast.pairs SELECT i, ROW(i % 2, 0)::cursor_cast.pair FROM generate_series(1, 20) i""")
        sql = "SELECT id FROM cursor_cast.pairs WHERE p = $1::cursor_cast.pair ORDER BY id LIMIT 3"
        try:
            own = pages.Extended(conn, sql, ["(0,0)"]).ask().next
            assert [row[0] for row in pages.page_of(extended(conn, own, "(0,0)", sql)).rows] == [b"8", b"10", b"12"]
            fault(conn, extended(conn, own, "(1,0)", sql), "PS004")
        finally:
            admin.execute("DROP SCHEMA cursor_cast CASCADE")


def test_the_same_value_in_another_format_is_the_same(conn, token):
    messages = conn.ask(wire.extended(f"{SQL} /* pgseek cursor=$2 */", [b"\0\0\0\1", token.encode()], formats=[1, 0]))
    assert len(pages.page_of(messages).rows) == 3
    again = conn.ask(wire.extended(f"{SQL} /* pgseek cursor=$2 */", [" 01", token]))
    assert pages.page_of(again).rows == pages.page_of(messages).rows


def test_another_limit_spelling_and_comment_are_the_same(conn, token):
    for sql in (SQL.replace("LIMIT 3", "LIMIT 5"), SQL.replace("LIMIT 3", "FETCH FIRST 5 ROWS ONLY"), SQL.replace("LIMIT 3", "LIMIT 5 OFFSET 0"), SQL.lower().replace("limit 3", "limit 5"), SQL.replace("3", "5 /* x */")):
        assert len(pages.page_of(conn.ask(wire.extended(f"{sql} /* pgseek cursor=$2 */", ["1", token]))).rows) == 5


@BOTH
def test_of_another_user(proxy, conn, token, say):
    mine = token if say is extended else pages.Simple(conn, SQL, [1]).ask().next
    with proxy.wire(user="app") as other:
        fault(other, say(other, mine), "PS004")
    conn.ask(wire.query("SET ROLE app"))
    fault(conn, say(conn, mine), "PS004")


def test_of_another_database(server, proxy, conn, token):
    with server.connect() as admin:
        admin.execute("DROP DATABASE IF EXISTS cursor_elsewhere WITH (FORCE)")
        admin.execute("CREATE DATABASE cursor_elsewhere")
    with server.connect(dbname="cursor_elsewhere") as there:
        there.execute("CREATE TABLE cursor_rows (id int8 PRIMARY KEY, feed int4 NOT NULL, at timestamptz NOT NULL)")
    with proxy.wire(database="cursor_elsewhere") as there:
        fault(there, extended(there, token), "PS004")
    with server.connect() as admin:
        admin.execute("DROP DATABASE cursor_elsewhere WITH (FORCE)")


def test_of_another_table_of_the_same_name(conn, token):
    conn.ask(wire.query("SET search_path = cursor_other"))
    fault(conn, extended(conn, token), "PS004")


@BOTH
def test_in_a_block_the_transaction_is_failed(conn, token, say):
    conn.ask(wire.query("BEGIN"))
    conn.ask(wire.query("INSERT INTO cursor_rows VALUES (1000, 5, now())"))
    fault(conn, say(conn, flipped(token, 77)), "PS001", "PS002", block=True)
    again = conn.ask(wire.query("SELECT 1"))
    assert again[0].fields()["C"] == "25P02"
    tagged = say(conn, token)
    assert [m.fields()["C"] for m in tagged if m.kind == "E"] == ["25P02"]
    assert conn.ask(wire.query("COMMIT"))[0].text() == "ROLLBACK"
    assert conn.rows(wire.query("SELECT count(*) FROM cursor_rows WHERE id = 1000")) == [[b"0"]]


def test_a_savepoint_saves_the_transaction(conn, token):
    conn.ask(wire.query("BEGIN"))
    conn.ask(wire.query("SAVEPOINT s"))
    fault(conn, extended(conn, "AAAA"), "PS001", "PS002", block=True)
    assert conn.ask(wire.query("ROLLBACK TO s"))[-1].body == b"T"
    assert len(pages.page_of(extended(conn, pages.Extended(conn, SQL, ["1"]).ask().next)).rows) == 3
    conn.ask(wire.query("COMMIT"))


def group(token, name=""):
    return wire.extended(f"{SQL} /* pgseek cursor=$2 */", ["1", token], name=name)


def test_in_pipelines_one_ready_for_each_sync(conn, token):
    bad = flipped(token, 99)
    plain = wire.extended("SELECT 7")
    groups = conn.ask(group(token), group(bad), plain, group(bad), group(token), syncs=5)
    parts, part = [], []
    for message in groups:
        part.append(message)
        if message.kind == "Z":
            parts.append(part)
            part = []
    assert [[m.fields()["C"] for m in p if m.kind == "E"] != [] for p in parts] == [False, True, False, True, False]
    assert [sum(m.kind == "D" for m in p) for p in parts] == [3, 0, 1, 0, 3]
    assert all(p[-1].body == b"I" for p in parts)


def test_in_one_group_all_behind_the_fault_is_skipped(conn, token):
    conn.ask(wire.query("CREATE TEMP TABLE side (n int)"))
    before = wire.parse("INSERT INTO side VALUES (1)") + wire.bind() + wire.execute()
    messages = conn.ask(before, group(flipped(token, 50))[:-5], before, before, wire.sync())
    assert [m.text() for m in messages if m.kind == "C"] == ["INSERT 0 1"]
    fault(conn, messages, "PS001", "PS002")
    assert conn.rows(wire.query("SELECT count(*) FROM side")) == [[b"0"]], "the group was one transaction"


def test_the_unnamed_statement_lives_on(conn, token):
    conn.ask(wire.parse(f"{SQL} /* pgseek cursor=$2 */"), wire.sync())
    run = lambda value: conn.ask(wire.bind(["1", value]), wire.describe(), wire.execute(), wire.sync())
    fault(conn, run("AAAA"), "PS001", "PS002")
    assert len(pages.page_of(run(token)).rows) == 3
    fault(conn, run(flipped(token, 40)), "PS001", "PS002")
    assert len(pages.page_of(run(None)).rows) == 3


def test_expiry(make_proxy):
    proxy = make_proxy(cursor_ttl="1s")
    with proxy.wire() as conn:
        token = pages.Extended(conn, SQL, ["1"]).ask().next

        def expired():
            messages = extended(conn, token)
            return messages if any(m.kind == "E" for m in messages) else None

        error = fault(conn, cluster.wait_until(expired, "the cursor does not expire", 10), "PS003")
        assert "first page" in (error["H"] + error["D"])


def test_keys_die_with_the_process_or_live_in_a_file(make_proxy, run_dir):
    proxy = make_proxy()
    with proxy.wire() as conn:
        token = pages.Extended(conn, SQL, ["1"]).ask().next
    proxy.restart()
    with proxy.wire() as conn:
        fault(conn, extended(conn, token), "PS002")


@pytest.mark.parametrize("protection", ["encrypt", "sign"])
def test_key_file_and_rotation(make_proxy, run_dir, protection):
    import subprocess
    keys = run_dir / f"cursor.{protection}.keys"
    keygen = lambda: subprocess.run([cluster.pgseek_bin(), "keygen", keys], check=True, capture_output=True)
    keygen()
    proxy = make_proxy(cursor_key_file=keys, cursor_protection=protection)
    with proxy.wire() as conn:
        old = pages.Extended(conn, SQL, ["1"]).ask().next
    keygen()
    proxy.restart()
    with proxy.wire() as conn:
        assert len(pages.page_of(extended(conn, old)).rows) == 3, "the old key still opens"
        new = pages.Extended(conn, SQL, ["1"]).ask().next
        fault(conn, extended(conn, flipped(new, 200)), "PS001", "PS002")
    newest = next(line for line in keys.read_text().splitlines(True) if line.startswith("pgseek-key"))
    keys.write_text(newest)
    proxy.restart()
    with proxy.wire() as conn:
        assert len(pages.page_of(extended(conn, new)).rows) == 3
        fault(conn, extended(conn, old), "PS002")


def test_encrypted_tokens_hide_keys_and_differ(conn, server):
    with server.connect() as admin:
        admin.execute("DROP TABLE IF EXISTS cursor_secret; CREATE TABLE cursor_secret (k text PRIMARY KEY); INSERT INTO cursor_secret VALUES ('topsecret1'), ('topsecret2'), ('x')")
    asker = pages.Extended(conn, "SELECT k FROM cursor_secret ORDER BY k LIMIT 1")
    first, second = asker.ask().next, asker.ask().next
    assert first != second
    assert b"topsecret" not in base64.urlsafe_b64decode(first + "==")
    assert set(first) <= set(ALPHABET)


def test_scope(make_proxy):
    proxy = make_proxy(scope="app.tenant_id")
    with proxy.wire() as conn:
        conn.ask(wire.query("SET app.tenant_id = '1'"))
        token = pages.Extended(conn, SQL, ["1"]).ask().next
        assert len(pages.page_of(extended(conn, token)).rows) == 3
        conn.ask(wire.query("SET app.tenant_id = '2'"))
        fault(conn, extended(conn, token), "PS004")
        conn.ask(wire.query("SET app.tenant_id = '1'"))
        assert len(pages.page_of(extended(conn, token)).rows) == 3


def test_a_scope_of_another_name_is_another_scope(make_proxy, run_dir):
    subprocess.run([cluster.pgseek_bin(), "keygen", run_dir / "scope.keys"], check=True, stdout=subprocess.DEVNULL)
    proxy = make_proxy(scope="app.tenant_id", cursor_key_file=run_dir / "scope.keys")
    with proxy.wire() as conn:
        conn.ask(wire.query("SET app.tenant_id = '1'; SET app.reader_id = '1'"))
        token = pages.Extended(conn, SQL, ["1"]).ask().next
    proxy.restart(scope="app.reader_id")
    with proxy.wire() as conn:
        conn.ask(wire.query("SET app.tenant_id = '1'; SET app.reader_id = '1'"))
        fault(conn, extended(conn, token), "PS004")


@pytest.mark.parametrize("policy, allowed", [({"offset_policy": "reject"}, 0), ({"max_offset": 10}, 10)])
def test_offset_policy(make_proxy, policy, allowed):
    with make_proxy(**policy).wire() as conn:
        for offset in (0, 5, 10, 11):
            messages = conn.ask(wire.query(f"SELECT id FROM cursor_rows ORDER BY id LIMIT 2 OFFSET {offset} /* pgseek */"))
            if offset <= allowed:
                assert len(pages.page_of(messages).rows) == 2
            else:
                fault(conn, messages, "PS006")


# ---- no oracle ------------------------------------------------------------------------------------------------------


def refusal(conn, say, token, sql=SQL):
    """The bytes of the one ErrorResponse."""
    errors = [message for message in say(conn, token, sql=sql) if message.kind == "E"]
    assert len(errors) == 1, errors
    return errors[0].body


def resealed(token, change):
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    change(raw)
    return base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()


@BOTH
def test_refusals_of_a_class_are_the_same_bytes(make_proxy, run_dir, token, say):
    """Whatever is wrong with a token, and whichever key it is of: one answer for what is malformed, one for what is not sealed."""
    import subprocess
    keys = run_dir / "oracle.keys"
    keys.unlink(missing_ok=True)
    for _ in range(3):
        subprocess.run([cluster.pgseek_bin(), "keygen", keys], check=True, capture_output=True)
    proxy = make_proxy(cursor_key_file=keys)
    ids = [bytes.fromhex(line.split()[2]) for line in keys.read_text().splitlines() if line.startswith("pgseek-key")]
    with proxy.wire() as conn:
        good = pages.Extended(conn, SQL, ["1"]).ask().next
        signed = resealed(good, lambda raw: raw.__setitem__(5, raw[5] | 2))
        sealed_wrong = [token, signed, flipped(good, 100), flipped(good, len(good) * 6 // 8 * 8 - 1), resealed(good, lambda raw: raw.pop()), resealed(good, lambda raw: raw.append(0))]
        sealed_wrong += [resealed(good, lambda raw, key=key: raw.__setitem__(slice(1, 5), key)) for key in ids[1:] + [b"\0\0\0\0", b"\xff\xff\xff\xff"]]
        malformed = ["A", "AAAA", "AAAAA", "=", "a b", good[:20], good + "=", "A" * 2048, "A" * 2049, resealed(good, lambda raw: raw.__setitem__(0, 2)),
                     resealed(good, lambda raw: raw.__setitem__(5, 0x80))]
        assert len({refusal(conn, say, bad) for bad in sealed_wrong}) == 1
        assert len({refusal(conn, say, bad) for bad in malformed if say is extended or " " not in bad}) == 1
        assert b"PS002" in refusal(conn, say, sealed_wrong[0]) and b"PS001" in refusal(conn, say, malformed[0])
        assert all(key.hex().encode() not in refusal(conn, say, sealed_wrong[0]) for key in ids)


def test_a_token_has_one_spelling(conn, token):
    """The spare bits of the last character, padding and the other alphabet: none of them opens."""
    last = ALPHABET.index(token[-1])
    spellings = [token[:-1] + ALPHABET[other] for other in range(64) if other != last] + [token + "=", token + "==", f"{token}\n", f" {token}"]
    if set("-_") & set(token):
        spellings.append(token.replace("-", "+").replace("_", "/"))
    for spelling in spellings:
        fault(conn, extended(conn, spelling), "PS001", "PS002")
    assert len(pages.page_of(extended(conn, token)).rows) == 3


def test_a_forger_moves_nobody(conn, token):
    """Refused tokens leave no trace in what comes next: neither in the page, nor in the cursor of a variable."""
    expected = pages.page_of(extended(conn, token)).rows
    conn.ask(wire.query(f"SET pgseek.cursor = '{token}'"))
    fault(conn, extended(conn, flipped(token, 300)), "PS001", "PS002")
    assert conn.rows(wire.query("SHOW pgseek.cursor")) == [[token.encode()]]
    again = conn.ask(wire.extended(f"{SQL} /* pgseek */", ["1"]))
    assert pages.page_of(again).rows == expected
