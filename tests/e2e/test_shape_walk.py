"""The parser's half alone: programs built with the flags of the one under test, which walk pages on a real server."""
import os
import pathlib
import shlex
import subprocess

import pytest

import cluster


def build(source, out):
    program = pathlib.Path(cluster.pgseek_bin())
    folder = program.parent if (program.parent / "flags").exists() else program.parent / "release"
    command = shlex.split((folder / "flags").read_text())
    libraries = [str(folder / "libpgseek.a"), "-lpg_query", "-lprotobuf-c", "-lpq", "-lpthread"]
    text = source.read_text()
    helpers = [name for name in ("walk_pages", "walk_server") if f'"{name}.h"' in text]
    if "walk_pages" in helpers:
        helpers.append("walk_server")
    sources = [str(source), *(str(source.with_name(name + ".c")) for name in helpers)]
    subprocess.run([*command, "-o", str(out), *sources, *libraries], check=True, cwd=cluster.REPOSITORY)


@pytest.mark.parametrize("walker", ["shape_walk", "form_walk", "level_walk", "guard_walk", "predicate_walk"])
def test_walker(walker, server, tmp_path):
    build(pathlib.Path(__file__).with_name(walker + ".c"), tmp_path / walker)
    done = subprocess.run([str(tmp_path / walker), server.dsn()], env={**os.environ, "PGCLIENTENCODING": "UTF8"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
