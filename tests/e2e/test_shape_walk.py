"""The parser's half alone: shape_walk.c, built with the flags of the program under test, walks pages on a real server."""
import os
import pathlib
import shlex
import subprocess

import cluster


def build(out):
    program = pathlib.Path(cluster.pgseek_bin())
    folder = program.parent if (program.parent / "flags").exists() else program.parent / "release"
    command = shlex.split((folder / "flags").read_text())
    source = pathlib.Path(__file__).with_name("shape_walk.c")
    libraries = [str(folder / "libpgseek.a"), "-lpg_query", "-lprotobuf-c", "-lpq", "-lpthread"]
    subprocess.run([*command, "-o", str(out), str(source), *libraries], check=True, cwd=cluster.REPOSITORY)


def test_every_page_of_every_statement(server, tmp_path):
    walker = tmp_path / "shape_walk"
    build(walker)
    conninfo = f"host={server.host} port={server.port} user={cluster.SUPERUSER} dbname={cluster.DATABASE}"
    done = subprocess.run([str(walker), conninfo], env={**os.environ, "PGCLIENTENCODING": "UTF8"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
