"""What all commands share: exit statuses, errors in one line, and JSON that is safe to print."""

import json
from typing import NoReturn

import typer

from schemas.plain import escaped, one_line

REFUSED = 1
USAGE = 2
UNREACHABLE = 3

STATUSES = "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the node can't be reached."


def dump(value: object, indent: int | None = 2) -> str:
    """Readable JSON that is safe on a terminal: invisible characters are escaped."""
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def print_json(value: object, indent: int | None = 2) -> None:
    typer.echo(dump(value, indent))


def notice(text: str) -> None:
    """Print a line on stderr without ending the command."""
    typer.echo(f"cacp: {one_line(text)}", err=True)


def fail(status: int, problem: str) -> NoReturn:
    """End the command with one line on stderr."""
    notice(problem)
    raise typer.Exit(status)
