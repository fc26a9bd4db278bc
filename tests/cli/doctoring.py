"""A database for `cacp doctor` to examine, and its answer by the names of the checks."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.cli.run import cacp
from tests.support.located import ON_POSTGRESQL, connect, prepare
from tests.support.node import free_port


def new_database(folder: Path) -> Path:
    path = folder / "node.db"
    prepare(path)
    if path.exists():
        path.chmod(0o600)
    return path


def examined(db: Path, **variables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and each check by its name."""
    given = {"db": str(db), "port": str(free_port()), **variables}
    done = cacp("doctor", "--json", **given)
    body = json.loads(done.stdout)
    assert body["healthy"] == (done.exit_code == 0)
    for check in body["checks"]:
        assert bool(check["mend"]) == (check["state"] != "ok")
    return done.exit_code, {check["name"]: check for check in body["checks"]}


def execute(db: Path, *statements: str) -> None:
    # Also what a node's connection would refuse: rows that refer to nothing.
    plain = connect(db) if ON_POSTGRESQL else sqlite3.connect(db, isolation_level=None)
    with closing(plain) as connection:
        for statement in statements:
            connection.execute(statement)
