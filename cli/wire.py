"""`cacp wire`: read, write and teach the compact result text of an agent.

The commands import the format themselves: `cacp --help` needn't wait for its models to build.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    name="wire",
    no_args_is_help=True,
    help="Read, write and teach the compact result text of an agent.\n\n"
    "Example: cacp wire parse answer.txt --json",
)

_MALFORMED = 1
_UNREADABLE = 2
_NOTHING_FOUND = 3


@app.command()
def parse(
    file: Annotated[str, typer.Argument(help="The text to read; - is standard input.")],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print an object keyed by lower-case field, and warnings."),
    ] = False,
) -> None:
    """Find the last report or dispatch in a text and print it in canonical form.

    What isn't written as it should be, and still can't be misread, is read with a warning: on
    standard error, or with --json as warnings, each with line, field and message. What can be
    misread is malformed.

    Exit status: 0 parsed, 1 malformed, 2 unreadable, 3 neither a report nor a dispatch in it.

    Example: cacp wire parse answer.txt --json
    """
    from schemas import wire

    try:
        found = wire.parse(_read(file))
    except wire.WireError as error:
        _fail(_MALFORMED, str(error))
    if found is None:
        _fail(_NOTHING_FOUND, "neither a report (STATUS:…) nor a dispatch (TASK:…) in it")
    if as_json:
        typer.echo(json.dumps(wire.to_fields(*found), ensure_ascii=False, indent=2))
        return
    try:
        typer.echo(wire.emit(found.message))
    except wire.WireError as error:
        _fail(_MALFORMED, f"canonical text can't carry it, --json can: {error}")
    for one in found.warnings:
        typer.echo(f"cacp wire: warning: {one}", err=True)


@app.command()
def emit(
    file: Annotated[str, typer.Argument(help="The JSON object to read; - is standard input.")],
) -> None:
    """Print a JSON object, keyed by lower-case field, as a report or a dispatch.

    Takes what `parse --json` prints. An unknown key becomes an unknown field.

    Exit status: 0 printed, 1 not an object that a report or dispatch can carry, 2 unreadable.

    Example: echo '{"status": "ok", "tests": "pass:12"}' | cacp wire emit -
    """
    from schemas import wire

    try:
        fields = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        _fail(_MALFORMED, f"not JSON: {error}")
    if not isinstance(fields, dict):
        _fail(_MALFORMED, 'not a JSON object, such as {"status": "ok"}')
    try:
        typer.echo(wire.emit(wire.from_fields(fields)))
    except wire.WireError as error:
        _fail(_MALFORMED, str(error))


@app.command()
def prompt() -> None:
    """Print the block that teaches an agent the format.

    Example: cacp wire prompt >> AGENTS.md
    """
    from schemas import wire

    typer.echo(wire.PROMPT, nl=False)


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        _fail(_UNREADABLE, f"can't read {file}: {error.strerror}")
    return data.decode(errors="replace")


def _fail(status: int, problem: str) -> NoReturn:
    typer.echo(f"cacp wire: {problem}", err=True)
    raise typer.Exit(status)
