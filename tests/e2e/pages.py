"""Pages as a client sees them: ask for one over raw messages, walk them to either end.

It knows the tag, the statuses and the two protocols; it must not know what the right rows are.
"""
import re
from typing import NamedTuple

import wire

TOKEN = re.compile(r"^[A-Za-z0-9_-]+$")
TEXT_OID = 25


class Page(NamedTuple):
    rows: list
    next: str
    prev: str
    has_more: bool
    has_prev: bool
    action: str
    columns: list
    tag: str


def cursor_comment(cursor):
    return f"/* pgseek cursor={cursor} */" if cursor else "/* pgseek */"


def literal(value):
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def page_of(messages):
    """The page in a list of messages. An ErrorResponse is raised."""
    for message in messages:
        if message.kind == "E":
            raise wire.ServerError(message)
    said = wire.statuses(messages)
    rows = [tuple(message.row()) for message in messages if message.kind == "D"]
    described = [message.columns() for message in messages if message.kind == "T"]
    tags = [message.text() for message in messages if message.kind == "C"]
    page = Page(rows, said.get("pgseek.next_cursor", ""), said.get("pgseek.prev_cursor", ""), said.get("pgseek.has_more") == "on",
                said.get("pgseek.has_prev") == "on", said.get("pgseek.action"), described[-1] if described else [], tags[-1] if tags else "")
    if page.action and not page.action.startswith("pass"):
        assert said["pgseek.rows"] == str(len(rows))
    return page


class Asker:
    """Runs one statement page by page. `sql` has $1.. for `params`; the tag is added here."""

    def __init__(self, conn, sql, params=(), options=""):
        self.conn, self.sql, self.params, self.options = conn, sql, list(params), options

    def ask(self, cursor=None):
        raise NotImplementedError

    def tagged(self, sql, cursor):
        """The statement with its tag: where `:tag` stands, else at the end."""
        tag = f"/* pgseek{f' cursor={cursor}' if cursor else ''}{f' {self.options}' if self.options else ''} */"
        return sql.replace(":tag", tag) if ":tag" in sql else f"{sql} {tag}"


class Simple(Asker):
    """A simple Query: values and token are written into the text."""

    def ask(self, cursor=None):
        sql = re.sub(r"\$(\d+)", lambda m: literal(self.params[int(m.group(1)) - 1]), self.sql)
        return page_of(self.conn.ask(wire.query(self.tagged(sql, cursor))))


class Extended(Asker):
    """Parse, Bind, Describe, Execute; the token is a parameter that only the tag names. `result` is a format code."""

    result = wire.TEXT
    name = ""

    def text(self):
        return self.tagged(self.sql, f"${len(self.params) + 1}")

    def parse(self):
        return wire.parse(self.text(), self.name)

    def ask(self, cursor=None):
        return page_of(self.conn.ask(
            self.parse(), wire.bind([*self.params, cursor], self.name, result_formats=[self.result]), wire.describe(), wire.execute(), wire.sync()))


class Binary(Extended):
    result = wire.BINARY


class Named(Extended):
    """One Parse, described before it is bound; then only Bind and Execute for each page."""

    result = wire.BINARY
    serial = 0

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        Named.serial += 1
        self.name = f"page_{Named.serial}"
        self.described = self.conn.ask(self.parse(), wire.describe("S", self.name), wire.sync())
        for message in self.described:
            if message.kind == "E":
                raise wire.ServerError(message)

    def parse(self):
        return b"" if hasattr(self, "described") else super().parse()


class Portions(Extended):
    """A named portal that is executed a few rows at a time, in one transaction."""

    step = 2

    def ask(self, cursor=None):
        send = [wire.parse(self.text()), wire.bind([*self.params, cursor], portal="portion"), wire.describe("P", "portion"), wire.execute("portion", self.step), wire.flush()]
        got = []
        while True:
            self.conn.send(*send)
            got += self.conn.until("C", "s", "E")
            if got[-1].kind != "s":
                break
            send = [wire.execute("portion", self.step), wire.flush()]
        got += self.conn.ask(wire.sync())
        ends = [message for message in got if message.kind == "C"]
        page = page_of(got) if not ends else None
        if page:
            return page
        rows = sum(message.kind == "D" for message in got)
        kept = [message for message in got if not (message.kind == "S" and message.status()[0] == "pgseek.rows")]
        rewritten = Portions.check_rows(got, rows)
        return page_of(kept + ([rewritten] if rewritten else []))

    @staticmethod
    def check_rows(got, rows):
        """A status that says how many rows all portions had, so that page_of() can compare."""
        if not any(message.kind == "S" and message.status()[0] == "pgseek.rows" for message in got):
            return None
        return wire.Message("S", b"pgseek.rows\0" + str(rows).encode() + b"\0")


MODES = {"simple": Simple, "extended": Extended, "binary": Binary, "named": Named, "portions": Portions}


def forward(asker, after=None, between=None, limit=100000):
    """All pages from a cursor to the end. between(page) runs between two pages."""
    pages, cursor = [], after
    while len(pages) < limit:
        pages.append(asker.ask(cursor))
        if not pages[-1].has_more:
            assert pages[-1].next == "", "a next cursor on the last page"
            return pages
        assert TOKEN.match(pages[-1].next), f"no token: {pages[-1].next!r}"
        assert pages[-1].next != cursor, "the walk does not move"
        cursor = pages[-1].next
        if between:
            between(pages[-1])
    raise AssertionError(f"no end after {limit} pages")


def backward(asker, before, between=None, limit=100000):
    """All pages from a prev cursor to the start, in the order in which they came."""
    pages, cursor = [], before
    while cursor and len(pages) < limit:
        pages.append(asker.ask(cursor))
        assert pages[-1].has_prev == bool(pages[-1].prev), "has_prev and prev_cursor disagree"
        cursor = pages[-1].prev
        if cursor and between:
            between(pages[-1])
    return pages


def rows_of(pages):
    return [row for page in pages for row in page.rows]
