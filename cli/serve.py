"""`cacp serve`: run a node."""

import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, grouped
from cli.terminal import REFUSED, USAGE, fail

if TYPE_CHECKING:
    from server.settings import Settings


@dataclass(frozen=True)
class ServeOptions:
    """The settings that have an option. None leaves a setting to its variable or the file."""

    host: Annotated[
        str | None, typer.Option(help="Address to listen on. CACP_HOST; 127.0.0.1 by default.")
    ] = None
    port: Annotated[
        int | None, typer.Option(help="Port; 0 chooses a free one. CACP_PORT; 8080 by default.")
    ] = None
    db: Annotated[
        Path | None,
        typer.Option(help="The SQLite file, created if absent. CACP_DB; data/cacp.db by default."),
    ] = None
    database_url: Annotated[
        str | None,
        typer.Option(
            "--database",
            metavar="URL",
            help="A PostgreSQL database for any number of replicas, in place of the file. "
            "CACP_DATABASE_URL, which keeps a password out of the list of processes.",
        ),
    ] = None
    agent_id: Annotated[
        str | None,
        typer.Option(help="The node's agent id (AID). CACP_AGENT_ID; derived from --repo."),
    ] = None
    repo: Annotated[
        str | None,
        typer.Option(help="The repo that the node represents. CACP_REPO; local by default."),
    ] = None
    role: Annotated[
        str | None, typer.Option(help="The repo's role. CACP_ROLE; shared by default.")
    ] = None
    language: Annotated[
        str | None, typer.Option(help="Its main language. CACP_LANGUAGE; unknown by default.")
    ] = None
    peers: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            metavar="URL",
            help="A node to register with, using CACP_MESH_TOKEN; repeatable. CACP_PEERS.",
        ),
    ] = None


@grouped
def serve(
    node: ServeOptions,
    config: ConfigOption = None,
    attached: Annotated[
        bool,
        typer.Option(
            "--attached",
            help="Stop when standard input ends, for a program that starts a node over a pipe.",
        ),
    ] = False,
) -> None:
    """Run a node until Ctrl-C or SIGTERM.

    Options override CACP_* variables, and variables override the file. docs/settings.md lists
    every setting, including those without an option.

    \b
    Examples:
      cacp serve --repo backend-api
      cacp serve --db team.db --port 9000 --role backend --language python
      CACP_MESH_TOKEN=… cacp serve --port 8081 --peer http://127.0.0.1:8080
      CACP_BOOTSTRAP_KEY_FILE=key cacp serve --host 0.0.0.0
      cacp serve --database postgresql://user@host/cacp --repo backend-api
    """
    from server.settings import load

    given = {option.name: getattr(node, option.name) for option in fields(node)}
    peers = tuple(node.peers) if node.peers else None
    try:
        settings = load(config, **(given | {"peers": peers}))
    except ValueError as error:
        fail(USAGE, str(error))
    if attached:
        _end_with_stdin()
    from server.serve import serve as run

    try:
        run(settings, greet if sys.stdout.isatty() else lambda _: None)
    except ValueError as error:
        fail(REFUSED, str(error))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _end_with_stdin() -> None:
    if sys.stdin is None:
        fail(USAGE, "--attached needs a standard input: it is closed")
    Thread(target=_terminate_after_stdin, daemon=True).start()


def _terminate_after_stdin() -> None:
    """Read standard input to its end, then send SIGTERM to this process until it ends."""
    # A terminal that is gone, or an input that can't be read, counts as ended.
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    while True:
        os.kill(os.getpid(), signal.SIGTERM)
        # A node that is still starting may miss the first signal.
        time.sleep(1)


def greet(settings: "Settings") -> None:
    """Print where the node listens, its agent and file, and commands to try next."""
    from rich.text import Text

    from cli import views
    from cli.node_url import DEFAULT_DB, DEFAULT_URL, own_url

    own = own_url(settings.host, settings.port)
    is_default = own == DEFAULT_URL or settings.db.resolve() == Path(DEFAULT_DB).resolve()
    hints = [] if is_default else [f"export CACP_URL={own}"]
    hints += [] if settings.is_local else ["export CACP_KEY=…      a key of `cacp keys create`"]
    hints += [
        "cacp status            its health, and what it holds",
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
