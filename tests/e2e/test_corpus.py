"""The corpus: every statement of tests/corpus is paged to its end and back, and compared with the server's own result.

    PYTEST_ARGS="-k 's13 or distinct'" make e2e        some of them
"""
import json
import re

import pytest

import corpus
import pages
import wire

CASES = corpus.read_all()
SIZES = {1: "extended", 3: "named", 7: "binary"}
START = 5  # an OFFSET to start at


@pytest.fixture(scope="module")
def shop(server):
    with server.connect(dbname="postgres") as conn:
        conn.execute(f"DROP DATABASE IF EXISTS {corpus.DATABASE} WITH (FORCE)")
        conn.execute(f"CREATE DATABASE {corpus.DATABASE}")
    with server.connect(dbname=corpus.DATABASE) as conn:
        corpus.prepare(conn, CASES)
    yield server
    with server.connect(dbname="postgres") as conn:
        conn.execute(f"DROP DATABASE {corpus.DATABASE} WITH (FORCE)")


@pytest.fixture(scope="module")
def foreign_token(shop, proxy_of_the_run):
    """A cursor of another statement."""
    with proxy_of_the_run.wire(database=corpus.DATABASE) as conn:
        return pages.page_of(conn.ask(wire.query("SELECT id FROM booking ORDER BY id LIMIT 2 /* pgseek */"))).next


class Bench:
    """One case with a connection to each side."""

    def __init__(self, case, direct, through):
        self.case, self.direct, self.through = case, direct, through
        for conn in (direct, through):
            if case.session:
                conn.rows(wire.query(case.session))

    def asker(self, mode, limit, offset=0, options=""):
        case = self.case
        options = " ".join(filter(None, [case.options, options]))
        if mode == "simple":
            return pages.Simple(self.through, case.literal(limit, offset), options=options)
        asker = pages.MODES[mode](self.through, case.text(limit, offset), case.params(limit, offset), options)
        asker.result = self.format(mode)
        return asker

    def format(self, mode):
        return self.case.result if mode in ("binary", "named") else wire.TEXT

    def full(self, mode):
        """The whole result, in the format that this mode asks for."""
        return corpus.fetch(self.direct, self.case.text(corpus.ALL, 0), self.case.params(corpus.ALL, 0), self.format(mode))


@pytest.fixture
def bench(shop, proxy):
    opened = []

    def make(case):
        opened.extend([shop.wire(database=corpus.DATABASE), proxy.wire(database=corpus.DATABASE)])
        return Bench(case, *opened[-2:])

    yield make
    for conn in opened:
        conn.close()


def of(*verdicts):
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.verdict in verdicts])


def is_passed(case, page):
    """Whether the page is passed, where the file leaves that open."""
    if not page.action.startswith("pass"):
        return False
    assert case.verdict == "either" and page.action == f"pass: {case.reason}", f"{page.action} instead of {case.get('verdict')}"
    return True


# ---- pages that are rewritten ---------------------------------------------------------------------------------------


def expect_columns(page, columns, mode):
    """Names, types, typmods, table OIDs and column numbers are the original's."""
    expected = [column._replace(format=wire.TEXT) for column in columns] if mode == "simple" else columns
    assert page.columns == expected, "description"


def expect_flags(there, size, looks_ahead):
    assert [page.action for page in there] == ["first"] + ["keyset"] * (len(there) - 1)
    assert [page.has_prev for page in there] == [False] + [True] * (len(there) - 1)
    assert there[0].prev == ""
    for page in there:
        assert page.tag == f"SELECT {len(page.rows)}"
    if not looks_ahead:
        assert [page.has_more for page in there] == [len(page.rows) == size for page in there]


def walk(asker, size, case, columns, mode):
    """Forward and back; returns the pages forward."""
    there = pages.forward(asker)
    expect_flags(there, size, case.looks_ahead)
    ends = there if case.looks_ahead or there[-1].rows or len(there) == 1 else there[:-1]  # without a look-ahead row the end may be empty
    if not case.inner:
        assert [len(page.rows) for page in ends[:-1]] == [size] * (len(ends) - 1)
        assert len(ends[-1].rows) <= size and (ends[-1].rows or len(ends) == 1)
    back = pages.backward(asker, ends[-1].prev)
    if back and not back[-1].rows and not case.looks_ahead:
        back.pop()
    assert [page.rows for page in back] == [page.rows for page in ends[-2::-1]], "the way back"
    for page in back:
        assert page.has_more and pages.TOKEN.match(page.next)
    for page in there + back:
        expect_columns(page, columns, mode)
    return there


def check_last(bench, mode, size, walked):
    """page=last gives the last rows, without a cursor."""
    page = bench.asker(mode, size, options="page=last").ask()
    assert page.rows == walked[-size:] if walked else page.rows == []
    assert not page.has_more
    if bench.case.looks_ahead:
        assert page.has_prev == (len(walked) > size)


def check_start(bench, mode, size, walked):
    """An OFFSET without a cursor starts in the same order, and its cursor leads on."""
    case = bench.case
    if ":offset" not in case.sql + case.get("params"):
        return
    page = bench.asker(mode, size, START).ask()
    assert page.rows == walked[START:START + size], "the page at an OFFSET"
    if page.has_more:
        following = bench.asker(mode, size, START + size).ask(page.next)
        assert following.rows == walked[START + size:START + 2 * size], "the page after a page at an OFFSET"


def walk_flat(bench):
    """A page whose rows are those of the level with LIMIT."""
    case, orders = bench.case, {}
    groups = corpus.tie_groups(bench.direct, case.unpaged())
    for size, mode in [*SIZES.items(), (7, "simple")]:
        asker = bench.asker(mode, size)
        if is_passed(case, asker.ask()):
            return check_passed(bench)
        expected, columns = bench.full(mode)
        walked = pages.rows_of(walk(asker, size, case, columns, mode))
        assert sum(groups) == len(expected), "the case itself: the result does not stand still"
        assert corpus.grouped(walked, groups) == corpus.grouped(expected, groups), f"size {size}, {mode}"
        check_last(bench, mode, size, walked)
        check_start(bench, mode, size, walked)
        orders.setdefault(bench.format(mode), []).append(walked)
    for walks in orders.values():
        assert all(walked == walks[0] for walked in walks), "one walk has another order than the other"


def collected(case, rows):
    """The items of a page that is one row with a JSON array."""
    return [json.dumps(item) for row in rows for item in json.loads(row[case.collect - 1])] if case.collect else None


def walk_inner(bench):
    """A page that is a level inside: each page is compared with the outer statement over the same inner rows."""
    case = bench.case
    count = len(corpus.fetch(bench.direct, case.inner)[0])
    for size, mode in [*SIZES.items(), (7, "simple")]:
        asker = bench.asker(mode, size)
        if is_passed(case, asker.ask()):
            return check_passed(bench)
        _, columns = bench.full(mode)
        there = walk(asker, size, case, columns, mode)
        assert len(there) == max(1, -(-count // size)), "number of pages"
        for number, page in enumerate(there):
            reference = corpus.fill(case.reference, size, number * size)
            expected, _ = corpus.fetch(bench.direct, reference, result=bench.format(mode))
            compare_inner(bench, page.rows, expected, reference, f"size {size}, {mode}, page {number}")
        check_inner_last(bench, mode, size, count)


def compare_inner(bench, rows, expected, reference, where):
    case = bench.case
    if case.collect:
        assert collected(case, rows) == collected(case, expected), where
    elif re.search(r"\)[^()]*\border by\b[^()]*$", reference, re.I):
        groups = corpus.tie_groups(bench.direct, reference.rstrip("; \n") + " :ties")
        assert corpus.grouped(rows, groups) == corpus.grouped(expected, groups), where
    else:
        assert sorted(rows, key=repr) == sorted(expected, key=repr), where


def check_inner_last(bench, mode, size, count):
    page = bench.asker(mode, size, options="page=last").ask()
    reference = corpus.fill(bench.case.reference, size, max(0, count - size))
    expected, _ = corpus.fetch(bench.direct, reference, result=bench.format(mode))
    compare_inner(bench, page.rows, expected, reference, f"the last page, size {size}, {mode}")
    assert not page.has_more and page.has_prev == (count > size)


@of("rewrite", "either")
def test_walks_of_the_corpus(bench, case):
    (walk_inner if case.inner else walk_flat)(bench(case))


@of("whole")
@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_a_page_without_an_end_is_everything(bench, case, mode):
    bench = bench(case)
    page = bench.asker(mode, 3).ask()
    expected, columns = bench.full("extended")
    groups = corpus.tie_groups(bench.direct, case.unpaged())
    assert corpus.grouped(page.rows, groups) == corpus.grouped(expected, groups)
    assert (page.action, page.has_more, page.next, page.has_prev, page.prev) == ("first", False, "", False, "")
    expect_columns(page, columns, mode)


# ---- statements that pass -------------------------------------------------------------------------------------------


def answer(conn, sql, params, result):
    """Everything that the server says to a statement but what pgseek adds."""
    said = conn.ask(wire.extended(sql, params, result_formats=[result]))
    return [m for m in said if not (m.kind == "S" and m.status()[0].startswith("pgseek."))], wire.statuses(said).get("pgseek.action")


def check_passed(bench):
    """The tagged statement gets the bytes that the server itself gives to it."""
    case = bench.case
    for limit in (7, corpus.ALL) if ":limit" in case.sql + case.get("params") else (7,):
        sql = f"{case.text(limit, 0)} /* pgseek {case.options} */"
        got, action = answer(bench.through, sql, case.params(limit, 0), case.result)
        expected, _ = answer(bench.direct, sql, case.params(limit, 0), case.result)
        assert wire.kinds(got) == wire.kinds(expected)
        if case.reason != "volatile" or limit == corpus.ALL:
            assert sorted(got) == sorted(expected)
    return action


def refuse(bench, token, codes):
    """With a cursor or strict the statement is an error, and the session goes on."""
    for mode in ("extended", "simple"):
        for cursor, options in ((token, ""), (None, "strict=on")):
            with pytest.raises(wire.ServerError) as refused:
                bench.asker(mode, 3, options=options).ask(cursor)
            assert refused.value.sqlstate in codes, (mode, options)
            if refused.value.sqlstate == "PS005":
                assert refused.value.fields.get("D") and refused.value.fields.get("H")
    assert bench.through.rows(wire.query("SELECT 7")) == [[b"7"]]


@of("pass")
def test_what_is_not_rewritten_passes_with_its_reason(shop, bench, foreign_token, case):
    bench = bench(case)
    if int(case.get("since") or 0) > shop.version():
        return check_error(bench, foreign_token)
    action = check_passed(bench)
    refuse(bench, foreign_token, ["PS005"])
    assert action == f"pass: {case.reason}"


def check_error(bench, foreign_token):
    check_passed(bench)
    with pytest.raises(wire.ServerError) as own:
        bench.full("extended")
    refuse(bench, foreign_token, ["PS005", own.value.sqlstate])


@of("error")
def test_the_servers_own_error_is_the_answer(bench, foreign_token, case):
    check_error(bench(case), foreign_token)
