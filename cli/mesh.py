"""`cacp mesh`: three nodes on this machine, and what each of them holds."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.live_view import ended_by_signals, keys, print_changes, watch
from cli.options import JsonOption
from cli.terminal import REFUSED, fail, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from cli.mesh_nodes import LocalMesh
    from cli.mesh_view import NodeView

LOOK_SECONDS = 0.5
SETTLE_SECONDS = 90.0


def mesh(
    folder: Annotated[
        Path, typer.Option("--dir", help="The folder for the data; each node has a folder in it.")
    ] = Path("data/mesh"),
    port: Annotated[
        int,
        typer.Option(
            min=1, max=65_000, help="Port of the first node; the others take the next two."
        ),
    ] = 8081,
    once: Annotated[
        bool,
        typer.Option(
            help="Wait until the nodes hold the same data, print the mesh and stop it. For tests."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a mesh of three nodes on this machine, and show what each of them holds.

    The nodes are processes on loopback, for the repos backend-api, frontend-app and mobile-app.
    They share a mesh token, which is created at the first start, and keep their data. The keys 1, 2
    and 3 kill a node or start it again; so do `kill -9 PID` and `cacp serve --config
    data/mesh/NAME/node.toml` in another terminal. Ctrl-C ends all three.

    Without a terminal it prints a line for each event; with --json it prints the state whenever it
    changes. With --once, exit status 1 when the nodes don't converge.

    \b
    Examples:
      cacp mesh
      cacp call cacp/project/create name=Demo objective=o \\
          --url http://127.0.0.1:8081
      cacp mesh --once --json | jq .equal
    """
    from cli import mesh_view
    from cli.mesh_nodes import LocalMesh

    try:
        with ended_by_signals(), LocalMesh(folder, port) as local_mesh:
            if once:
                _show_once(local_mesh, as_json)
            elif as_json:
                watch(local_mesh.look, print_changes(mesh_view.as_json), LOOK_SECONDS)
            elif sys.stdout.isatty():
                _draw(local_mesh)
            else:
                watch(local_mesh.look, _print_lines(), LOOK_SECONDS)
    except (ValueError, OSError) as error:
        fail(REFUSED, str(error))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _show_once(local_mesh: "LocalMesh", as_json: bool) -> None:
    from cli import mesh_view, views

    deadline = time.monotonic() + SETTLE_SECONDS
    while not mesh_view.settled(nodes := local_mesh.look()) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    if as_json:
        print_json(mesh_view.as_json(nodes))
    else:
        out = views.console()
        out.print(mesh_view.picture(nodes, out.width))
    if not mesh_view.settled(nodes):
        fail(REFUSED, f"the nodes did not converge; their logs are in {local_mesh.folder}")


def _print_lines() -> Callable[[list["NodeView"]], None]:
    from cli import mesh_view

    last: list[NodeView] = []

    def show(nodes: list["NodeView"]) -> None:
        nonlocal last
        for line in mesh_view.lines(last, nodes):
            typer.echo(line)
        last = nodes

    return show


def _draw(local_mesh: "LocalMesh") -> None:
    """Redraw the state until Ctrl-C; the keys 1, 2 and 3 kill and start nodes."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from cli import mesh_view, views

    out = views.console()
    problem = ""
    with keys() as key_within, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            nodes = local_mesh.look()
            hints = [Text(line, "dim") for line in _hints(local_mesh, nodes)]
            shown = mesh_view.picture(nodes, out.width)
            live.update(Group(shown, Text(), *hints, Text(problem, "red")), refresh=True)
            key = key_within(LOOK_SECONDS)
            if key in ("1", "2", "3"):
                problem = _toggle(local_mesh, int(key) - 1)


def _toggle(local_mesh: "LocalMesh", place: int) -> str:
    """Kill or start a node. Returns the problem, '' when there is none."""
    try:
        local_mesh.members[place].toggle()
    except ValueError as error:
        return one_line(error)
    return ""


def _hints(local_mesh: "LocalMesh", nodes: list["NodeView"]) -> Iterator[str]:
    """Commands to try on the nodes as they are now."""
    up = next((node for node in nodes if node.held), nodes[0])
    last = local_mesh.members[-1]
    config = Path(os.path.relpath(last.config))
    yield "1 2 3   kill that node with SIGKILL, or start it again; in another terminal:"
    if last.pid:
        yield f"        kill -9 {last.pid}"
    elif nodes[-1].held is None:
        yield f"        cacp serve --config {config}"
    yield f"Write   export CACP_URL={up.url}"
    yield "        cacp call cacp/project/create name=Demo objective=o"
    yield "Ctrl-C  end all three"
