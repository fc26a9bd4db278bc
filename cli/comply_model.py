"""`cacp comply model`: a stand-in for a model provider, on loopback."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO

import typer

from cli.terminal import USAGE, fail
from cli.text_files import read_text


def model(
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="Port on 127.0.0.1 to listen on; 0 chooses a free one."
        ),
    ] = 8099,
    script: Annotated[
        Path | None,
        typer.Option("--script", help="Script of its responses; by default the one included."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", help="File to log requests to, in JSON Lines; stderr by default."),
    ] = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Log the body of each request too.")
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--print-script", help="Print the included script, as a starting point for your own."
        ),
    ] = False,
) -> None:
    """Run a scripted model provider on loopback: agents run turns without an account.

    It speaks the formats of Anthropic (messages), OpenAI (chat completions, responses) and Gemini
    (generateContent), streamed or not, and accepts any key. A script decides its responses;
    the default one follows the prompts of the suite acp, with the tools that the agent offers.
    docs/comply-model.md shows how to configure agents for it.

    It prints its URL, and runs until it is interrupted.

    Example: cacp comply model --log requests.jsonl
    """
    from comply.model import server
    from comply.model.script import SHIPPED, BadScript, answer, read

    if show:
        typer.echo(SHIPPED.read_text(encoding="utf-8"), nl=False)
        return
    path = script or SHIPPED
    try:
        model_script = read(read_text(path))
    except BadScript as error:
        fail(USAGE, f"{path}: {error}")
    try:
        listener = server.listen(port)
    except OSError as error:
        fail(USAGE, f"can't listen on {server.HOST}:{port}: {error.strerror}")
    with _open_log(log) as file:

        def write_line(line: object) -> None:
            print(json.dumps(line), file=file, flush=True)

        typer.echo(f"http://{server.HOST}:{listener.getsockname()[1]}")
        server.serve(server.app(partial(answer, model_script), write_line, bodies=bodies), listener)


@contextmanager
def _open_log(path: Path | None) -> Iterator[TextIO]:
    """The file, open for appending; stderr when there is no path."""
    if path is None:
        yield sys.stderr
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        fail(USAGE, f"can't write {path}: {error.strerror}")
    with file:
        yield file
