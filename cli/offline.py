"""What commands share that work on a node's database file, whether the node runs or not."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from cli.node_url import database
from cli.project_choice import NoSuchName, chosen
from cli.terminal import REFUSED, USAGE, fail, notice
from server.store.connection import Connection

if TYPE_CHECKING:
    from server.settings import Settings


@dataclass(frozen=True)
class Offline:
    """An open transaction on a node's file."""

    db: Connection
    path: Path
    now: int
    """Microseconds since 1970, UTC."""

    @cached_property
    def settings(self) -> "Settings":
        """The settings of this shell's variables. Few commands need them, and they take longer to
        import than most commands take."""
        from server.settings import load

        try:
            return load(db=self.path)
        except ValueError as error:
            fail(USAGE, str(error))


@contextmanager
def transaction(path: Path | None, *, create: bool | None = None) -> Iterator[Offline]:
    """One transaction on the node's file: `path`, else CACP_DB, else data/cacp.db.

    Without a file there, the command ends; with `create` the file is made first. None stands for a
    command that never makes one. A running node sees what was written at its next request. When
    the file can't be used, the command ends with one line on stderr.
    """
    from server.domain.errors import Unavailable
    from server.store.sqlite.connection import connect

    path = path or database(os.environ)
    try:
        if not path.exists() or path.stat().st_size == 0:
            if not create:
                fail_missing(path, can_create=create is not None)
            _make(path)
        with closing(connect(path)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield Offline(db, path, time.time_ns() // 1000)
            db.execute("COMMIT")
    except Unavailable as error:
        fail(REFUSED, f"{path}: {error.message} ({error.data['reason']})")
    except (sqlite3.Error, OSError) as error:
        fail(REFUSED, f"{path} can't be used as a node's database: {error}")


def _make(path: Path) -> None:
    from server.settings import load
    from server.store.sqlite.migrate import prepare

    try:
        settings = load(db=path)
    except ValueError as error:
        fail(USAGE, str(error))
    prepare(path, settings.durability)
    notice(f"created a new database {path}")


def fail_missing(path: Path, *, can_create: bool = False) -> NoReturn:
    """End the command because there is no database at `path`."""
    remedy = "run this in the node's folder, or name its file with --db or CACP_DB"
    if can_create:
        remedy += "; --create makes a new database there"
    fail(REFUSED, f"there is no database at {path.absolute()}: {remedy}")


def fail_unknown_peer(agent_id: str) -> NoReturn:
    fail(REFUSED, f"{agent_id} is not a peer; `cacp peers` lists the peers")


def chosen_project(db: Connection, wanted: str) -> str:
    """The id of the project that `wanted` names. Ends the command unless it names one."""
    from server.store import project_names

    try:
        return chosen(wanted, project_names.every(db))
    except NoSuchName as error:
        fail(REFUSED, str(error))


def checked_name(value: str) -> str:
    """Typer's callback for an agent id or a repo name: it must fit into a header and a list."""
    if not 1 <= len(value) <= 200 or not value.isprintable() or " " in value:
        raise typer.BadParameter("should have 1 to 200 characters and no spaces")
    return value
