"""`cacp watch`: a node's changes as they happen."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import typer

from cli.client import DEFAULT_URL, NodeClient, NodeError, NodeUnreachable, connected
from cli.options import JsonOption, KeyOption, UrlOption
from cli.terminal import USAGE, dump, fail, notice
from schemas.plain import one_line

SILENCE = 45.0
"""Seconds without a byte after which the stream counts as dead: the node pings every 15."""
PAUSE_MAX = 15.0


class ServerSentEvent(NamedTuple):
    """A server-sent event that carries data."""

    id: str
    data: str


def watch(
    project: Annotated[
        str | None, typer.Option(metavar="ID", help="Show only changes of this project.")
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
) -> None:
    """Show changes live until Ctrl-C.

    With --mesh it shows the exchange with each peer, and a line when a peer joins, goes down, comes
    up, has caught up or is removed, and when a conflict is stored. With --json it prints one object
    on each line. When the node goes down, it waits, and continues where it stopped.

    \b
    Examples:
      cacp watch
      cacp watch --kind contract --kind context --after 0
      cacp watch --json | jq -r .outcome
      cacp watch --mesh
    """
    if mesh and (project or kind or after):
        fail(USAGE, "--mesh shows peers, not changes: leave out --project, --kind and --after")
    chosen = {"project": project, "kind": ",".join(kind) if kind else None}
    query = urlencode({name: value for name, value in chosen.items() if value})
    with connected(url, key) as node:
        if mesh:
            from cli.mesh_watch import watch_mesh

            try:
                watch_mesh(node, as_json)
            except KeyboardInterrupt:
                raise typer.Exit from None
        show = _print_json if as_json else _Printer(node).show
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


class _Printer:
    """Prints changes for people. Asks the node once for the name of each contract."""

    def __init__(self, node: NodeClient) -> None:
        from cli import views

        self._node = node
        self._views = views
        self._out = views.console()
        self._names: dict[str, str] = {}

    def show(self, event: ServerSentEvent) -> None:
        from rich.text import Text

        from cli.story import TONES

        views = self._views
        change = json.loads(event.data)
        did = change["action"].rpartition("/")[2]
        outcome = change["outcome"]
        line = Text.assemble(
            (views.clock(change["at"]), "dim"),
            "  ",
            (f"{views.short_agent(change['actor']):<14} ", "bold"),
            (f"{one_line(change['entity']):<9} ", "dim"),
            f"{one_line(did):<15} ",
            (f"{one_line(outcome):<12} ", TONES.get(outcome, "white")),
            (self._what(change), "dim"),
        )
        self._out.print(line, soft_wrap=True)

    def _what(self, change: dict[str, Any]) -> str:
        if change["entity"] == "context":
            return self._packet(change)
        name = self._names.get(change["entityId"])
        if name is None:
            name = self._names[change["entityId"]] = self._name(change)
        return one_line(name, 100)

    def _name(self, change: dict[str, Any]) -> str:
        if change["entity"] == "contract":
            which = {"projectId": change["projectId"], "contractId": change["entityId"]}
            contract = self._ask("cacp/contract/get", which)
            if contract:
                return str(contract["name"])
        return str(change["entityId"])

    def _packet(self, change: dict[str, Any]) -> str:
        from cli.story import packet_said

        which = {"projectId": change["projectId"], "packetId": change["entityId"]}
        thread = (self._ask("cacp/context/getThread", which) or {}).get("thread", [])
        for packet in thread:
            if packet["packet_id"] == change["entityId"]:
                did, _, why = packet_said(packet)
                return one_line(f"{did}: {why}", 100)
        return str(change["entityId"])

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return self._node.call(method, params)
        except NodeError:
            return None


def _print_json(event: ServerSentEvent) -> None:
    typer.echo(dump({"id": event.id, **json.loads(event.data)}, indent=None))
