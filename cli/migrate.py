"""`cacp migrate`: what a start would do to a node's database, now or without a start."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.offline import fail_missing, place_of, shown, usable
from cli.options import DbOption, JsonOption
from cli.terminal import REFUSED, fail, print_json

if TYPE_CHECKING:
    from server.domain.location import DatabaseUrl, Location


def migrate(
    db: DbOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Change nothing; exit with 1 when there is something to do or wrong."
        ),
    ] = False,
    new_epoch: Annotated[
        bool,
        typer.Option(
            "--new-epoch",
            help="The database was restored from a snapshot of disks, which no node can notice.",
        ),
    ] = False,
    timeout: Annotated[
        int,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=1,
            help="On PostgreSQL: how long one statement may take, while replicas wait.",
        ),
    ] = 30,
    as_json: JsonOption = False,
) -> None:
    """Bring a node's database to this release, as the next start would.

    On PostgreSQL replicas go on meanwhile, and those of an older release too, unless a migration
    takes something from them: then it waits until they are stopped. The user needs the right to
    create tables; the replicas' own user does without it when this command is run before them.
    An SQLite file is first copied to a file beside it; stop its node before.

    A database that was restored from a dump, or recovered to a point in time, is noticed and gets
    a new epoch: peers and event streams then compare instead of continuing from their cursors.
    After a restore of disks say it with --new-epoch, before anything starts.

    Exit status: 0 done, or nothing to do; 1 the database is refused, or with --check out of date.

    \b
    Examples:
      cacp migrate --check
      cacp migrate --database postgresql://owner@host/cacp
    """
    place = place_of(db)
    with usable(place):
        try:
            pending = _pending(place)
            if not check:
                _run(place, timeout, new_epoch=new_epoch)
        except ValueError as error:
            fail(REFUSED, f"{shown(place)}: {error}")
    if as_json:
        print_json({"database": shown(place), "pending": pending, "done": not check})
    elif not pending:
        typer.echo(f"{shown(place)} has all migrations of this release.", err=True)
    else:
        would = "would run" if check else "has run"
        typer.echo(f"{shown(place)} {would}: {', '.join(pending)}.", err=True)
    if check and pending:
        raise typer.Exit(REFUSED)


def _pending(place: "Location") -> list[str]:
    """The migrations to run. Raises ValueError and Unavailable."""
    if isinstance(place, Path):
        return _pending_of_file(place)
    return _pending_on_server(place)


def _pending_of_file(path: Path) -> list[str]:
    from server.store.export import snapshot
    from server.store.sqlite.migrate import pending

    if not path.is_file():
        fail_missing(path)
    with snapshot(path) as db:
        return pending(db)


def _pending_on_server(url: "DatabaseUrl") -> list[str]:
    import psycopg

    from server.store.postgresql.migrate import checked, pending

    with psycopg.connect(checked(url), autocommit=True, prepare_threshold=None) as db:
        return pending(db)


def _run(place: "Location", timeout: int, *, new_epoch: bool) -> None:
    if isinstance(place, Path):
        from server.store.sqlite.file_lock import lock
        from server.store.sqlite.migrate import prepare

        # Held until this command ends.
        lock(place)
        prepare(place, new_epoch=new_epoch)
        return
    from server.store.postgresql.migrate import prepare as prepare_database

    prepare_database(place, statement_seconds=timeout, new_epoch=new_epoch)
