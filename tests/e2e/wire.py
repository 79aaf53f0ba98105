"""PostgreSQL messages, built and taken apart field by field, and a raw connection to send them on.

It knows protocol 3 and must not know what a message is sent for. Builders return bytes, so that a test can join,
split and spoil them; Wire reads whole messages.
"""
import socket
import struct
from typing import NamedTuple, Optional

PROTOCOL_3_0 = 3 << 16
PROTOCOL_3_2 = (3 << 16) | 2
SSL_REQUEST = struct.pack("!ii", 8, 80877103)
GSS_REQUEST = struct.pack("!ii", 8, 80877104)
TEXT, BINARY = 0, 1


def _cstr(text):
    return (text if isinstance(text, bytes) else text.encode()) + b"\0"


def message(kind, body=b""):
    kind = kind if isinstance(kind, bytes) else kind.encode()
    return kind + struct.pack("!i", len(body) + 4) + body


# ---- what a client sends ---------------------------------------------------------------------------------------------


def startup(version=PROTOCOL_3_0, **parameters):
    return startup_raw(version, b"".join(_cstr(k) + _cstr(v) for k, v in parameters.items()) + b"\0")


def startup_raw(version, body):
    return struct.pack("!ii", len(body) + 8, version) + body


def cancel_request(pid, secret):
    return struct.pack("!iii", 12 + len(secret), 80877102, pid) + secret


def query(sql):
    return message("Q", _cstr(sql))


def parse(sql, name="", oids=()):
    return message("P", _cstr(name) + _cstr(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(params=(), statement="", portal="", formats=(), result_formats=()):
    """Parameters are None, bytes, or text that is encoded as UTF-8."""
    body = _cstr(portal) + _cstr(statement) + struct.pack(f"!H{len(formats)}h", len(formats), *formats)
    body += struct.pack("!H", len(params))
    for value in params:
        if value is None:
            body += struct.pack("!i", -1)
            continue
        value = value if isinstance(value, bytes) else str(value).encode()
        body += struct.pack("!i", len(value)) + value
    return message("B", body + struct.pack(f"!H{len(result_formats)}h", len(result_formats), *result_formats))


def describe(kind="P", name=""):
    """kind is P for a portal, S for a statement."""
    return message("D", kind.encode() + _cstr(name))


def execute(portal="", max_rows=0):
    return message("E", _cstr(portal) + struct.pack("!i", max_rows))


def close(kind="P", name=""):
    return message("C", kind.encode() + _cstr(name))


def sync():
    return message("S")


def flush():
    return message("H")


def terminate():
    return message("X")


def password(text):
    return message("p", _cstr(text))


def copy_data(data):
    return message("d", data)


def copy_done():
    return message("c")


def copy_fail(why):
    return message("f", _cstr(why))


def function_call(oid, args, formats=(BINARY,), result_format=BINARY):
    body = struct.pack(f"!IH{len(formats)}hH", oid, len(formats), *formats, len(args))
    for value in args:
        body += struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
    return message("F", body + struct.pack("!h", result_format))


def extended(sql, params=(), name="", portal="", oids=(), formats=(), result_formats=(), max_rows=0):
    """Parse, Bind, Describe of the portal, Execute and Sync of one statement."""
    return (parse(sql, name, oids) + bind(params, name, portal, formats, result_formats) + describe("P", portal)
            + execute(portal, max_rows) + sync())


# ---- what a server sends ---------------------------------------------------------------------------------------------


class Column(NamedTuple):
    name: str
    table: int
    number: int
    type: int
    size: int
    typmod: int
    format: int


class Message(NamedTuple):
    kind: str
    body: bytes

    def raw(self):
        return message(self.kind, self.body)

    def text(self):
        """The first string of the body: the tag of C, the name of S."""
        return self.body.split(b"\0")[0].decode()

    def fields(self):
        """The fields of an E or N, by letter."""
        return {field[:1].decode(): field[1:].decode(errors="replace") for field in self.body.split(b"\0") if field}

    def status(self):
        """Name and value of a ParameterStatus."""
        name, value, _ = self.body.split(b"\0")
        return name.decode(), value.decode()

    def row(self):
        """The values of a DataRow: bytes or None."""
        (count,), at, values = struct.unpack_from("!H", self.body), 2, []
        for _ in range(count):
            (length,), at = struct.unpack_from("!i", self.body, at), at + 4
            values.append(None if length < 0 else self.body[at:at + length])
            at += max(length, 0)
        assert at == len(self.body), "bytes behind the last value of a DataRow"
        return values

    def columns(self):
        """The columns of a RowDescription."""
        (count,), at, columns = struct.unpack_from("!H", self.body), 2, []
        for _ in range(count):
            end = self.body.index(b"\0", at)
            columns.append(Column(self.body[at:end].decode(), *struct.unpack_from("!IhIhih", self.body, end + 1)))
            at = end + 19
        assert at == len(self.body), "bytes behind the last column of a RowDescription"
        return columns

    def parameter_types(self):
        """The OIDs of a ParameterDescription."""
        (count,) = struct.unpack_from("!H", self.body)
        return list(struct.unpack_from(f"!{count}I", self.body, 2))


class ServerError(Exception):
    """An ErrorResponse, by its fields."""

    def __init__(self, error):
        self.fields = error.fields()
        super().__init__(f"{self.fields.get('C')}: {self.fields.get('M')}")

    @property
    def sqlstate(self):
        return self.fields.get("C")


class Wire:
    """One raw connection; what the login reported is in .parameters, .pid and .secret."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""
        self.parameters = {}
        self.pid: Optional[int] = None
        self.secret = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with a RST instead of a FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def send(self, *messages):
        self.sock.sendall(b"".join(messages))

    def send_slowly(self, data, step=1):
        """One write per `step` bytes, not gathered by the kernel."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            self.sock.sendall(data[at:at + step])

    def read_bytes(self, count):
        while len(self.buffer) < count:
            piece = self.sock.recv(65536)
            if not piece:
                raise EOFError(f"connection closed, {len(self.buffer)} of {count} bytes there")
            self.buffer += piece
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def read(self):
        """The next message."""
        kind = self.read_bytes(1).decode("latin-1")
        (length,) = struct.unpack("!i", self.read_bytes(4))
        return Message(kind, self.read_bytes(length - 4))

    def until(self, *kinds):
        """All messages up to and including the first of these kinds."""
        messages = []
        while True:
            messages.append(self.read())
            if messages[-1].kind in kinds:
                return messages

    def ready(self, count=1):
        """All messages up to the count-th ReadyForQuery."""
        messages = []
        for _ in range(count):
            messages += self.until("Z")
        return messages

    def is_closed(self):
        """Reads to the end of the connection; true when the peer has closed or reset it."""
        try:
            while self.sock.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def start(self, version=PROTOCOL_3_0, **parameters):
        """Logs in where no password is asked for, and keeps what the server reported."""
        self.send(startup(version, **parameters))
        messages = self.until("Z", "E")
        for received in messages:
            if received.kind == "E":
                raise ServerError(received)
            if received.kind == "S":
                name, value = received.status()
                self.parameters[name] = value
            if received.kind == "K":
                (self.pid,) = struct.unpack_from("!i", received.body)
                self.secret = received.body[4:]
        return messages

    def ask(self, *messages, syncs=1):
        """Sends and returns what comes up to ReadyForQuery, as messages."""
        self.send(*messages)
        return self.ready(syncs)

    def rows(self, *messages):
        """Sends, and returns the rows' values; an ErrorResponse is raised."""
        answer = self.ask(*messages)
        for received in answer:
            if received.kind == "E":
                raise ServerError(received)
        return [received.row() for received in answer if received.kind == "D"]


def kinds(messages):
    """The letters of messages in order: "1 2 T D C Z" is the usual answer to extended()."""
    return " ".join(received.kind for received in messages)


def statuses(messages):
    """The ParameterStatus values of messages, the last one of each name."""
    return dict(received.status() for received in messages if received.kind == "S")


def without_ours(messages):
    """What the server itself would have said."""
    return [message for message in messages if not (message.kind == "S" and message.status()[0].startswith("pgseek."))]


def run(conn, sql, protocol, params=(), **kwargs):
    """The answer to a statement as a simple Query, or by Parse, Bind, Describe and Execute."""
    return conn.ask(query(sql) if protocol == "simple" else extended(sql, params, **kwargs))
