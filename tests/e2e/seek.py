"""Many pages of one statement, each from a boundary of its own, pipelined over one connection.

It knows tags, cursors and what a page from any row of a known order must hold. It must not know where the order came
from: `check_seeks` is given the rows.
"""
import struct
from typing import NamedTuple

import pages
import wire

CHUNK = 24  # pages in flight: few enough that neither side's socket buffers fill
OPTIONS = "deliver='status,columns'"


class Seen(NamedTuple):
    """A page as it came: its rows, each row's own cursor, and what the statuses said."""
    rows: list
    cursors: list
    next: str
    prev: str
    has_more: bool
    has_prev: bool
    action: str


class Mismatch(AssertionError):
    """A page that is not the one that was due."""


def _values(body):
    """The values of a DataRow, quickly."""
    (count,), at, values = struct.unpack_from("!H", body), 2, []
    for _ in range(count):
        length = int.from_bytes(body[at:at + 4], "big", signed=True)
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(body[at:at + length])
            at += length
    return tuple(values)


def seen_of(messages):
    rows, cursors, said, ours = [], [], {}, False
    for kind, body in messages:
        if kind == "D":
            rows.append(_values(body))
        elif kind == "S":
            name, value, _ = body.split(b"\0")
            said[name[7:].decode()] = value.decode()
        elif kind == "T":
            ours = b"pgseek_cursor\0" in body
        elif kind == "E":
            raise wire.ServerError(wire.Message(kind, body))
    if ours:  # also where the statement is passed: they are NULL then
        cursors = [(row[-2] or b"").decode() for row in rows]
        rows = [row[:-2] for row in rows]
    return Seen(rows, cursors, said.get("next_cursor", ""), said.get("prev_cursor", ""), said.get("has_more") == "on", said.get("has_prev") == "on",
                said.get("action"))


class Pager:
    """One statement in one protocol. `sql` has {} where the row count of LIMIT goes, and $n for `params`."""

    serial = 0

    def __init__(self, conn, sql, params=(), mode="named", key=None):
        self.conn, self.sql, self.params, self.mode = conn, sql, list(params), mode
        self.options = OPTIONS + (f" key='{key}'" if key else "")
        self.name = ""
        if mode == "named":
            Pager.serial += 1
            self.name = f"seek_{Pager.serial}"
            for message in conn.ask(wire.parse(self._text(), self.name), wire.sync()):
                if message.kind == "E":
                    raise wire.ServerError(message)

    def close(self):
        if self.name:
            self.conn.ask(wire.close("S", self.name), wire.sync())

    def _text(self):
        count = len(self.params)
        return f"{self.sql.format(f'${count + 1}')} /* pgseek cursor=${count + 2} {self.options} */"

    def _request(self, cursor, size):
        if self.mode == "simple":
            sql = pages.re.sub(r"\$(\d+)", lambda m: pages.literal(self.params[int(m.group(1)) - 1]), self.sql.format(size))
            return wire.query(f"{sql} /* pgseek {f'cursor={cursor} ' if cursor else ''}{self.options} */")
        values = [*self.params, size, cursor or None]
        head = b"" if self.name else wire.parse(self._text())
        return head + wire.bind(values, self.name) + wire.describe() + wire.execute() + wire.sync()

    def ask(self, cursor=None, size=1000):
        return self.ask_many([(cursor, size)])[0]

    def ask_many(self, wanted):
        """The pages of all (cursor, size) pairs, in their order."""
        answers = []
        for at in range(0, len(wanted), CHUNK):
            chunk = wanted[at:at + CHUNK]
            self.conn.send(*(self._request(cursor, size) for cursor, size in chunk))
            got = [self.conn.until("Z") for _ in chunk]  # all of them, so that an error leaves nothing behind
            answers += map(seen_of, got)
        return answers


def show(rows, most=12):
    text = ["(" + ", ".join("NULL" if value is None else value.decode(errors="replace") for value in row) + ")" for row in rows[:most]]
    return " ".join(text) + (f" ... {len(rows)} rows" if len(rows) > most else "") if rows else "no rows"


def _compare(what, page, rows, more=None, prev=None):
    if page.rows != rows:
        raise Mismatch(f"{what}: expected {show(rows)}\n   came {show(page.rows)}")
    if more is not None and (page.has_more, bool(page.next)) != (more, more):
        raise Mismatch(f"{what}: has_more is {page.has_more}, next cursor {page.next[:8]!r}, expected {more}")
    if prev is not None and (page.has_prev, bool(page.prev)) != (prev, prev):
        raise Mismatch(f"{what}: has_prev is {page.has_prev}, prev cursor {page.prev[:8]!r}, expected {prev}")


def check_seeks(pager, rows, cursors, boundaries, size_of, locking=False):
    """From each boundary on, back from it, and from some on again by the cursor of the page that came back.

    `boundaries` are positions in `rows`; size_of(i) is the page size there. `locking` pages have no look-ahead row.
    Returns the number of pages that were compared.
    """
    count = len(rows)

    def after(what, i, size, page):
        due = rows[i + 1:i + 1 + size]
        more = len(due) == size if locking else i + 1 + size < count
        _compare(f"{what} after row {i + 1} of {count}, size {size}", page, due, more, True if due else None)

    boundaries = list(boundaries)
    forward = pager.ask_many([(cursors[i], size_of(i)) for i in boundaries])
    for i, page in zip(boundaries, forward):
        after("page", i, size_of(i), page)
    behind = [(i, page) for i, page in zip(boundaries, forward) if page.prev and page.rows]
    back = pager.ask_many([(page.prev, size_of(i)) for i, page in behind])
    for (i, _), page in zip(behind, back):
        size = size_of(i)
        due = rows[max(0, i + 1 - size):i + 1]
        before = len(due) == size if locking else i + 1 > size
        _compare(f"page before row {i + 2} of {count}, size {size}", page, due, True, before)
    turned = list(zip(behind, back))[len(rows) % 4::4]
    again = pager.ask_many([(page.next, size_of(i)) for (i, _), page in turned])
    for ((i, _), _), page in zip(turned, again):
        after("page by the cursor of a page that came back,", i, size_of(i), page)
    return len(forward) + len(back) + len(again)


def check_ranks(rows, ranks):
    """`rows` are in an order that `ranks` allows: {rank: sorted rows}, ranks counted from 1 as rank() does."""
    at = 0
    for rank in sorted(ranks):
        group = sorted(rows[at:at + len(ranks[rank])], key=sort_key)
        if group != ranks[rank]:
            raise Mismatch(f"rows {at + 1} to {at + len(ranks[rank])}: expected {show(ranks[rank])}\n   came {show(group)}")
        at += len(ranks[rank])
    if at != len(rows):
        raise Mismatch(f"{len(rows)} rows came, {at} were expected")


def sort_key(row):
    return tuple((value is None, value or b"") for value in row)


def ranks_of(rows):
    """{rank: sorted rows} of rows whose last value is their rank."""
    groups = {}
    for row in rows:
        groups.setdefault(int(row[-1]), []).append(tuple(row[:-1]))
    return {rank: sorted(group, key=sort_key) for rank, group in groups.items()}


def check_first_pages(pager, rows, sizes, locking=False):
    """The first page in several sizes: what it holds and what it says."""
    for size, page in zip(sizes, pager.ask_many([(None, size) for size in sizes])):
        due = rows[:size]
        _compare(f"first page, size {size}", page, due, len(due) == size if locking else len(rows) > size, False)
