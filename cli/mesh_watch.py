"""`cacp watch --mesh`: the peers of one node, and what happens to them."""

import sys
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import typer

from cli import views
from cli.client import NodeClient, NodeError, NodeUnreachable
from cli.mesh_view import EVENTS, NodeView, PeerEvent, exchanges, peer_events, say
from cli.terminal import dump, notice
from cli.times import clock
from schemas.plain import one_line

LOOK_SECONDS = 1.0
SHOWN = 12
"""How many events a terminal shows."""

SeenEvent = tuple[str, PeerEvent]
"""When an event was seen (ISO 8601), and the event."""


def watch_mesh(node: NodeClient, as_json: bool) -> None:
    """Show events until Ctrl-C. Raises NodeError when the node can't be reached at first."""
    if as_json:
        _follow(node, lambda _, events: _print(_json, events))
    elif sys.stdout.isatty():
        _draw(node)
    else:
        _follow(node, lambda _, events: _print(_line, events))


def look(node: NodeClient) -> NodeView:
    """The node's state, and that of its exchange with each peer."""
    health = node.get("/health")
    held, peers = node.get("/mesh"), node.get("/peers")["peers"]
    return NodeView(health["repo"], node.url, None, health["status"], held, peers)


def _follow(node: NodeClient, show: Callable[[NodeView, list[SeenEvent]], None]) -> None:
    last: NodeView | None = None
    gone = False
    while True:
        try:
            seen = look(node)
        except NodeError as error:
            if last is None or not isinstance(error, NodeUnreachable):
                raise
            if not gone:
                notice(f"{node.url} does not answer; waiting for it")
            gone = True
        else:
            if gone:
                notice(f"{node.url} answers again")
            gone = False
            at = datetime.now(UTC).isoformat(timespec="microseconds")
            # Only what happens after this command began is an event.
            before = last or NodeView(seen.name, seen.url, held=seen.held)
            show(seen, [(at, event) for event in peer_events(before, seen)])
            last = seen
        time.sleep(LOOK_SECONDS)


def _draw(node: NodeClient) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    out = views.console()
    happened: deque[SeenEvent] = deque(maxlen=SHOWN)
    with Live(console=out, auto_refresh=False) as live:

        def show(view: NodeView, events: list[SeenEvent]) -> None:
            happened.extend(events)
            held = view.held or {}
            live.update(
                Group(
                    Text.assemble(
                        (f"● {view.health}  ", views.HEALTH_TONES.get(view.health, "")),
                        (one_line(view.name), "bold"),
                        (f"  {view.url}  digest {held.get('digest', '-')[:8]}", "dim"),
                    ),
                    exchanges([(view.name, view.peers)], {}, out.width),
                    Text(),
                    *(Text(_line(event), EVENTS[event[1].what]) for event in happened),
                ),
                refresh=True,
            )

        _follow(node, show)


def _print(form: Callable[[SeenEvent], str], events: list[SeenEvent]) -> None:
    for event in events:
        typer.echo(form(event))


def _line(seen: SeenEvent) -> str:
    at, event = seen
    return f"{clock(at)}  {one_line(say(event))}"


def _json(seen: SeenEvent) -> str:
    at, event = seen
    line: dict[str, Any] = {"at": at, **event._asdict()}
    return dump(line, indent=None)
