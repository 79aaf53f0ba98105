"""The files of tests/corpus: a statement each, with its verdict and with what is needed to know its right pages.

It knows the form of the files (tests/corpus/README.md) and what the server says of their statements; it must not know
what pgseek does with them.
"""
import ast
import pathlib
import re

import pages
import wire

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "corpus"
DATABASE = "corpus"
HEAD = re.compile(r"--: (?:(\w+): ?)?(.*)")
KEYS = {"verdict", "params", "setup", "session", "options", "lookahead", "result", "ties", "inner", "reference", "collect", "since"}
VERDICTS = ("rewrite", "pass", "either", "whole", "error")
ALL = 1000000  # a LIMIT that no statement reaches

_NUMBER = r"(?::(?:limit|offset)\b|all\b|null\b)(?:::\w+)?"
PAGE_CLAUSE = re.compile(rf"\s*\b(?:limit\s+{_NUMBER}|offset\s+{_NUMBER}(?:\s+rows?\b)?|fetch\s+(?:first|next)\s+{_NUMBER}\s+rows?\s+only)", re.I)


class Case:
    """One file."""

    def __init__(self, path):
        self.name = path.stem
        self.about, self.keys = [], {}
        head, body = [], []
        for line in path.read_text().splitlines():
            (body if body or not line.startswith("--:") else head).append(line)
        self.sql = "\n".join(body)
        for line in head:
            key, value = HEAD.match(line).groups()
            if key is None or key not in KEYS:
                self.about.append(value if key is None else f"{key}: {value}")
            else:
                self.keys[key] = f"{self.keys[key]}\n{value}" if key in self.keys else value
        self.verdict, _, self.reason = self.keys["verdict"].partition(" ")
        assert self.verdict in VERDICTS and bool(self.reason) == (self.verdict in ("pass", "either")), path
        self.setup, self.session, self.options = self.get("setup"), self.get("session"), self.get("options")
        self.looks_ahead = self.get("lookahead") != "none"
        self.inner, self.reference = self.get("inner"), self.get("reference")
        self.collect = int(self.get("collect") or 0)
        self.result = wire.TEXT if self.get("result") == "text" else wire.BINARY

    def get(self, key):
        return self.keys.get(key, "")

    def params(self, limit, offset):
        """The bound values of $1 ..."""
        text = self.get("params")
        values = ast.literal_eval("[" + re.sub(r"\bnull\b", "None", text.replace(":limit", str(limit)).replace(":offset", str(offset))) + "]")
        return [None if value is None else str(value) for value in values]

    def text(self, limit, offset):
        """The statement as a client sends it, with $n."""
        return fill(self.sql, limit, offset)

    def literal(self, limit, offset):
        """The statement without parameters."""
        return fill(self.written(), limit, offset)

    def written(self):
        """The statement with values in place of $n; the numbers of the page stay marks."""
        values = [value.strip() for value in re.split(r",(?=(?:[^']*'[^']*')*[^']*$)", self.get("params"))] if self.get("params") else []
        return re.sub(r"\$(\d+)", lambda m: values[int(m.group(1)) - 1], self.sql)

    def unpaged(self):
        """The text to which FETCH FIRST k ROWS WITH TIES can be added in the place of the page's clauses."""
        if self.get("ties"):
            return fill(self.get("ties"), ALL, 0) + " :ties"
        text = self.written()
        assert PAGE_CLAUSE.search(text), "no LIMIT of a simple form: the file needs a line `ties`"
        text = PAGE_CLAUSE.sub(" :ties", text, count=1)
        return PAGE_CLAUSE.sub("", text)


def fill(text, limit, offset):
    return re.sub(r"(?<!:):limit\b", str(limit), re.sub(r"(?<!:):offset\b", str(offset), text))


def read_all():
    return [Case(path) for path in sorted(FOLDER.glob("*.sql"))]


def prepare(conn, cases):
    """Fills an empty database."""
    for fixture in sorted((FOLDER / "fixtures").glob("*.sql")):
        conn.execute(fixture.read_text())
    for case in cases:
        if case.setup:
            try:
                conn.execute(case.setup)
            except Exception as error:
                raise AssertionError(f"{case.name}: {error}") from None


# ---- what the server says -------------------------------------------------------------------------------------------


def fetch(direct, sql, params=(), result=wire.TEXT):
    """Rows and columns, from the server itself."""
    page = pages.page_of(direct.ask(wire.extended(sql.replace(":tag", ""), params, result_formats=[result])))
    return page.rows, page.columns


def tie_groups(direct, unpaged):
    """How many rows the ORDER BY holds equal, group by group: FETCH FIRST k ROWS WITH TIES ends where a group ends."""
    sizes, total = [], 0
    while True:
        rows, _ = fetch(direct, unpaged.replace(":ties", f"FETCH FIRST {total + 1} ROWS WITH TIES"))
        if len(rows) == total:
            return sizes
        sizes.append(len(rows) - total)
        total = len(rows)


def grouped(rows, sizes):
    """The rows with each group of ties in an order of its own, so that two results can be compared."""
    out, at = [], 0
    for size in sizes:
        out.append(sorted(rows[at:at + size], key=repr))
        at += size
    return out + ([rows[at:]] if rows[at:] else [])
