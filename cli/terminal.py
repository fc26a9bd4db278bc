"""What every command shares: exit statuses, one-line errors, and JSON that is safe to show."""

import json
from typing import Annotated, NoReturn

import typer

from schemas.plain import escaped, one_line

REFUSED = 1
USAGE = 2
UNREACHABLE = 3

STATUSES = "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the node can't be reached."

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def dump(value: object, indent: int | None = 2) -> str:
    """JSON that is readable and safe on a terminal: what is invisible stays escaped."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def print_json(value: object, indent: int | None = 2) -> None:
    typer.echo(dump(value, indent))


def fail(status: int, problem: str) -> NoReturn:
    """End the command with one line on stderr."""
    typer.echo(f"cacp: {one_line(problem)}", err=True)
    raise typer.Exit(status)
