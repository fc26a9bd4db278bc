"""What commands share that work on a node's database, whether the node runs or not."""

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

from cli.node_url import database, location
from cli.project_choice import NoSuchName, chosen
from cli.terminal import REFUSED, USAGE, fail, notice

if TYPE_CHECKING:
    from server.domain.location import DatabaseUrl, Location
    from server.settings import Settings
    from server.store.connection import Connection


@dataclass(frozen=True)
class Offline:
    """An open transaction on a node's database."""

    db: "Connection"
    path: Path
    """The node's file, or the one beside which a replica keeps its other files."""
    now: int
    """Microseconds since 1970, UTC."""
    shared: bool = False
    """Whether replicas on other machines may run on the database."""

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
def transaction(named: str | Path | None, *, create: bool | None = None) -> Iterator[Offline]:
    """One transaction on the node's database: the file or URL `named`, else CACP_DATABASE_URL, else
    CACP_DB, else data/cacp.db.

    Without a database there, the command ends; with `create` it is made first. None stands for a
    command that never makes one. A running node sees what was written at its next request. When
    the database can't be used, the command ends with one line on stderr.
    """
    place = place_of(named)
    with usable(place):
        if isinstance(place, Path):
            with _on_file(place, create) as node:
                yield node
        else:
            with _on_server(place, create) as node:
                yield node


def place_of(named: str | Path | None) -> "Location":
    """The database that a command works on. Ends the command when it can't be named so."""
    try:
        return location(named, os.environ)
    except ValueError as error:
        fail(USAGE, f"CACP_DATABASE_URL or --database: {error}")


@contextmanager
def usable(place: "Location") -> Iterator[None]:
    """End the command with one line on stderr when the database can't be used."""
    from server.domain.errors import Unavailable
    from server.store.portable import DatabaseRefused

    errors: tuple[type[Exception], ...] = (sqlite3.Error, OSError)
    if not isinstance(place, Path):
        import psycopg

        errors = (psycopg.Error, OSError)
    try:
        yield
    except Unavailable as error:
        fail(REFUSED, f"{shown(place)}: {error.message} ({error.data['reason']})")
    except DatabaseRefused as error:
        fail(REFUSED, f"{shown(place)}: {error}")
    except errors as error:
        problem = str(error).strip().partition("\n")[0]
        fail(REFUSED, f"{shown(place)} can't be used as a node's database: {problem}")


def shown(place: "Location") -> str:
    """A database as people are shown it: without a password."""
    return str(place) if isinstance(place, Path) else place.shown


@contextmanager
def _on_file(path: Path, create: bool | None) -> Iterator[Offline]:
    from server.store.portable import check_here
    from server.store.sqlite.connection import connect

    if not path.exists() or path.stat().st_size == 0:
        if not create:
            fail_missing(path, can_create=create is not None)
        _make(path)
    with closing(connect(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        check_here(db)
        yield Offline(db, path, time.time_ns() // 1000)
        db.execute("COMMIT")


@contextmanager
def _on_server(url: "DatabaseUrl", create: bool | None) -> Iterator[Offline]:
    from server.store.opening import connect
    from server.store.portable import check_here
    from server.store.postgresql.fitness import tables
    from server.store.postgresql.replicas import server_time
    from server.store.postgresql.storage import PgStorage

    storage = PgStorage(url)
    with closing(connect(url)) as db:
        if not tables(db):
            if not create:
                fail_missing(url, can_create=create is not None)
            _make(url)
        check_here(db)
        last = storage.begin(db)
        # Stamped by the clock of all replicas, after all that they have stamped.
        now = max(last + 1, server_time(db))
        yield Offline(db, database(os.environ), now, shared=True)
        storage.commit(db, now)


def _make(place: "Location") -> None:
    from server.settings import load
    from server.store.opening import prepare

    try:
        settings = load()
    except ValueError as error:
        fail(USAGE, str(error))
    try:
        prepare(place, settings.durability)
    except ValueError as error:
        fail(REFUSED, f"{shown(place)}: {error}")
    notice(f"created a new database {shown(place)}")


def fail_missing(place: "Location", *, can_create: bool = False) -> NoReturn:
    """End the command because there is no node's database at `place`."""
    if not isinstance(place, Path):
        remedy = "; --create makes it there" if can_create else ": name the right one"
        fail(REFUSED, f"no node's database is at {place.shown}{remedy}")
    path = place
    remedy = "run this in the node's folder, or name its file with --db or CACP_DB"
    if can_create:
        remedy += "; --create makes a new database there"
    fail(REFUSED, f"there is no database at {path.absolute()}: {remedy}")


def fail_unknown_peer(agent_id: str) -> NoReturn:
    fail(REFUSED, f"{agent_id} is not a peer; `cacp peers` lists the peers")


def chosen_project(db: "Connection", wanted: str) -> str:
    """The id of the project that `wanted` names. Ends the command unless it names one."""
    from server.store import project_names

    try:
        return chosen(wanted, project_names.every(db))
    except NoSuchName as error:
        fail(REFUSED, str(error))


def checked_name(value: str) -> str:
    """Typer's callback for a name: it must fit into a header and a list."""
    if not 1 <= len(value) <= 200 or not value.isprintable() or " " in value:
        raise typer.BadParameter("should have 1 to 200 characters and no spaces")
    return value


def checked_agent(value: str) -> str:
    """Typer's callback for an agent id: in the form in which it can't be taken for another one."""
    from server.domain.agents import canonical

    right = canonical(checked_name(value))
    if right != value:
        raise typer.BadParameter(
            f"is not in canonical form, which is {right!a}: scheme and domain in lower case, "
            "Unicode NFKC"
        )
    return value
