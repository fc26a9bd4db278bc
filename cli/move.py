"""`cacp move`: carries a whole node from an SQLite file to PostgreSQL, or back."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.offline import place_of, shown, usable
from cli.options import JsonOption
from cli.terminal import REFUSED, fail, print_json

if TYPE_CHECKING:
    from server.domain.location import Location
    from server.store.move import MoveResult, MoveStep

FILE = "sqlite:"


def move(
    source: Annotated[
        str, typer.Option("--from", metavar="FILE|URL", help="The node's database as it is.")
    ],
    target: Annotated[
        str,
        typer.Option("--to", metavar="FILE|URL", help="A new file, or an empty database."),
    ],
    keep_source: Annotated[
        bool,
        typer.Option(
            "--keep-source",
            help="Copy it: the source may be started again, and the copy gets a new epoch.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Move a node from an SQLite file to PostgreSQL, or back.

    Stop the node first: a database in use is refused. Everything is carried over, with the node's
    identity and its epoch, so that peers and event streams go on where they were. Then every table
    is read back and compared with the source, and the content with its digests. Afterwards the
    source refuses to start, so that no two nodes go on with one history.

    A move that is interrupted leaves the source as it was and a target that refuses to start: run
    it again. The index of `cacp search` is made anew after the first start.

    The operator key file stays where it is, beside the SQLite file: name the same file with --db or
    CACP_DB when the replicas start, or copy it.

    \b
    Examples:
      cacp move --from sqlite:data/cacp.db --to postgresql://cacp@host/cacp
      cacp move --from postgresql://cacp@host/cacp --to sqlite:back.db
    """
    from server.domain.errors import Unavailable
    from server.store.move import move as move_node

    there, here = _place(source), _place(target)
    started = time.monotonic()
    with usable(here), usable(there), _progress() as report:
        try:
            result = move_node(there, here, report, keep_source=keep_source)
        except Unavailable as refusal:
            fail(REFUSED, refusal.message)
        except ValueError as error:
            fail(REFUSED, str(error))
    seconds = time.monotonic() - started
    if as_json:
        print_json(_as_json(result, there, here, seconds))
        return
    verb = "Copied" if keep_source else "Moved"
    typer.echo(
        f"{verb} {result.rows:,} rows of {len(result.tables)} tables from {shown(there)} to "
        f"{shown(here)} in {seconds:,.1f} s; each row was read back and is the same.",
        err=True,
    )
    if result.damage is None:
        typer.echo("The content matches its digests.", err=True)
    else:
        typer.echo(f"The content was damaged before: {result.damage} (`cacp doctor`).", err=True)


def _place(named: str) -> "Location":
    return place_of(Path(named.removeprefix(FILE)) if named.startswith(FILE) else named)


def _as_json(
    result: "MoveResult", source: "Location", target: "Location", seconds: float
) -> dict[str, object]:
    return {
        "from": shown(source),
        "to": shown(target),
        "rows": result.rows,
        "seconds": round(seconds, 3),
        "tables": [
            {"table": name, "rows": table.rows, "digest": table.digest}
            for name, table in sorted(result.tables.items())
        ],
        "damage": result.damage,
    }


@contextmanager
def _progress() -> Iterator[Callable[["MoveStep"], None]]:
    """Shows what is done and how fast, on a terminal only. It disappears at the end."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from cli import views

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
    )
    begun = time.monotonic()
    with Progress(*columns, console=views.console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, rate="")

        def report(step: "MoveStep") -> None:
            nonlocal begun
            if step.rows == 0:
                begun = time.monotonic()
            spent = time.monotonic() - begun
            rate = f"{step.rows / spent:,.0f} rows/s" if step.rows and spent > 0.1 else ""
            progress.update(
                task,
                description=f"{step.action} {step.table}",
                completed=step.rows,
                total=step.total,
                rate=rate,
            )

        yield report
