"""`cacp backup` and `cacp export`: what a node holds, as a database file or as JSON Lines."""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.offline import fail_missing, place_of, shown, usable
from cli.options import DbOption, JsonOption
from cli.terminal import REFUSED, fail, print_json

if TYPE_CHECKING:
    from server.domain.location import Location
    from server.store.move import MoveStep

LINES_PER_STEP = 1_000


def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The copy to create; it must not exist yet.")
    ],
    db: DbOption = None,
    without_secrets: Annotated[
        bool,
        typer.Option(
            "--without-secrets",
            help="Leave out keys, peers and the node's secret. Such a copy can't be restored.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a node's database to a file. Works while the node runs.

    The copy is consistent and complete, with the node's secrets: its holder can act as this
    node and call its peers. Only your user can read the file.

    To restore it: stop the node, replace its database with the copy, remove the files beside it
    that end in -wal and -shm, and start the node.

    From PostgreSQL it makes an SQLite file too, checked row by row. To restore that: `cacp serve`
    on the file, or `cacp move` it into an empty database. For point-in-time recovery and for
    databases of many gigabytes use PostgreSQL's own tools: a node notices that it was restored.

    \b
    Examples:
      cacp backup cacp-monday.db
      cacp backup /backups/node.db --db team.db
      cacp backup --without-secrets report.db
    """
    source = source_of(db)
    part = file.with_name(f"{file.name}.part")
    with reported(source, file), private():
        if file.exists():
            raise FileExistsError(f"{file} exists already")
        if not file.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder does not exist")
        part.unlink(missing_ok=True)
        try:
            with _progress() as show:
                _copy(source, part, show, without_secrets=without_secrets)
            os.link(part, file)
        finally:
            part.unlink(missing_ok=True)
    if as_json:
        summary = {"file": str(file), "bytes": file.stat().st_size, "secrets": not without_secrets}
        print_json(summary)
    else:
        secrets = (
            "without its secrets"
            if without_secrets
            else "with its secrets: protect it as you protect a key"
        )
        typer.echo(f"Copied {shown(source)} to {file}: {_size(file)}, {secrets}.", err=True)


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder to write to; it must be new or empty.")
    ],
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write what a node holds as JSON Lines: a file for each kind of entity.

    The files are a snapshot of one moment. Works while the node runs. Keys, tokens and the node's
    secret are left out.

    \b
    Examples:
      cacp export dump
      jq -r .name dump/contracts.jsonl
    """
    from server.store.export import ENTITIES, lines, view

    source = source_of(db)
    counts: dict[str, int] = {}
    with reported(source, folder), private():
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder} is not empty")
        with view(source) as connection, _progress() as show:
            for entity in ENTITIES:
                show(entity)
                counts[entity] = 0
                with (folder / f"{entity}.jsonl").open("wb") as out:
                    for line in lines(connection, entity):
                        out.write(line)
                        counts[entity] += 1
                        if counts[entity] % LINES_PER_STEP == 0:
                            show(f"{entity} {counts[entity]:,}")
    if as_json:
        print_json({"folder": str(folder), "lines": counts})
    else:
        written = ", ".join(
            f"{entity.replace('_', ' ')} ({count:,})" for entity, count in counts.items() if count
        )
        typer.echo(
            f"Wrote {written or 'nothing: the node holds nothing yet'} to {folder}.", err=True
        )


def _copy(
    source: "Location", target: Path, show: Callable[[str], None], *, without_secrets: bool
) -> None:
    if isinstance(source, Path):
        from server.store.sqlite.migrate import copy

        show(f"Copying {_size(source)}")
        copy(source, target, without_secrets=without_secrets)
        return
    from server.store.move import back_up

    def report(step: "MoveStep") -> None:
        show(f"{step.action} {step.table} {step.rows:,} of {step.total:,}")

    try:
        back_up(source, target, report, without_secrets=without_secrets)
    except ValueError as error:
        fail(REFUSED, f"{source.shown}: {error}")


def source_of(db: str | None) -> "Location":
    """The database that is read. Ends the command when it is a file that isn't there."""
    source = place_of(db)
    if isinstance(source, Path) and not source.is_file():
        fail_missing(source)
    return source


@contextmanager
def reported(source: "Location", target: Path) -> Iterator[None]:
    """End the command with one line when the source can't be read, or the target not written."""
    with usable(source):
        try:
            yield
        except FileExistsError as error:
            fail(REFUSED, str(error))
        except OSError as error:
            fail(REFUSED, f"{target} can't be written: {error.strerror}")


@contextmanager
def private() -> Iterator[None]:
    """Files that are made within are readable by their owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A function that shows what is done, on a terminal only. It disappears at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from cli import views

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=views.console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)


def _size(file: Path) -> str:
    size = float(file.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
