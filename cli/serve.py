"""`cacp serve`: run a node."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal import REFUSED, USAGE, fail

if TYPE_CHECKING:
    from server.settings import Settings


def serve(
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. CACP_HOST; 127.0.0.1 by default.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port; 0 takes a free one. CACP_PORT; 8080 by default.")
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(help="The SQLite file, made if absent. CACP_DB; data/cacp.db by default."),
    ] = None,
    agent_id: Annotated[
        str | None, typer.Option(help="The node's agent id (AID). CACP_AGENT_ID; made from --repo.")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(help="The repo it speaks for. CACP_REPO; local by default.")
    ] = None,
    role: Annotated[
        str | None, typer.Option(help="The repo's role. CACP_ROLE; shared by default.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Its main language. CACP_LANGUAGE; unknown by default.")
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="URL",
            help="A node to register with, by CACP_MESH_TOKEN; may be given again. CACP_PEERS.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar="CACP_CONFIG", help="TOML file with any of docs/settings.md."),
    ] = None,
    attached: Annotated[
        bool,
        typer.Option(
            "--attached",
            help="End when standard input does: as a pipe, it ends with the program that holds it.",
        ),
    ] = False,
) -> None:
    """Run a node until Ctrl-C or SIGTERM.

    Options win over CACP_* variables, variables over the file. docs/settings.md lists the
    settings that have no option.

    \b
    Examples:
      cacp serve --repo backend-api
      cacp serve --db team.db --port 9000 --role backend --language python
      CACP_MESH_TOKEN=… cacp serve --repo web --port 8081 --peer http://127.0.0.1:8080
      CACP_BOOTSTRAP_KEY_FILE=key cacp serve --host 0.0.0.0
    """
    from server.settings import load

    try:
        settings = load(
            config,
            host=host,
            port=port,
            db=db,
            agent_id=agent_id,
            repo=repo,
            role=role,
            language=language,
            peers=tuple(peers) if peers else None,
        )
    except ValueError as error:
        fail(USAGE, str(error))
    from server.serve import serve as run

    if attached and sys.stdin is None:
        fail(USAGE, "--attached needs a standard input: it is closed")
    if attached:
        Thread(target=end_with_stdin, daemon=True).start()
    try:
        run(settings, greet if sys.stdout.isatty() else lambda _: None)
    except ValueError as error:
        fail(REFUSED, str(error))
    except KeyboardInterrupt:
        raise typer.Exit from None


def end_with_stdin() -> None:
    """SIGTERM to this process when nobody holds the other end of its standard input any more."""
    # A terminal that is gone, and what can't be read at all, is at its end too.
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        # A node that is just starting may not heed the first.
        time.sleep(1)


def greet(settings: "Settings") -> None:
    """Say where the node listens, who it is and what to try next."""
    from rich.text import Text

    from cli import views
    from cli.client import DEFAULT_URL, own_url

    own = own_url(settings.host, settings.port)
    hints = [f"export CACP_URL={own}"] if own != DEFAULT_URL else []
    hints += [] if settings.is_local else ["export CACP_KEY=…      a key of `cacp keys create`"]
    hints += [
        "cacp status            who it is and what it holds",
        "cacp watch             every change, live",
        "cacp demo              two agents at work, on a node of their own",
    ]
    out = views.console()
    out.print(
        Text.assemble(
            ("● ", "green"),
            (settings.url, "bold"),
            ("   agent ", "dim"),
            views.data(settings.agent, "cyan"),
            ("   in ", "dim"),
            views.data(settings.db),
        )
    )
    out.print("\nIn another terminal:", style="dim")
    for hint in hints:
        out.print(f"  {hint}")
    out.print("\nCtrl-C stops it.\n", style="dim")
