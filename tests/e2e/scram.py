"""SCRAM by hand: a client that computes and sends what a test wants, and a server that tells the lies of a test.

It knows RFC 5802's texts and PostgreSQL's messages around them, and must not know what is tested.
"""
import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
import threading

import wire

PLAIN, PLUS = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
OK, CLEAR_TEXT, MD5, GSS, SASL, CONTINUE, FINAL = 0, 3, 5, 7, 10, 11, 12
SALT, ITERATIONS = b"a salt of 16 byt", 4096
BIND = b"p=tls-server-end-point,,"


def base64_of(data):
    return base64.b64encode(data)


def keys_of(password, salt, iterations):
    """ClientKey, StoredKey, ServerKey."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return client_key, hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256")


class Prover:
    """A client's texts for one exchange."""

    def __init__(self, password, header=b"n,,", binding=b""):
        self.password, self.header, self.binding = password, header, binding
        self.nonce = base64_of(secrets.token_bytes(18))

    def first(self):
        return self.header + b"n=,r=" + self.nonce

    def final(self, challenge):
        values = dict(part.split(b"=", 1) for part in challenge.split(b","))
        client_key, stored_key, _ = keys_of(self.password, base64.b64decode(values[b"s"]), int(values[b"i"]))
        without_proof = b"c=" + base64_of(self.header + self.binding) + b",r=" + values[b"r"]
        signature = hmac.digest(stored_key, b",".join([b"n=,r=" + self.nonce, challenge, without_proof]), "sha256")
        return without_proof + b",p=" + base64_of(bytes(a ^ b for a, b in zip(client_key, signature)))


def choice(text, mechanism=PLAIN):
    """SASLInitialResponse."""
    return wire.message("p", mechanism.encode() + b"\0" + struct.pack("!i", len(text)) + text)


def response(text):
    return wire.message("p", text)


def connect(endpoint, tls=False):
    """A raw connection, encrypted or not. Nothing is verified: what is shown is the test's business."""
    sock = endpoint.socket()
    if tls:
        sock.sendall(wire.SSL_REQUEST)
        assert sock.recv(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        sock = context.wrap_socket(sock)
    return wire.Wire(sock)


def log_in(conn, user, database, prover, mechanism=PLAIN, change=lambda final: final, step=None):
    """Everything that is said to this client up to ReadyForQuery or the end. `step`: bytes per write."""
    def send(data):
        conn.send_slowly(data, step or len(data))

    heard = []
    send(wire.startup(user=user, database=database))
    with contextlib.suppress(EOFError, ConnectionError):
        heard.append(conn.read())
        send(choice(prover.first(), mechanism))
        heard.append(conn.read())
        if heard[-1].kind == "R":
            send(response(change(prover.final(heard[-1].body[4:]))))
            heard += conn.until("Z", "E")
    return heard


def asked(message):
    """The code of an authentication request."""
    return struct.unpack_from("!i", message.body)[0]


# ---- a server that lies -----------------------------------------------------------------------------------------------


def request(code, body=b""):
    return wire.message("R", struct.pack("!i", code) + body)


def offer(*mechanisms):
    return request(SASL, b"".join(name.encode() + b"\0" for name in mechanisms) + b"\0")


class Liar(contextlib.AbstractContextManager):
    """Accepts connections one after the other and does with each what `script` says: a function of (self, conn), behind
    which the connection is read to its end unless it is closed. It knows the password of every user."""

    def __init__(self, password):
        self.password = password
        self.script = Liar.honest
        self.heard = []  # the messages of the last connection
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self.listener.getsockname()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(30)
            self.heard = []
            with wire.Wire(sock) as conn, contextlib.suppress(EOFError, OSError):
                (length,) = struct.unpack("!i", conn.read_bytes(4))
                conn.read_bytes(length - 4)
                self.script(self, conn)
                while conn.sock.fileno() >= 0:
                    self.read(conn)

    def read(self, conn):
        self.heard.append(conn.read())
        return self.heard[-1]

    # ---- the steps of an honest exchange; a script leaves one out, or says something else ----

    def first(self, conn, *mechanisms):
        """Offers, and returns the client's nonce."""
        conn.send(offer(*(mechanisms or (PLAIN,))))
        _, _, text = self.read(conn).body.partition(b"\0")
        self.bare = text[4:].split(b",", 2)[2]
        return self.bare.split(b"r=")[1]

    def challenge(self, nonce, salt=SALT, iterations=ITERATIONS, more=b"3rfcNHYJY1ZVvWVs7j"):
        return b"r=%s%s,s=%s,i=%s" % (nonce, more, base64_of(salt), str(iterations).encode())

    def proof(self, conn, challenge):
        """Sends the challenge, and returns the signature that the answer asks for."""
        conn.send(request(CONTINUE, challenge))
        without_proof = self.read(conn).body.rpartition(b",p=")[0]
        server_key = keys_of(self.password, SALT, ITERATIONS)[2]
        return b"v=" + base64_of(hmac.digest(server_key, b",".join([self.bare, challenge, without_proof]), "sha256"))

    def welcome(self, conn):
        conn.send(request(OK), wire.message("K", struct.pack("!ii", 1, 2)), wire.message("Z", b"I"))

    def honest(self, conn):
        signature = self.proof(conn, self.challenge(self.first(conn)))
        conn.send(request(FINAL, signature))
        self.welcome(conn)

    def proofs(self):
        """How many proofs it was given."""
        return sum(b",p=" in message.body for message in self.heard)
