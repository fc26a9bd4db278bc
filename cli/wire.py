"""`cacp wire`: read, write and teach the compact result text of agents.

The commands import the format themselves: `cacp --help` doesn't wait for its models.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    name="wire",
    no_args_is_help=True,
    help="Read, write and teach the compact result text of agents.\n\n"
    "Example: cacp wire parse answer.txt --json",
)

_MALFORMED = 1
_UNREADABLE = 2
_NOTHING_FOUND = 3


@app.command()
def parse(
    file: Annotated[str, typer.Argument(help="The text to read; - for standard input.")],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print a JSON object: its keys are the fields in lower case, and warnings.",
        ),
    ] = False,
) -> None:
    """Find the last report or dispatch in a text, and print it in canonical form.

    An unambiguous deviation from the format gives a warning: on stderr, or with --json under
    `warnings`, with line, field and message. An ambiguous one makes the text malformed.

    Exit status: 0 parsed, 1 malformed, 2 the file can't be read, 3 the text has neither a report
    nor a dispatch.

    Example: cacp wire parse answer.txt --json
    """
    from schemas import wire

    try:
        parsed = wire.parse(_read(file))
    except wire.WireError as error:
        _fail(_MALFORMED, str(error))
    if parsed is None:
        _fail(_NOTHING_FOUND, "the text has neither a report (STATUS:…) nor a dispatch (TASK:…)")
    if as_json:
        typer.echo(json.dumps(wire.to_fields(*parsed), ensure_ascii=False, indent=2))
        return
    try:
        typer.echo(wire.emit(parsed.message))
    except wire.WireError as error:
        _fail(_MALFORMED, f"canonical text can't carry it, --json can: {error}")
    for warning in parsed.warnings:
        typer.echo(f"cacp wire: warning: {warning}", err=True)


@app.command()
def emit(
    file: Annotated[str, typer.Argument(help="The JSON object to read; - for standard input.")],
) -> None:
    """Print a JSON object, keyed by lower-case field, as a report or a dispatch.

    It reads what `cacp wire parse --json` prints. An unknown key becomes an unknown field.

    Exit status: 0 printed, 1 the object is neither a report nor a dispatch, 2 the file can't be
    read.

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
    """Print instructions that teach an agent the format, for its prompt or AGENTS.md.

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
