"""SCRAM that ends in the proxy, with peers that lie: strangers in front of it, and servers behind it."""
import contextlib
import hashlib
import select
import socket
import subprocess

import pytest

import cluster
import scram
import secure
import wire

USER = "by_scram"
PASSWORD = secure.password_of(USER)
# Their passwords are wrong, or cannot be right: nobody_at_all does not exist, no_verifier has no secret.
DOOMED = (USER, secure.NOBODY, "no_verifier")


def is_in(heard):
    return heard[-1].kind == "Z"


def sqlstate(heard):
    assert heard[-1].kind == "E", wire.kinds(heard)
    return heard[-1].fields()["C"]


def attempt(proxy, user=USER, password=PASSWORD, header=b"n,,", binding=b"", tls=False, **more):
    with scram.connect(proxy, tls) as conn:
        return scram.log_in(conn, user, secure.UNIX, scram.Prover(password, header, binding), **more)


# ---- strangers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("kind", ["file", "query"])
def test_nobody_can_tell_which_users_there_are(proxies, kind, tls):
    shapes = set()
    for user in DOOMED:
        heard = attempt(proxies[kind], user, "wrong", tls=tls)
        fields = {**heard[-1].fields(), "M": heard[-1].fields()["M"].replace(user, "?")}
        values = dict(part.split(b"=", 1) for part in heard[1].body[4:].split(b","))
        shapes.add((wire.kinds(heard), heard[0].body, len(heard[1].body), len(values[b"s"]), values[b"i"], str(fields)))
    assert len(shapes) == 1, shapes
    assert "28P01" in str(shapes)


def test_an_unknown_user_has_always_the_same_salt(proxies):
    def salt(user):
        return attempt(proxies["file"], user, "wrong")[1].body.split(b",s=")[1]

    assert salt(secure.NOBODY) == salt(secure.NOBODY)
    assert salt(secure.NOBODY) != salt("somebody_else")


def salt_of_nobody(proxy, user=secure.NOBODY):
    with scram.connect(proxy) as conn:
        return scram.log_in(conn, user, cluster.DATABASE, scram.Prover("wrong"))[1].body.split(b",s=")[1]


def keygen(path):
    subprocess.run([cluster.pgseek_bin(), "keygen", path], check=True, capture_output=True)


def test_the_salt_of_nobody_is_the_key_files(make_proxy, run_dir):
    """Users that exist have theirs in every proxy and after every restart: so must those that do not."""
    users = secure.private_file(run_dir / "some.txt", secure.userlist({USER: secure.scram_secret(PASSWORD)}))
    keys, others = run_dir / "salt.keys", run_dir / "other.keys"
    for path in (keys, others):
        keygen(path)

    def start(path):
        return make_proxy(auth_type="scram-sha-256", auth_file=users, cursor_key_file=path)

    proxy, second = start(keys), start(keys)
    salt = salt_of_nobody(proxy)
    assert salt_of_nobody(second) == salt
    assert salt_of_nobody(start(others)) != salt
    assert salt_of_nobody(proxy.restart()) == salt
    keygen(keys)  # puts a key in front
    second.reload()
    cluster.wait_until(lambda: "reloaded" in second.log(), "it does not reload")
    assert salt_of_nobody(second) == salt and salt_of_nobody(proxy.restart()) == salt
    assert salt_of_nobody(proxy, USER) == scram.base64_of(b"a salt of 16 byt") + b",i=4096"


def test_without_a_key_file_the_salt_of_nobody_dies_with_the_process(make_proxy, run_dir):
    users = secure.private_file(run_dir / "few.txt", secure.userlist({USER: secure.scram_secret(PASSWORD)}))
    proxy = make_proxy(auth_type="scram-sha-256", auth_file=users)
    salt = salt_of_nobody(proxy)
    proxy.reload()
    cluster.wait_until(lambda: "reloaded" in proxy.log(), "it does not reload")
    assert salt_of_nobody(proxy) == salt
    assert salt_of_nobody(proxy.restart()) != salt


def test_nobody_looks_like_everybody(make_proxy, run_dir):
    """Where the secrets have another count and another length of salt, nobody's has, too."""
    secret = secure.scram_secret(PASSWORD, b"a salt that is longer than others", 12345)
    users = secure.private_file(run_dir / "others.txt", secure.userlist({USER: secret}))
    proxy = make_proxy(auth_type="scram-sha-256", auth_file=users)

    def challenge(user):
        with scram.connect(proxy) as conn:
            heard = scram.log_in(conn, user, cluster.DATABASE, scram.Prover("wrong"))
        assert sqlstate(heard) == "28P01"
        return dict(part.split(b"=", 1) for part in heard[1].body[4:].split(b","))

    there, not_there = challenge(USER), challenge(secure.NOBODY)
    assert there[b"i"] == not_there[b"i"] == b"12345"
    assert len(there[b"s"]) == len(not_there[b"s"]) and there[b"s"] != not_there[b"s"]


def test_every_byte_of_the_last_text_counts(proxies):
    proxy = proxies["file"]
    length = len(scram.Prover(PASSWORD).final(b"r=" + b"x" * 48 + b",s=" + scram.base64_of(scram.SALT) + b",i=4096"))
    for at in range(length):
        def flip(final, at=at):
            assert len(final) == length
            return final[:at] + bytes([final[at] ^ (1 << at % 7)]) + final[at + 1:]

        assert sqlstate(attempt(proxy, change=flip)) in ("28P01", "08P01"), at
    assert is_in(attempt(proxy))


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_bytes_may_come_one_by_one(proxies, tls):
    assert is_in(attempt(proxies["file"], tls=tls, step=1))


NONSENSE = {
    "a statement": (wire.query("SELECT 1"), "08P01"),
    "a password": (wire.password(PASSWORD), "08P01"),
    "nothing": (wire.message("p"), "08P01"),
    "no length": (wire.message("p", scram.PLAIN.encode() + b"\0"), "08P01"),
    "no text": (wire.message("p", scram.PLAIN.encode() + b"\0\xff\xff\xff\xff"), "08P01"),
    "a length too large": (wire.message("p", scram.PLAIN.encode() + b"\0\x7f\xff\xff\xffn,,n=,r=abc"), "08P01"),
    "a length too small": (wire.message("p", scram.PLAIN.encode() + b"\0\0\0\0\1n,,n=,r=abc"), "08P01"),
    "a message without end": (b"p\x3f\xff\xff\xff", "08P01"),
    "a message without length": (b"p\0\0\0\3", "08P01"),
    "another mechanism": (scram.choice(b"n,,n=,r=abc", "SCRAM-SHA-1"), "08P01"),
    "PLUS without TLS": (scram.choice(scram.BIND + b"n=,r=abc", scram.PLUS), "08P01"),
    "PLUS without TLS, named otherwise": (scram.choice(scram.BIND + b"n=,r=abc"), "08P01"),
    "a NUL": (scram.choice(b"n,,n=,r=a\0bc"), "08P01"),
    "a nonce that is too long": (scram.choice(b"n,,n=,r=" + b"x" * 4000), "08P01"),
    "a nonce that is far too long": (scram.choice(b"n,,n=,r=" + b"x" * 60000), "08P01"),
    "an identity": (scram.choice(b"n,a=postgres,n=,r=abc"), "08P01"),
    "an extension": (scram.choice(b"n,,m=x,n=,r=abc"), "08P01"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_refused(proxies, name):
    sent, expected = NONSENSE[name]
    with scram.connect(proxies["file"]) as conn:
        conn.send(wire.startup(user=USER, database=secure.UNIX))
        assert scram.asked(conn.read()) == scram.SASL
        conn.send(sent)
        error = conn.read()
        assert error.kind == "E" and error.fields()["C"] == expected, error
        assert conn.is_closed()
    assert is_in(attempt(proxies["file"]))


def test_there_is_one_try_per_connection(proxies):
    with scram.connect(proxies["file"]) as conn:
        prover = scram.Prover("wrong")
        heard = scram.log_in(conn, USER, secure.UNIX, prover)
        assert sqlstate(heard) == "28P01"
        assert conn.is_closed()


BINDINGS = {
    "bound": (scram.PLUS, scram.BIND, True, None),
    "bound to another certificate": (scram.PLUS, scram.BIND, False, "28P01"),
    "not bound": (scram.PLAIN, b"n,,", None, None),
    "could bind, and says that it was not offered": (scram.PLAIN, b"y,,", None, "28000"),
    "PLUS that does not bind": (scram.PLUS, b"n,,", None, "08P01"),
    "PLUS that could bind": (scram.PLUS, b"y,,", None, "08P01"),
    "binds without PLUS": (scram.PLAIN, scram.BIND, True, "08P01"),
    "another kind of binding": (scram.PLUS, b"p=tls-unique,,", True, "08P01"),
    "PLUS, and nothing bound to": (scram.PLUS, scram.BIND, None, "28P01"),
    "not bound, and then it is": (scram.PLAIN, b"n,,", True, "28P01"),
}


@pytest.mark.parametrize("name", BINDINGS)
def test_the_channel_is_bound_to_the_proxys_certificate(proxies, certificates, name):
    mechanism, header, is_ours, expected = BINDINGS[name]
    shown = hashlib.sha256(certificates.der("proxy" if is_ours else "server")).digest()
    heard = attempt(proxies["file"], header=header, binding=b"" if is_ours is None else shown, mechanism=mechanism, tls=True)
    assert heard[0].body[4:] == f"{scram.PLUS}\0{scram.PLAIN}\0\0".encode()
    if expected:
        assert sqlstate(heard) == expected, heard[-1].fields()
    else:
        assert is_in(heard)


def test_plus_is_offered_on_tls_alone(proxies):
    heard = attempt(proxies["file"], header=b"y,,")  # so "y" is no lie here
    assert heard[0].body[4:] == f"{scram.PLAIN}\0\0".encode()
    assert is_in(heard)


# ---- servers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def liar():
    with scram.Liar(PASSWORD) as liar:
        yield liar


@pytest.fixture(scope="module")
def in_front(run_dir, server, liar):
    """A proxy that keeps the secret of USER, with the liar behind it."""
    folder = run_dir / "front-of-a-liar"
    folder.mkdir()
    users = secure.private_file(folder / "users.txt", secure.userlist({USER: secure.scram_secret(PASSWORD, scram.SALT)}))
    proxy = cluster.Proxy(folder, server).start({"*": f"host={liar.host} port={liar.port} sslmode=disable"},
                                                auth_type="scram-sha-256", auth_file=users)
    yield proxy
    proxy.stop()


def says(make_challenge):
    """A server whose challenge is made from the client's nonce, and which is honest from there on."""
    def script(liar, conn):
        signature = liar.proof(conn, make_challenge(liar, liar.first(conn)))
        conn.send(scram.request(scram.FINAL, signature))
        liar.welcome(conn)
    return script


def signs(make_signature):
    def script(liar, conn):
        signature = liar.proof(conn, liar.challenge(liar.first(conn)))
        conn.send(scram.request(scram.FINAL, make_signature(signature)))
        liar.welcome(conn)
    return script


def asks(*messages):
    return lambda liar, conn: conn.send(*messages)


def fails(*messages):
    def script(liar, conn):
        conn.send(*messages)
        conn.close()
    return script


def welcomes_after_first(liar, conn):
    liar.first(conn)
    liar.welcome(conn)


def welcomes_after_proof(liar, conn):
    liar.proof(conn, liar.challenge(liar.first(conn)))
    liar.welcome(conn)


def challenges_twice(liar, conn):
    challenge = liar.challenge(liar.first(conn))
    liar.proof(conn, challenge)
    conn.send(scram.request(scram.CONTINUE, challenge))


def offers_twice(liar, conn):
    liar.first(conn)
    conn.send(scram.offer(scram.PLAIN))


# What it does: the SQLSTATE that the client gets, what the log says (None: its words are passed on, and it has a log of
# its own), and how many proofs it got out of the proxy.
LIES = {
    "a giant nonce": (says(lambda s, nonce: s.challenge(nonce, more=b"x" * 3000)), "08P01", "nonce is too long", 0),
    "a nonce larger than any message": (says(lambda s, nonce: s.challenge(nonce, more=b"x" * 60000)), "08P01", "too long", 0),
    "only our nonce": (says(lambda s, nonce: s.challenge(nonce, more=b"")), "08P01", "does not extend ours", 0),
    "another nonce": (says(lambda s, nonce: s.challenge(nonce[1:])), "08P01", "does not extend ours", 0),
    "a nonce that is not printable": (says(lambda s, nonce: s.challenge(nonce, more=b"\x80")), "08P01", "not printable", 0),
    "a NUL": (says(lambda s, nonce: s.challenge(nonce, more=b"a\0b")), "08P01", "NUL", 0),
    "no iterations": (says(lambda s, nonce: s.challenge(nonce, iterations=0)), "08P01", "iteration count", 0),
    "negative iterations": (says(lambda s, nonce: s.challenge(nonce, iterations=-1)), "08P01", "iteration count", 0),
    "iterations without end": (says(lambda s, nonce: s.challenge(nonce, iterations=10 ** 9)), "08P01", "iteration count", 0),
    "iterations that wrap around": (says(lambda s, nonce: s.challenge(nonce, iterations=2 ** 32 + 4096)), "08P01", "iteration count", 0),
    "other iterations": (says(lambda s, nonce: s.challenge(nonce, iterations=4097)), "28000", "another SCRAM secret", 0),
    "another salt": (says(lambda s, nonce: s.challenge(nonce, salt=b"b salt of 16 byt")), "28000", "another SCRAM secret", 0),
    "no salt": (says(lambda s, nonce: s.challenge(nonce, salt=b"")), "08P01", "salt", 0),
    "a giant salt": (says(lambda s, nonce: s.challenge(nonce, salt=b"x" * 2000)), "08P01", "salt", 0),
    "an extension": (says(lambda s, nonce: b"m=x," + s.challenge(nonce)), "08P01", "must be understood", 0),
    "attributes in another order": (says(lambda s, nonce: b"s=YQ==,r=" + nonce + b"x,i=4096"), "08P01", "nonce", 0),
    "nothing": (says(lambda s, nonce: b""), "08P01", "empty", 0),
    "another signature": (signs(lambda text: b"v=" + scram.base64_of(b"x" * 32)), "28000", "signature is wrong", 1),
    "a signature that is too short": (signs(lambda text: b"v=" + scram.base64_of(b"x" * 31)), "08P01", "32 bytes", 1),
    "an error in place of a signature": (signs(lambda text: b"e=other-error"), "28000", "refuses the proof", 1),
    "more behind the signature": (signs(lambda text: text + b","), "08P01", "behind the last", 1),
    "a welcome before any proof": (welcomes_after_first, "08P01", "out of turn", 0),
    "a welcome without a signature": (welcomes_after_proof, "28000", "did not prove", 1),
    "a second challenge": (challenges_twice, "08P01", "out of turn", 1),
    "a second offer": (offers_twice, "08P01", "out of turn", 0),
    "asks for a password": (asks(scram.request(scram.CLEAR_TEXT)), "28000", "clear-text password", 0),
    "asks for an MD5 hash": (asks(scram.request(scram.MD5, b"salt")), "28000", "MD5", 0),
    "asks for GSSAPI": (asks(scram.request(scram.GSS)), "28000", "GSSAPI", 0),
    "asks for what nobody knows": (asks(scram.request(99)), "28000", "unknown method", 0),
    "offers something else": (asks(scram.offer("SCRAM-SHA-1", "OTHER")), "28000", "other than SCRAM-SHA-256", 0),
    "offers nothing": (asks(scram.offer()), "28000", "other than SCRAM-SHA-256", 0),
    "an offer without end": (asks(scram.request(scram.SASL, scram.PLAIN.encode())), "08P01", "malformed", 0),
    "a request without code": (asks(wire.message("R", b"\0\0")), "08P01", "malformed authentication request", 0),
    "a challenge that nothing was said to": (asks(scram.request(scram.CONTINUE, b"r=x,s=YQ==,i=1")), "08P01", "out of turn", 0),
    "rows before the log-in": (asks(wire.message("D", b"\0\0")), "08P01", "unexpected message", 0),
    "ready before the log-in": (asks(wire.message("Z", b"I")), "08P01", "unexpected message", 0),
    "an error of its own": (fails(wire.message("E", b"SFATAL\0C28P01\0Mnot you\0\0")), "28P01", None, 0),
    "an error without fields": (fails(wire.message("E", b"\0")), None, None, 0),
}


def log_in_through(proxy):
    with scram.connect(proxy) as conn:
        return scram.log_in(conn, USER, "anywhere", scram.Prover(PASSWORD))


@pytest.mark.parametrize("name", LIES)
def test_a_server_that_lies_is_left(in_front, liar, name):
    liar.script, expected, logged, proofs = LIES[name]
    before = len(in_front.log())
    heard = log_in_through(in_front)
    assert heard[-1].kind == "E" and heard[-1].fields().get("C") == expected, heard[-1]
    # The client had proved itself, and was not let in; the server did not get what it must not have.
    assert [scram.asked(m) for m in heard if m.kind == "R"] == [scram.SASL, scram.CONTINUE, scram.FINAL]
    cluster.wait_until(lambda: liar.proofs() >= proofs, "the server has not heard the proof")
    assert liar.proofs() == proofs and not any(PASSWORD.encode() in m.body for m in liar.heard)
    lines = [line for line in in_front.log()[before:].splitlines() if " WARNING C-" in line]
    assert len(lines) == (logged is not None) and (not lines or logged in lines[0]), lines

    liar.script = scram.Liar.honest
    assert is_in(log_in_through(in_front))


def test_a_server_may_send_byte_by_byte(in_front, liar):
    def slowly(liar, conn):
        send = conn.send
        conn.send = lambda *messages: conn.send_slowly(b"".join(messages))
        scram.Liar.honest(liar, conn)
        conn.send = send

    liar.script = slowly
    assert is_in(log_in_through(in_front))


def test_a_server_that_trusts_needs_no_proof(in_front, liar):
    liar.script = scram.Liar.welcome
    assert is_in(log_in_through(in_front))
    assert liar.proofs() == 0


def relayed(proxy):
    with scram.connect(proxy) as conn:
        conn.send(wire.startup(user=USER, database="relayed"))
        return conn.until("Z", "E")


# A request for a password in clear text, as it should be, and padded beyond what the proxy would take whole: libpq refuses
# the second, and there are drivers that read its code and answer.
@pytest.mark.parametrize("padding", [0, 60000, 70000], ids=["short", "long", "very long"])
def test_nothing_is_asked_behind_a_welcome(in_front, liar, make_proxy, padding):
    """A client that has proved itself might answer with its password in clear text."""
    once_more = scram.request(scram.CLEAR_TEXT, bytes(padding))
    ready = scram.request(scram.OK), wire.message("K", bytes(8)), wire.message("Z", b"I")

    def asks_again(liar, conn):
        signature = liar.proof(conn, liar.challenge(liar.first(conn)))
        conn.send(scram.request(scram.FINAL, signature), scram.request(scram.OK), once_more)

    liar.script = asks_again
    heard = log_in_through(in_front)
    assert [scram.asked(m) for m in heard if m.kind == "R"] == [scram.SASL, scram.CONTINUE, scram.FINAL, scram.OK]
    assert sqlstate(heard) == "08P01"

    relay = make_proxy({"*": f"host={liar.host} port={liar.port} sslmode=disable"})
    liar.script = asks(scram.request(scram.OK), once_more)
    heard = relayed(relay)
    assert wire.kinds(heard) == "R E" and sqlstate(heard) == "08P01"

    for more in ({}, {"replication": "true"}):  # of such a session nothing else is looked at
        liar.script = asks(*ready, once_more)
        with scram.connect(relay) as conn:
            conn.send(wire.startup(user=USER, database="relayed", **more))
            conn.until("Z")
            assert sqlstate(conn.until("R", "E")) == "08P01"


def test_look_ups_that_hang_stop_nobody_else(make_proxy, secure_server, run_dir, monkeypatch):
    """The names of hosts are looked up in the same pool of threads, which is large enough whatever the environment says."""
    monkeypatch.setenv("UV_THREADPOOL_SIZE", "2")
    users = secure.private_file(run_dir / "known.txt", secure.userlist({USER: secure_server.secrets()[USER]}))
    with socket.create_server(("127.0.0.1", 0)) as silent, contextlib.ExitStack() as waiting:
        lines = {"silent": f"host=127.0.0.1 port={silent.getsockname()[1]} sslmode=disable",
                 "good": f"host=localhost port={secure_server.port} dbname={cluster.DATABASE}"}
        proxy = make_proxy(lines, auth_type="scram-sha-256", auth_file=users, auth_user="lookup", server_connect_timeout="120s")
        stuck = [waiting.enter_context(scram.connect(proxy)) for _ in range(24)]
        for conn in stuck:
            conn.send(wire.startup(user="unknown", database="silent"))
        for _ in range(8):  # each worker's clients are asked for by now, or wait behind those
            with scram.connect(proxy) as conn:
                assert is_in(scram.log_in(conn, USER, "good", scram.Prover(PASSWORD)))
        assert not select.select([conn.sock for conn in stuck], [], [], 0)[0]
