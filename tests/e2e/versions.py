"""PostgreSQL 16 to 18, beside the one that Debian has: servers, and the libpq of each.

It knows where tests/e2e/servers has them, and must not know what they are for. Without them their tests are skipped.
"""
import json
import os
import pathlib
import shutil

import clients
import cluster

FOLDER = cluster.REPOSITORY / "tests" / "e2e" / "servers" / "node_modules"
VERSIONS = (16, 17, 18)
WITH_DIRECT = (17, 18)


def native(version):
    """The folder with bin and lib, or None."""
    folder = FOLDER / f"postgresql-{version}" / "native"
    if not (folder / "bin" / "postgres").exists():
        return None
    _link(folder.parent)
    return folder


def _link(package):
    """npm carries no symbolic links; the package lists them."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        target = package / link["target"]
        if not target.is_symlink():
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))


def programs(version, run_dir):
    """The folder of the server's programs, where the server's user can reach it."""
    folder = native(version)
    if os.getuid() == 0 and not all(parent.stat().st_mode & 0o001 for parent in folder.parents):
        copy = pathlib.Path(run_dir) / f"postgresql-{version}"
        if not copy.exists():
            shutil.copytree(folder, copy, symlinks=True)
        folder = copy
    return folder / "bin"


def psql(version):
    """Debian's psql on the libpq of this version."""
    library = native(version) / "lib"
    legs = clients.LEGS if version in WITH_DIRECT else clients.CLIENTS["psql"].legs
    return clients.CLIENTS["psql"]._replace(legs=legs, login=lambda attempt, **more: clients.psql_login(attempt, library, **more))
