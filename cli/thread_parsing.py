"""The commands of `cacp thread` that read agents' output as the runner does, and explain codes."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import JsonOption
from cli.thread_output import print_json, report_mistakes


def parse_result(
    log: Annotated[
        Path, typer.Argument(help="A file with a worker's output.", exists=True, dir_okay=False)
    ],
    task: Annotated[
        str, typer.Option("--task", metavar="ID", help="The task that it should be for.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Read a worker's output as the runner does, and print its result.

    Exit status: 0 a valid result was found, 1 none was found.

    Example: cacp thread parse-result answer.txt --task WP-017
    """
    from threader.parsing import parse_result as parse

    _show_parsed(parse(log.read_bytes(), task), as_json)


def parse_heal(
    log: Annotated[
        Path, typer.Argument(help="A file with a healer's output.", exists=True, dir_okay=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Read a healer's output as the runner does, and print its decision.

    Exit status: 0 a valid decision was found, 1 none was found.

    Example: cacp thread parse-heal answer.txt
    """
    from threader.parsing import parse_decision

    _show_parsed(parse_decision(log.read_bytes()), as_json)


def _show_parsed(parsed: Any, as_json: bool) -> None:
    from threader.parsing import ParserFailure

    if isinstance(parsed, ParserFailure):
        if as_json:
            print_json({"ok": False, "code": parsed.code, "message": parsed.message})
        else:
            typer.echo(f"{parsed.code}: {parsed.message}", err=True)
        raise typer.Exit(1)
    value = parsed.value.model_dump(mode="json", exclude_none=True)
    if as_json:
        print_json({"ok": True, "warnings": parsed.warnings, "value": value})
        return
    for warning in parsed.warnings:
        typer.echo(f"warning: {warning}", err=True)
    print_json(value)


def explain(
    code: Annotated[
        str | None, typer.Argument(help="A parser code, failure class or status; all by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a parser code, a failure class or a status: what it means, and what to do.

    Example: cacp thread explain write_rejected
    """
    from threader.errors import ThreaderError
    from threader.overview import explanations

    texts = explanations()
    if code is None:
        explained = texts
    else:
        explained = {name: text for name, text in texts.items() if name.lower() == code.lower()}
    with report_mistakes(as_json):
        if not explained:
            raise ThreaderError(f"{code} is not one of {', '.join(texts)}")
    if as_json:
        print_json(explained)
        return
    for name, text in explained.items():
        typer.echo(f"{name}: {text}")
