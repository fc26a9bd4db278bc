"""`cacp mesh`: three nodes on this machine, and who has what."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.terminal import REFUSED, JsonOption, dump, fail, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    from cli.mesh_nodes import Box
    from cli.mesh_view import Node

LOOK_SECONDS = 0.5
SETTLE_SECONDS = 90.0


def mesh(
    folder: Annotated[
        Path, typer.Option("--dir", help="Where each node keeps its data, in a folder of its own.")
    ] = Path("data/mesh"),
    port: Annotated[
        int, typer.Option(min=1, max=65_000, help="Of the first node; the others follow.")
    ] = 8081,
    once: Annotated[
        bool,
        typer.Option(help="Print the mesh once its nodes are equal, and end it. For tests."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a mesh of three nodes on this machine, and show who has what.

    The nodes are plain processes on loopback, for the repos backend-api, frontend-app and
    mobile-app. They share a secret, made on the first start, and keep their data. Keys 1, 2 and 3
    kill a node at once, and start it again; so do `kill -9 PID` and `cacp serve --config
    data/mesh/NAME/node.toml` in another terminal. Ctrl-C ends all three.

    Without a terminal it prints a line for each thing that happens; with --json the whole picture
    whenever it changes. With --once, exit status 1 when the nodes don't become equal.

    \b
    Examples:
      cacp mesh
      cacp call cacp/project/create name=Demo objective=o --url http://127.0.0.1:8081
      cacp mesh --once --json | jq .equal
    """
    from cli.mesh_nodes import Box

    try:
        with _ended_by_signals(), Box(folder, port) as box:
            if once:
                _show_once(box, as_json)
            elif as_json:
                _watch(box, _print_pictures())
            elif sys.stdout.isatty():
                _draw(box)
            else:
                _watch(box, _print_lines())
    except (ValueError, OSError) as error:
        fail(REFUSED, str(error))
    except KeyboardInterrupt:
        raise typer.Exit from None


def _show_once(box: "Box", as_json: bool) -> None:
    from cli import mesh_view, views

    deadline = time.monotonic() + SETTLE_SECONDS
    while not mesh_view.settled(nodes := box.look()) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    if as_json:
        print_json(mesh_view.as_json(nodes))
    else:
        out = views.console()
        out.print(mesh_view.picture(nodes, out.width))
    if not mesh_view.settled(nodes):
        fail(REFUSED, f"the nodes did not become equal; their logs are in {box.folder}")


def _watch(box: "Box", show: Callable[[list["Node"]], None]) -> None:
    while True:
        show(box.look())
        time.sleep(LOOK_SECONDS)


def _print_pictures() -> Callable[[list["Node"]], None]:
    from cli import mesh_view

    last = ""

    def show(nodes: list["Node"]) -> None:
        nonlocal last
        text = dump(mesh_view.as_json(nodes), indent=None)
        if text != last:
            typer.echo(text)
        last = text

    return show


def _print_lines() -> Callable[[list["Node"]], None]:
    from cli import mesh_view

    last: list[Node] = []

    def show(nodes: list["Node"]) -> None:
        nonlocal last
        for line in mesh_view.lines(last, nodes):
            typer.echo(line)
        last = nodes

    return show


def _draw(box: "Box") -> None:
    """A picture that renews itself; keys kill and start nodes."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from cli import mesh_view, views

    out = views.console()
    said = ""
    with _keys() as key_within, Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            nodes = box.look()
            hints = [Text(line, "dim") for line in _hints(box, nodes)]
            shown = mesh_view.picture(nodes, out.width)
            live.update(Group(shown, Text(), *hints, Text(said, "red")), refresh=True)
            key = key_within(LOOK_SECONDS)
            if key in ("1", "2", "3"):
                said = _toggle(box, int(key) - 1)


def _toggle(box: "Box", place: int) -> str:
    """Kill or start a node; what is to be said of it."""
    try:
        box.members[place].toggle()
    except ValueError as error:
        return one_line(error)
    return ""


def _hints(box: "Box", nodes: list["Node"]) -> Iterator[str]:
    """What to try, in terms of what is there."""
    up = next((node for node in nodes if node.held), nodes[0])
    last = box.members[-1]
    config = Path(os.path.relpath(last.config))
    yield "1 2 3   kill that node at once, or start it again; in another terminal:"
    if last.pid:
        yield f"        kill -9 {last.pid}"
    elif nodes[-1].held is None:
        yield f"        cacp serve --config {config}"
    yield f"Write   export CACP_URL={up.url}"
    yield "        cacp call cacp/project/create name=Demo objective=o"
    yield "Ctrl-C  end all three"


@contextmanager
def _keys() -> Iterator[Callable[[float], str | None]]:
    """Reads single keys: a function that waits so many seconds for one."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        yield lambda seconds: time.sleep(seconds)
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def key_within(seconds: float) -> str | None:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1).decode(errors="replace") if ready else None

    try:
        yield key_within
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end the nodes too, as Ctrl-C does."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    kinds = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = [signal.signal(kind, end) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
