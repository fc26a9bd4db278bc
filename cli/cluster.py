"""`cacp cluster`: replicas of a node on PostgreSQL behind a proxy, on this machine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.live_view import ended_by_signals, keys, print_changes, watch
from cli.options import ConfigOption, JsonOption
from cli.terminal import REFUSED, USAGE, fail

if TYPE_CHECKING:
    from cli.cluster_nodes import Cluster
    from cli.cluster_view import ClusterView

LOOK_SECONDS = 0.5
MOST_REPLICAS = 9
"""As many as there are keys to kill them with."""


def cluster(
    replicas: Annotated[
        int, typer.Option(min=1, max=MOST_REPLICAS, help="How many replicas to run.")
    ] = 3,
    port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65_000,
            help="Port of the proxy; the replicas and PostgreSQL take the next ones.",
        ),
    ] = 8080,
    folder: Annotated[
        Path, typer.Option("--folder", help="The folder for the data and the logs.")
    ] = Path("data/cluster"),
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL database to use, in place of a server of the cluster's own.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run replicas of one node on PostgreSQL behind a proxy, and show their state.

    All are processes on loopback: PostgreSQL, the replicas, and in this process the proxy, which
    gives new connections to replicas that are ready. It starts the PostgreSQL that is installed, or
    that of the extra `cluster` of this package, and keeps its data. What ends is started again. The
    keys 1, 2, 3… kill a replica with SIGKILL, and p kills PostgreSQL; so does `kill -9 PID` in
    another terminal. Ctrl-C ends all.

    Without a terminal it prints a line for each event; with --json it prints the state whenever it
    changes.

    \b
    Examples:
      cacp cluster
      cacp cluster --replicas 5 --port 9000
      cacp cluster --database postgresql://user@host/cacp
      cacp call cacp/project/create name=Demo objective=o \\
          --url http://127.0.0.1:8080
    """
    from cli import cluster_view
    from cli.cluster_nodes import Cluster
    from server.domain.location import DatabaseUrl

    url = None
    if database is not None:
        if not database.startswith(("postgresql://", "postgres://")):
            fail(USAGE, "--database takes a URL such as postgresql://user@host/cacp")
        url = DatabaseUrl(database)
    try:
        with ended_by_signals(), Cluster(folder, port, replicas, url, config) as running:
            if as_json:
                watch(running.look, print_changes(cluster_view.as_json), LOOK_SECONDS)
            elif sys.stdout.isatty():
                _draw(running)
            else:
                watch(running.look, _print_lines(), LOOK_SECONDS)
    except (ValueError, OSError) as error:
        fail(REFUSED, str(error))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _print_lines() -> Callable[["ClusterView"], None]:
    from cli import cluster_view

    last: ClusterView | None = None

    def show(view: "ClusterView") -> None:
        nonlocal last
        for line in cluster_view.lines(last, view):
            typer.echo(line)
        last = view

    return show


def _draw(running: "Cluster") -> None:
    """Redraw the state until Ctrl-C; keys kill processes."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from cli import cluster_view, views

    out = views.console()
    with keys() as key_within, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            hints = [Text(line, "dim") for line in _hints(running)]
            picture = cluster_view.picture(running.look())
            live.update(Group(picture, Text(), *hints), refresh=True)
            key = key_within(LOOK_SECONDS) or ""
            if key.isdecimal() and 1 <= int(key) <= len(running.replicas):
                running.kill(int(key) - 1)
            elif key == "p":
                running.kill_server()


def _hints(running: "Cluster") -> Iterator[str]:
    """What to do, and commands to try."""
    numbers = " ".join(str(place + 1) for place in range(len(running.replicas)))
    what = ", p PostgreSQL" if running.server is not None else ""
    yield f"{numbers}   kill that replica with SIGKILL{what}; it is started again"
    yield f"Write   export CACP_URL={running.url}"
    yield "        cacp call cacp/project/create name=Demo objective=o"
    if running.server is not None:
        secret = os.path.relpath(running.url_file)
        yield f'        cacp demo --url {running.url} --database "$(cat {secret})"'
    yield f"Logs    {os.path.relpath(running.folder)}"
    if running.server is not None and running.folder not in running.server.folder.parents:
        yield f"        {running.server.folder}"
    yield "Ctrl-C  end all"
