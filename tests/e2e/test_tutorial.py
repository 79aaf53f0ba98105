"""Runs docs/TUTORIAL.md: its shell blocks as one script, its SQL blocks as one psql session inside it.

What the text says about each answer is asserted here; only ports and the interactive psql are put in their place.
"""
import os
import re
import signal
import subprocess

import pytest

import cluster as clusters

TUTORIAL = clusters.REPOSITORY / "docs" / "TUTORIAL.md"
BLOCK = re.compile(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", re.S | re.M)
INTERACTIVE = "psql -h 127.0.0.1 -p 6432"
START = "pgseek proxy.conf 2>pgseek.log &\n"
WAIT = "until (exec 3<>/dev/tcp/127.0.0.1/6432) 2>/dev/null; do sleep 0.1; done\n"


def blocks():
    return [match.groups() for match in BLOCK.finditer(TUTORIAL.read_text())]


def session():
    """The SQL blocks; each answer begins with a line "@@ number", a failure announced by the text is shown after it."""
    lines = ["\\pset format unaligned", "\\pset tuples_only on"]
    for number, (_, says, text) in enumerate([block for block in blocks() if block[0] == "sql"]):
        fails = says.startswith("error")
        lines += [f"\\set ON_ERROR_STOP {'off' if fails else 'on'}", f"\\echo @@ {number}", text]
        if fails:
            lines.append("\\echo failed with :LAST_ERROR_SQLSTATE")
    return "\n".join(lines) + "\n"


def script():
    """The shell and file blocks, with the session run where the reader would type it."""
    parts = ["set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"]
    for language, says, text in blocks():
        if language == "sh" and text.strip() == INTERACTIVE:
            parts.append(f"{INTERACTIVE} -X -q -f ../session.sql >../session.out 2>../session.err\n")
        elif language == "sh" and says.startswith("exit"):
            parts.append(f"{{ {text.strip()} && false; }} || [ $? -eq {says.split()[1]} ]\n")
        elif language == "sh":
            # A reader is slower than the proxy's start.
            parts.append(text.replace(START, START + WAIT))
        elif language == "python":
            parts.append(f"cat >{says} <<'END_OF_FILE'\n{text}END_OF_FILE\n")
    return "".join(parts)


def run_script(server, tmp_path):
    ports = {"5432": str(server.port), "6432": str(clusters.free_port())}
    text = re.sub(r"\b(5432|6432)\b", lambda match: ports[match.group()], script())
    (tmp_path / "session.sql").write_text(session())
    programs = [str(clusters.pgseek_bin().parent), str(clusters.postgres_bin()), "/usr/bin", os.environ["PATH"]]
    env = server.env(PATH=os.pathsep.join(programs))
    process = subprocess.Popen(["bash", "-c", text], cwd=tmp_path, env=env, text=True, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return process.returncode, output


@pytest.fixture(scope="module")
def answers(server, tmp_path_factory):
    """What the shell printed, and the answer of each SQL block by its number."""
    tmp_path = tmp_path_factory.mktemp("tutorial")
    returncode, output = run_script(server, tmp_path)
    files = [tmp_path / name for name in ("session.out", "session.err")]
    answer, errors = [file.read_text() if file.exists() else "" for file in files]
    assert returncode == 0, f"{output}\n{answer}\n{errors}"
    parts = re.split(r"^@@ \d+\n", answer, flags=re.M)[1:]
    return output, [part.splitlines() for part in parts]


def posts(first, last):
    step = 1 if first <= last else -1
    return [f"{n}|Post {n}" for n in range(first, last + step, step)]


def test_the_first_page(answers):
    lines = answers[1][1]
    assert lines[:5] == posts(10000, 9996)
    assert lines[5:7] == ["first", "on"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{40,}", lines[7])


def test_the_next_page_and_back(answers):
    assert answers[1][2] == posts(9995, 9991) + ["keyset"]
    assert answers[1][3] == posts(10000, 9996) + ["off"]
    assert answers[1][4] == posts(5, 1) + ["off"]


def test_the_total_and_the_plan(answers):
    assert answers[1][5][-1] == "1429"
    assert any("Index Scan" in line for line in answers[1][6])


def test_an_insert_at_the_head_moves_nothing(answers):
    assert answers[1][7] == posts(10000, 9996) + posts(9995, 9991)


def test_other_orders(answers):
    assert answers[1][9] == ["49|49", "99|49", "149|49", "199|49", "249|49", "299|49"]
    assert answers[1][10][:3] == ["9990|", "9995|", "10000|"] and answers[1][10][3:] == ["9975|", "9980|", "9985|"]
    assert answers[1][11] == ["9|6", "8|6", "7|6", "first"]


def test_joins_and_groups(answers):
    assert answers[1][12] == ["1|9000", "1|18000", "2|1", "2|9001", "2|18001", "3|2"]
    assert answers[1][13] == ["user1|1430", "user2|1429", "user3|1429", "7", "49", "48", "47", "41"]
    level = [line.split("|")[0] for line in answers[1][14]]
    assert level.index("6") > level.index("5") and level[-1] == "10"
    assert answers[1][15][3] == "pass: relation_kind"
    assert answers[1][15][4:] == ["9999|49", "9949|49", "9899|49", "first"]


def test_which_index(answers):
    before, after = answers[1][16:18]
    assert any("Seq Scan" in line for line in before) and any("Sort Key: posts.score" in line for line in before)
    assert sum("Index Cond" in line for line in after) == 3 and not any("Seq Scan" in line for line in after)


def test_the_errors(answers):
    announced = [says.split()[1] for language, says, _ in blocks() if language == "sql" and says.startswith("error")]
    failed = [line.split()[-1] for lines in answers[1] for line in lines if line.startswith("failed with")]
    assert failed == announced
    assert len(announced) >= 4


def test_a_pass_says_why(answers):
    assert any(lines[-1] == "pass: volatile" for lines in answers[1] if lines)


def test_the_application(answers):
    assert "1430 posts in 15 pages" in answers[0]


def test_explain(answers):
    assert re.search(r"verdict +rewrite", answers[0])
    assert re.search(r"reason +no_order", answers[0])
