"""Servers and clients that do what nobody should, by script.

A Server says what a list of steps says to each client, over real sockets; a Meddler stands in front of a real server
and spoils one of its messages on the way. They know the protocol well enough to break it, and must not know pgseek.
"""
import socket
import struct
import threading

import cluster
import wire
from wire import message

# ---- pieces of a server's speech -------------------------------------------------------------------------------------

AUTH_OK = message("R", bytes(4))
KEY = message("K", struct.pack("!ii", 77, 88))
READY = message("Z", b"I")
STATUS = message("S", b"server_version\x0018.0\0")
WELCOME = AUTH_OK + STATUS + KEY + READY
COLUMNS = message("T", b"\0\1one\0" + struct.pack("!IhIhih", 0, 0, 23, 4, -1, 0))
ROW = message("D", b"\0\1\0\0\0\x011")
ANSWER = COLUMNS + ROW + message("C", b"SELECT 1\0") + READY


def error(**fields):
    """An ErrorResponse with exactly these fields."""
    return message("E", b"".join(k.encode() + v.encode() + b"\0" for k, v in fields.items()) + b"\0")


# ---- steps -----------------------------------------------------------------------------------------------------------


class Hear:
    """Waits for something from the client."""


class Slowly:
    """Says it one byte at a time."""

    def __init__(self, data):
        self.data = data


class Stall:
    """Says no more, and keeps the connection until the client leaves."""


class Deaf:
    """Says no more, hears no more, and keeps the connection until the server is closed."""


class Reset:
    """Ends the connection with a RST."""


def _play(sock, steps, closing=None):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for step in steps:
        if isinstance(step, bytes):
            sock.sendall(step)
        elif isinstance(step, Slowly):
            for at in range(len(step.data)):
                sock.sendall(step.data[at:at + 1])
        elif step is Hear:
            if not sock.recv(65536):
                return
        elif step is Stall:
            while sock.recv(65536):
                pass
        elif step is Deaf:
            closing.wait(120)
        elif step is Reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(65536):  # a close with bytes unread would be a reset
        pass


class _Listener(cluster.Endpoint):
    def __init__(self):
        self.listener = socket.create_server((self.host, 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._guarded, args=(sock,), daemon=True).start()

    def _guarded(self, sock):
        try:
            self._serve(sock)
        except OSError:
            pass
        finally:
            sock.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Server(_Listener):
    """Plays its steps to each client, behind the client's first packet unless they begin with a Hear of their own."""

    def __init__(self, *steps):
        self.steps = steps
        self.closing = threading.Event()
        super().__init__()

    def close(self):
        self.closing.set()
        super().close()

    def _serve(self, sock):
        sock.settimeout(60)
        sock.recv(65536)
        _play(sock, self.steps, self.closing)


# ---- a real server whose words are spoilt on the way -----------------------------------------------------------------

# What can be done to one message. The result may be any bytes.
SPOILS = {
    "dropped": lambda kind, body: b"",
    "twice": lambda kind, body: 2 * message(kind, body),
    "empty": lambda kind, body: message(kind),
    "a byte short": lambda kind, body: message(kind, body[:-1]),
    "a byte long": lambda kind, body: message(kind, body + b"x"),
    "half": lambda kind, body: message(kind, body[:len(body) // 2]),
    "ones": lambda kind, body: message(kind, b"\xff" * len(body)),
    "length 3": lambda kind, body: kind.encode() + struct.pack("!i", 3) + body,
    "length of 1 GB": lambda kind, body: kind.encode() + struct.pack("!i", 0x3fffffff) + body,
    "unknown type": lambda kind, body: message("y", body),
    "an error instead": lambda kind, body: error(S="ERROR", M="spoilt"),
    "an error in the midst of it": lambda kind, body: message(kind, body)[:-1] + error(S="ERROR", C="XX000", M="spoilt"),
    "Z in front": lambda kind, body: READY + message(kind, body),
    "a row in front": lambda kind, body: ROW + message(kind, body),
    "statuses in front": lambda kind, body: 2000 * STATUS + message(kind, body),
}


class Meddler(_Listener):
    """Forwards to a server; of each session the nth message of `kind` that the server sends behind its first
    ReadyForQuery is spoilt."""

    def __init__(self, server):
        self.server = server
        self.kind, self.nth, self.spoil = None, 0, None
        self.upstreams = set()
        super().__init__()

    def set(self, kind, nth, spoil):
        self.kind, self.nth, self.spoil = kind, nth, spoil

    def end(self):
        """Ends all sessions: a message that never came can keep both ends waiting for each other."""
        for upstream in list(self.upstreams):
            try:
                upstream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _serve(self, client):
        upstream = socket.create_connection((self.server.host, self.server.port))
        self.upstreams.add(upstream)
        thread = threading.Thread(target=self._forward, args=(client, upstream), daemon=True)
        thread.start()
        try:
            self._meddle(wire.Wire(upstream), client)
        except (OSError, EOFError):
            pass
        for sock in (upstream, client):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        thread.join()
        self.upstreams.discard(upstream)
        upstream.close()

    @staticmethod
    def _forward(client, upstream):
        try:
            while piece := client.recv(65536):
                upstream.sendall(piece)
            upstream.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _meddle(self, upstream, client):
        is_up, seen = False, 0
        while True:
            received = upstream.read()
            data = received.raw()
            if is_up and received.kind == self.kind:
                seen += 1
                if seen == self.nth:
                    data = self.spoil(received.kind, received.body)
            is_up = is_up or received.kind == "Z"
            client.sendall(data)
