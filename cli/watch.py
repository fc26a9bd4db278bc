"""`cacp watch`: a node's changes as they happen."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

import typer

from cli.client import DEFAULT_URL, NodeClient, NodeUnreachable, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.page_link import WebOption, print_link
from cli.show import project_id_of
from cli.terminal import USAGE, dump, fail, notice

SILENCE = 45.0
"""Seconds without a byte after which the stream counts as dead: the node pings every 15."""
PAUSE_MAX = 15.0


class ServerSentEvent(NamedTuple):
    """A server-sent event that carries data."""

    id: str
    data: str


def watch(
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT",
            help="Show only changes of this project: its name, its id, or the beginning of it.",
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="Show only this kind: project, repo, contract, context, file, file_request, peer "
            "or conflict; repeatable."
        ),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ",
            help="Begin after this change; 0 for all since the first. By default only new ones.",
        ),
    ] = None,
    mesh: Annotated[
        bool,
        typer.Option(
            "--mesh", help="Show the peers instead: which join, go down, lag or conflict."
        ),
    ] = False,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """Show changes live until Ctrl-C.

    With --mesh it shows the exchange with each peer, and a line when a peer joins, goes down, comes
    up, has caught up or is removed, and when a conflict is stored. With --json it prints one object
    on each line. When the node goes down, it waits, and continues where it stopped.

    \b
    Examples:
      cacp watch
      cacp watch --project Coupons --kind contract --kind context --after 0
      cacp watch --json | jq -r .outcome
      cacp watch --mesh
    """
    if mesh and (project or kind or after):
        fail(USAGE, "--mesh shows peers, not changes: leave out --project, --kind and --after")
    if web and mesh:
        print_link(url, "mesh")
        return
    with connected(url, key, oversees=True) as node:
        if web:
            at = {} if project is None else {"project": project_id_of(node, project)}
            print_link(url, "activity", **at)
            return
        if mesh:
            from cli.mesh_watch import watch_mesh

            try:
                watch_mesh(node, as_json)
            except KeyboardInterrupt:
                raise typer.Exit from None
        project_id = None if project is None else project_id_of(node, project)
        chosen = {"project": project_id, "kind": ",".join(kind) if kind else None}
        query = urlencode({name: value for name, value in chosen.items() if value})
        show = _print_json if as_json else _printer(node, project_id)
        try:
            for event in follow(node, f"/events?{query}", after, notice):
                show(event)
        except KeyboardInterrupt:
            raise typer.Exit from None


def follow(
    node: NodeClient, path: str, after: str | None, say: Callable[[str], None]
) -> Iterator[ServerSentEvent]:
    """Events without end. `say` is called with a line when the node goes down or comes back.

    Raises NodeError when the node can't be reached at first, or refuses.
    """
    last, pause, lost, met = after, 0.5, False, False
    while True:
        headers = {} if last is None else {"Last-Event-ID": last}
        try:
            with node.stream(path, headers, SILENCE) as chunks:
                if lost:
                    say(f"{node.url} answers again")
                met, lost, pause = True, False, 0.5
                for event in parse_events(lines_of(chunks)):
                    last = event.id
                    yield event
        except NodeUnreachable:
            if not met:
                raise
        if not lost:
            say(f"{node.url} does not answer; waiting for it")
        lost = True
        time.sleep(pause)
        pause = min(pause * 2, PAUSE_MAX)


def lines_of(chunks: Iterable[bytes]) -> Iterator[str]:
    """Whole lines, without their ends. Only LF and CRLF end a line."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode(errors="replace")


def parse_events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """The events that have data (HTML Standard, 9.2.6). An unfinished last event is dropped."""
    id = ""
    data: list[str] = []
    for line in lines:
        if not line and data:
            yield ServerSentEvent(id, "\n".join(data))
        if not line:
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            id = value
        elif name == "data":
            data.append(value)


def _printer(node: NodeClient, project_id: str | None) -> Callable[[ServerSentEvent], None]:
    from cli.views import console
    from cli.watch_lines import ChangeNames, change_line

    out, names = console(), ChangeNames(node)

    def show(event: ServerSentEvent) -> None:
        change = json.loads(event.data)
        subject = names.subject(change, with_project=project_id is None)
        out.print(change_line(change, subject), no_wrap=True, overflow="ellipsis", crop=True)

    return show


def _print_json(event: ServerSentEvent) -> None:
    typer.echo(dump({"id": event.id, **json.loads(event.data)}, indent=None))
