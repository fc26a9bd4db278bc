"""What the commands of `cacp thread` share: arguments, exit statuses, JSON, mistakes of users."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from threader.load import ThreadProject

ManifestArgument = Annotated[
    Path, typer.Argument(help="The manifest of the run.", metavar="MANIFEST")
]
CompatOption = Annotated[
    str | None,
    typer.Option(
        "--compat",
        metavar="FORMAT",
        help="Accept results in this format too. There is one: wire, the compact result text.",
    ),
]

MISTAKE = 2
INTERRUPTED = 130
"""Exit statuses."""


def print_json(value: Any) -> None:
    """A list on one line, an object indented."""
    typer.echo(json.dumps(value, default=str, indent=None if isinstance(value, list) else 2))


@contextmanager
def report_mistakes(as_json: bool) -> Iterator[None]:
    """Print a mistake of the user, and exit with MISTAKE."""
    from threader.errors import ManifestProblems, ThreaderError

    try:
        yield
    except ThreaderError as error:
        problems = error.problems if isinstance(error, ManifestProblems) else [str(error)]
        if as_json:
            print_json({"ok": False, "problems": problems})
        else:
            for problem in problems:
                typer.echo(f"cacp thread: {problem}", err=True)
        raise typer.Exit(MISTAKE) from None


def load(manifest: Path) -> "ThreadProject":
    from threader.load import load_project

    return load_project(manifest)
