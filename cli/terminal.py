"""What every command shares: exit statuses, one-line errors, and text that is safe to show."""

import json
import re
from typing import Annotated, NoReturn

import typer

REFUSED = 1
USAGE = 2
UNREACHABLE = 3

STATUSES = "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the node can't be reached."

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor moves
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]*\x1b\\"
    r"|\x1b[ -/]*[0-~]"
)
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # of no width, or another direction
    "\ud800-\udfff]"  # halves of characters
)


def clean(text: object) -> str:
    """Text from agents as a terminal may show it: nothing that moves, hides or colours (§7)."""
    return _UNSAFE.sub("", _ESCAPE_SEQUENCE.sub("", str(text)))


def one_line(text: object, width: int = 0) -> str:
    """`clean`, on one line, cut to `width` characters if one is given.

    >>> one_line("a\\n  b", 3)
    'a b'
    """
    line = " ".join(clean(text).split())
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def dump(value: object, indent: int | None = 2) -> str:
    """JSON that is readable and safe on a terminal: what is invisible stays escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(value: object, indent: int | None = 2) -> None:
    typer.echo(dump(value, indent))


def fail(status: int, problem: str) -> NoReturn:
    """End the command with one line on stderr."""
    typer.echo(f"cacp: {one_line(problem)}", err=True)
    raise typer.Exit(status)
