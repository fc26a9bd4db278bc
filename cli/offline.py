"""What commands share that work on a node's database file, whether the node runs or not."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from cli.terminal import REFUSED, USAGE, fail
from schemas.plain import one_line

if TYPE_CHECKING:
    from server.settings import Settings


@dataclass(frozen=True, slots=True)
class Offline:
    """An open transaction on a node's file."""

    db: sqlite3.Connection
    settings: "Settings"
    now: int
    """Microseconds since 1970, UTC."""


@contextmanager
def transaction(path: Path | None, *, make: bool = False) -> Iterator[Offline]:
    """One transaction on the node's file. With `make`, a file that isn't there is made first.

    A running node sees what was written at its next request. When the file can't be used, the
    command ends with one line on stderr.
    """
    from server.domain.errors import Unavailable
    from server.settings import load
    from server.store.connection import connect
    from server.store.migrate import prepare

    try:
        settings = load(db=path)
    except ValueError as error:
        fail(USAGE, str(error))
    try:
        if not settings.db.exists() or settings.db.stat().st_size == 0:
            if not make:
                fail(
                    REFUSED,
                    f"{settings.db} does not exist; `cacp serve` or `cacp keys create` creates it",
                )
            prepare(settings.db, settings.durability)
            typer.echo(f"cacp: created a new database {one_line(settings.db)}", err=True)
        with closing(connect(settings.db)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield Offline(db, settings, time.time_ns() // 1000)
            db.execute("COMMIT")
    except Unavailable as error:
        fail(REFUSED, f"{settings.db}: {error.message} ({error.data['reason']})")
    except (sqlite3.Error, OSError) as error:
        fail(REFUSED, f"{settings.db} can't be used as a node's database: {error}")


def fail_unknown_peer(agent_id: str) -> NoReturn:
    fail(REFUSED, f"{agent_id} is not a peer; `cacp peers` lists the peers")


def print_columns(heads: Sequence[str], rows: Sequence[Sequence[str]], *, none: str) -> None:
    """Print aligned rows under their heads, for people and for `awk`. Without rows, print only
    `none`, on stderr."""
    if not rows:
        typer.echo(none, err=True)
        return
    lines = [heads, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        typer.echo("  ".join(padded).rstrip())


def checked_name(value: str) -> str:
    """Typer's callback for an agent id or a repo name: it must fit into a header and a list."""
    if not 1 <= len(value) <= 200 or not value.isprintable() or " " in value:
        raise typer.BadParameter("should have 1 to 200 characters and no spaces")
    return value
