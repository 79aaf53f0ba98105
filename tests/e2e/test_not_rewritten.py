"""Statements of DESIGN's "not rewritten" list that need more than one message or bytes of another encoding; the others
are files of tests/corpus. Each passes untouched with its reason, and is refused under strict and with a cursor."""
import pytest

import pages
import wire

SQL = "SELECT id, note FROM untouched ORDER BY id LIMIT 3"


@pytest.fixture(scope="module", autouse=True)
def rows(server):
    with server.connect() as conn:
        conn.execute("DROP TABLE IF EXISTS untouched; CREATE TABLE untouched (id int4 PRIMARY KEY, note text NOT NULL)")
        conn.execute("INSERT INTO untouched SELECT i, 'note ' || i FROM generate_series(1, 9) i")
    yield
    with server.connect() as conn:
        conn.execute("DROP TABLE untouched")


@pytest.fixture
def ends(server, proxy):
    with server.wire() as direct, proxy.wire() as through:
        yield direct, through


@pytest.fixture
def token(ends):
    return pages.page_of(ends[1].ask(wire.query(f"{SQL} /* pgseek */"))).next


def action(messages):
    return wire.statuses(messages).get("pgseek.action")


def refused(conn, *messages, code="PS005"):
    got = conn.ask(*messages)
    assert [m.fields()["C"] for m in got if m.kind == "E"] == [code], wire.kinds(got)
    assert not any(m.kind in "DHd" for m in got), "rows of a statement that is refused"
    assert conn.rows(wire.query("SELECT 7")) == [[b"7"]]


SENDERS = {"simple": wire.query, "extended": lambda sql: wire.parse(sql) + wire.bind() + wire.describe() + wire.execute() + wire.sync()}
PROTOCOLS = pytest.mark.parametrize("protocol", SENDERS)


@PROTOCOLS
@pytest.mark.parametrize("text", ["COPY ({0} {1}) TO STDOUT", "COPY ({0}) TO STDOUT {1}", "COPY ({0}) TO STDOUT (FORMAT csv) {1}"])
def test_copy(ends, token, protocol, text):
    direct, through = ends
    send = SENDERS[protocol]
    sql = text.format(SQL, "/* pgseek */")
    got = through.ask(send(sql))
    assert wire.without_ours(got) == direct.ask(send(sql))
    assert action(got) == "pass: copy"
    inside = wire.kinds(got)[wire.kinds(got).index("H"):wire.kinds(got).index("c")]
    assert "S" not in inside, "a status among CopyData"
    for options in (f"cursor={token}", "strict=on"):
        refused(through, send(text.format(SQL, f"/* pgseek {options} */")))


@PROTOCOLS
def test_several_statements(ends, token, protocol):
    """In a simple Query half of it would be sent unseen: refused as a bad tag. In Parse the server refuses it."""
    direct, through = ends
    for options in ("", f"cursor={token}"):
        sql = f"{SQL} /* pgseek {options} */; SELECT 1"
        if protocol == "simple":
            refused(through, SENDERS[protocol](sql), code="PS000")
        else:
            got = through.ask(SENDERS[protocol](sql))
            assert [m.fields()["C"] for m in got if m.kind == "E"][0] in ("PS000", "42601")


@PROTOCOLS
def test_declare_without_a_cursor_to_go_on_from(ends, protocol):
    """What FETCH gives is what the server would give."""
    direct, through = ends
    send, answers = SENDERS[protocol], []
    for conn in ends:
        conn.ask(wire.query("BEGIN"))
        declared = conn.ask(send(f"DECLARE c CURSOR FOR {SQL} /* pgseek */"))
        fetched = [conn.ask(send(sql)) for sql in ("FETCH 2 FROM c", "FETCH ALL FROM c", "MOVE BACKWARD ALL IN c", "FETCH 1 FROM c", "CLOSE c")]
        answers.append([wire.without_ours(declared), fetched])
        conn.ask(wire.query("COMMIT"))
    assert answers[0] == answers[1]
    assert action(declared) == "pass: declare"
    refused(through, send(f"DECLARE c CURSOR WITH HOLD FOR {SQL} /* pgseek strict=on */"))


# A client encoding in which the second byte of a character may be a backslash, a quote's neighbour or a brace.
TRAIL_BYTES = {"SJIS": "ソ", "BIG5": "功", "GBK": "昞", "GB18030": "昞", "UHC": "갂"}


@PROTOCOLS
@pytest.mark.parametrize("encoding", TRAIL_BYTES)
def test_encodings_with_ascii_trail_bytes(ends, token, encoding, protocol):
    python = {"UHC": "cp949", "SJIS": "shift_jis"}.get(encoding, encoding.lower())
    character = TRAIL_BYTES[encoding].encode(python)

    def send(options):
        text = f"SELECT id FROM untouched WHERE note <> 'X' ORDER BY id LIMIT 3 /* pgseek {options} */".encode().replace(b"X", character)
        if protocol == "simple":
            return wire.message("Q", text + b"\0")
        return wire.message("P", b"\0" + text + b"\0\0\0") + wire.bind() + wire.describe() + wire.execute() + wire.sync()

    for conn in ends:
        conn.rows(wire.query(f"SET client_encoding = '{encoding}'"))
    got = ends[1].ask(send(""))
    assert wire.without_ours(got) == ends[0].ask(send(""))
    assert action(got) == "pass: encoding"
    for options in (f"cursor={token}", "strict=on"):
        refused(ends[1], send(options))


@PROTOCOLS
def test_a_tag_that_the_server_sees_and_the_lexer_does_not(ends, token, protocol):
    """With standard_conforming_strings off a backslash hides a quote: a cursor behind it must not be overlooked."""
    for conn in ends:
        conn.rows(wire.query("SET standard_conforming_strings = off; SET escape_string_warning = off"))
    send = SENDERS[protocol]
    for options in (f"cursor={token}", "strict=on"):
        refused(ends[1], send(f"SELECT id FROM untouched WHERE note <> 'it\\'s' ORDER BY id LIMIT 3 /* pgseek {options} */"))
