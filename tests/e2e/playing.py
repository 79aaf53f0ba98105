"""Conversations played to a server: what came back, where two answers differ, and the shortest conversation that still does.

It knows writes (lists of steps with bytes and a label) and replies as (type, body); it must not know how a conversation was
made.
"""
import socket
import struct
import time

import wire

PATIENCE_S = 8  # a reply that takes longer will not come
MINIMISE_S = 60


class Hung(Exception):
    """A reply that was owed did not come; `got` holds what did."""

    def __init__(self, got, why):
        super().__init__(f'{why} after {len(got)} replies')
        self.got = got


END = 'end of the conversation'


def pieces(data, split):
    """Cuts a write at the points that `split` (a Random, or 1 for single bytes) asks for."""
    if split is None:
        return [data]
    if split == 1:
        return [data[i:i + 1] for i in range(len(data))]
    cuts = sorted({split.randrange(len(data) + 1) for _ in range(split.randrange(1, 12))} | {0, len(data)})
    return [data[a:b] for a, b in zip(cuts, cuts[1:])]


def play(endpoint, database, writes, split=None, **startup):
    """Says it all, reads it all. Waits after a write that ends a group, where the count of answers is certain."""
    replies, expected, seen, certain = [], 0, 0, True
    with endpoint.wire(database=database, **startup) as conn:
        conn.sock.settimeout(PATIENCE_S)
        conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for write in writes:
                for piece in pieces(b''.join(step.data for step in write), split):
                    conn.send(piece)
                certain = certain and not any(step.unsure for step in write)
                expected += sum(step.data[:1] in (b'S', b'Q') for step in write)
                while certain and seen < expected and write[-1].data[:1] in (b'S', b'Q'):
                    replies.append(conn.read())
                    seen += replies[-1].kind == 'Z'
            conn.send(wire.sync(), wire.query(f"SELECT '{END}'"))
            while not (len(replies) > 2 and replies[-1].kind == 'Z' and END.encode() in replies[-3].body):
                replies.append(conn.read())
        except (OSError, EOFError) as error:
            raise Hung(replies, repr(error)) from None
    return replies


def hide_oids(body):
    """A RowDescription with the table OIDs of tables that the conversation has made itself (they differ by backend) set to 1."""
    out, at = bytearray(body), 2
    for _ in range(struct.unpack_from('>H', body)[0]):
        at = body.index(b'\0', at) + 1
        if struct.unpack_from('>I', body, at)[0] > hide_oids.last_known:
            struct.pack_into('>I', out, at, 1)
        at += 18
    return bytes(out)


hide_oids.last_known = 2**32 - 1


def visible(replies):
    """Replies without what pgseek adds."""
    return [(kind, hide_oids(body) if kind == 'T' else body) for kind, body in replies if not (kind == 'S' and body.startswith(b'pgseek.'))]


def refusal(replies, *marks):
    """The index of the first error that holds one of these, or None."""
    for i, (kind, body) in enumerate(replies):
        if kind == 'E' and any(mark in body for mark in marks):
            return i
    return None


# EXECUTE with an argument that may be a cursor and is no literal is refused: the cursor would be ignored.
REFUSALS = (b'Mthis statement cannot be paginated: execute_args',)
GROUND_REFUSALS = (b'CPS004\0', b'CPS005\0')  # only where the ground changes


def first_difference(expected, got, may_refuse):
    """None when equal; else the index. A refusal that is allowed ends the comparison."""
    end = refusal(got, *REFUSALS, *(GROUND_REFUSALS if may_refuse else ()))
    if end is not None:
        expected, got = expected[:end], got[:end]
    for i, pair in enumerate(zip(expected, got)):
        if pair[0] != pair[1]:
            return i
    return None if len(expected) == len(got) else min(len(expected), len(got))


# ---- reporting ---------------------------------------------------------------------------------------------------


def show(reply):
    kind, body = reply
    if kind in 'EN':
        fields = [part.decode('utf8', 'replace') for part in body.split(b'\0') if part]
        return f'{kind} ' + ' | '.join(field for field in fields if field[0] in 'CMDHPW')
    return f'{kind} {body[:120]!r}'


def transcript(writes, expected, got, at):
    lines = ['client:']
    for i, write in enumerate(writes):
        lines.append(f'  -- write {i + 1}')
        lines += [f'  {step.label}' for step in write]
    lines.append(f'first difference at reply {at}:')
    for name, replies in (('server', expected), ('pgseek', got)):
        lines.append(f'  {name}:')
        lines += [f'   {"*" if i == at else " "} {show(replies[i])}' for i in range(max(0, at - 6), min(len(replies), at + 4))]
    return '\n'.join(lines)


def minimise(writes, fails):
    """Leaves out steps as long as the conversation still fails."""
    flat = [(i, step) for i, write in enumerate(writes) for step in write]

    def regroup(steps):
        groups = {}
        for i, step in steps:
            groups.setdefault(i, []).append(step)
        return list(groups.values())

    deadline = time.monotonic() + MINIMISE_S
    size = max(1, len(flat) // 2)
    while time.monotonic() < deadline:
        at, removed = 0, False
        while at < len(flat) and time.monotonic() < deadline:
            shorter = flat[:at] + flat[at + size:]
            if shorter and fails(regroup(shorter)):
                flat, removed = shorter, True
            else:
                at += size
        if size == 1 and not removed:
            break
        size = max(1, size // 2)
    return regroup(flat)
