"""`cacp comply model`: a stand-in for model providers, on loopback."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from cli.terminal import USAGE, fail


def model(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")
    ] = 8099,
    script: Annotated[
        Path | None, typer.Option("--script", help="What it answers; the shipped one if absent.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="File for what agents ask; stderr if absent.")
    ] = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Log the whole of each request too.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--print-script", help="Print the shipped script, to start from.")
    ] = False,
) -> None:
    """Stand in for a model provider on loopback, so that agents run turns without an account.

    It speaks the formats of Anthropic (messages), OpenAI (chat completions, responses) and Gemini
    (generateContent), streamed or not, and takes any key. What it answers is a script: it does what
    the prompts of the suite acp ask for, with the tools that the agent offers. Each request is a
    line of JSON in the log. docs/comply-model.md says how agents are pointed at it.

    It prints its URL, and runs until it is interrupted.

    Example: cacp comply model --log asked.jsonl
    """
    from comply.model import server
    from comply.model.script import SHIPPED, BadScript, read

    if show:
        typer.echo(SHIPPED.read_text(encoding="utf-8"), nl=False)
        return
    path = script or SHIPPED
    try:
        found = read(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        fail(USAGE, f"can't read {path}: {getattr(error, 'strerror', 'it is not UTF-8')}")
    except BadScript as error:
        fail(USAGE, f"{path}: {error}")
    try:
        at = server.listen(port)
    except OSError as error:
        fail(USAGE, f"can't listen on {server.HOST}:{port}: {error.strerror}")
    with _appended(log) as file:

        def told(line: object) -> None:
            print(json.dumps(line), file=file, flush=True)

        typer.echo(f"http://{server.HOST}:{at.getsockname()[1]}")
        server.serve(server.app(found, told, bodies=bodies), at)


@contextmanager
def _appended(path: Path | None) -> Iterator[TextIO]:
    """The file, to add to; stderr without one."""
    if path is None:
        yield sys.stderr
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        fail(USAGE, f"can't write {path}: {error.strerror}")
    with file:
        yield file
