"""docs/REWRITE.md tells the truth: each statement in it gets the texts, keys and reasons that stand beside it.

A block `sql schema` is run first; a block `sql page` is a statement, and the blocks behind it are what `pgseek explain`
prints, by its label. In the tables a statement stands beside its keys or its reason. Line breaks do not count.
"""
import re
import subprocess

import pytest

import cluster as clusters

DOCUMENT = (clusters.REPOSITORY / "docs" / "REWRITE.md").read_text()
BLOCK = re.compile(r"^```sql ([^\n]+)\n(.*?)^```$", re.S | re.M)
TABLE = re.compile(r"^\| statement \| (\w+) \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", re.M)
ROW = re.compile(r"^\| `(.*)` \| `(.*)` \|$", re.M)
LABEL = {"keys": "key", "reason": "reason"}
DATABASE = "rewrite_document"


def one_line(text):
    return " ".join(text.split())


def texts():
    """(statement, label, text) of all blocks."""
    statement = None
    for label, text in BLOCK.findall(DOCUMENT):
        if label == "page":
            statement = one_line(text)
        elif label != "schema":
            yield statement, label, one_line(text)


def rows():
    return [(sql, LABEL[column], text) for column, body in TABLE.findall(DOCUMENT) for sql, text in ROW.findall(body)]


@pytest.fixture(scope="module")
def explain(server):
    """What explain prints for a statement, by label; each statement is explained once."""
    answers = {}

    def ask(sql):
        if sql not in answers:
            command = [clusters.pgseek_bin(), "explain", "-v", "-d", server.dsn(dbname=DATABASE), sql]
            output = subprocess.run(command, capture_output=True, text=True).stdout
            found = re.findall(r"^([a-z]+(?:, [^\n]*? is NULL)?) +(.*)$", output, re.M)
            answers[sql] = {label: one_line(text) for label, text in found}
        return answers[sql]

    with server.connect() as conn:
        conn.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        conn.execute(f"CREATE DATABASE {DATABASE}")
        with server.connect(dbname=DATABASE) as other:
            other.execute(next(text for label, text in BLOCK.findall(DOCUMENT) if label == "schema"))
        yield ask
        conn.execute(f"DROP DATABASE {DATABASE}")


@pytest.mark.parametrize("sql, label, text", texts())
def test_a_text(explain, sql, label, text):
    assert explain(sql).get(label) == text


@pytest.mark.parametrize("sql, label, text", rows())
def test_a_row(explain, sql, label, text):
    assert explain(sql).get(label) == text


def test_nothing_is_overlooked():
    """As many blocks and rows as a reader counts."""
    assert len(list(texts())) == DOCUMENT.count("```sql ") - DOCUMENT.count("```sql page") - 1
    assert len(rows()) == len(re.findall(r"^\| `(?:SELECT|\(SELECT|COPY|WITH)", DOCUMENT, re.M))
    assert len(list(texts())) > 15 and len(rows()) > 30
