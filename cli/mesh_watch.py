"""`cacp watch --mesh`: one node's peers, and what happens to them."""

import sys
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import typer

from cli import views
from cli.client import Client, NodeError, Unreachable
from cli.mesh_view import EVENTS, Event, Node, exchanges, peer_events, say
from cli.terminal import dump
from schemas.plain import clean, one_line

LOOK_SECONDS = 1.0
SHOWN = 12
"""Events that a terminal shows."""

Told = tuple[str, Event]
"""An event and when it was seen: ISO 8601."""


def watch_mesh(node: Client, as_json: bool) -> None:
    """Show what happens until Ctrl-C. Raises NodeError when the node can't be asked at first."""
    if as_json:
        _follow(node, lambda _, told: _print(_json, told))
    elif sys.stdout.isatty():
        _draw(node)
    else:
        _follow(node, lambda _, told: _print(_line, told))


def look(node: Client) -> Node:
    """How the node and its exchange with each peer are."""
    health = node.get("/health")
    held, peers = node.get("/mesh"), node.get("/peers")["peers"]
    return Node(health["repo"], node.url, None, health["status"], held, peers)


def _follow(node: Client, show: Callable[[Node, list[Told]], None]) -> None:
    last: Node | None = None
    gone = False
    while True:
        try:
            seen = look(node)
        except NodeError as error:
            if last is None or not isinstance(error, Unreachable):
                raise
            if not gone:
                _say(f"{node.url} is gone; waiting for it")
            gone = True
        else:
            if gone:
                _say(f"{node.url} is back")
            gone = False
            at = datetime.now(UTC).isoformat(timespec="microseconds")
            # What was counted before this command began is no news.
            before = last or Node(seen.name, seen.url, held=seen.held)
            show(seen, [(at, event) for event in peer_events(before, seen)])
            last = seen
        time.sleep(LOOK_SECONDS)


def _draw(node: Client) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    out = views.console()
    happened: deque[Told] = deque(maxlen=SHOWN)
    with Live(console=out, auto_refresh=False) as live:

        def show(seen: Node, told: list[Told]) -> None:
            happened.extend(told)
            held = seen.held or {}
            live.update(
                Group(
                    Text.assemble(
                        (f"● {seen.health}  ", views.HEALTH_TONES.get(seen.health, "")),
                        (one_line(seen.name), "bold"),
                        (f"  {seen.url}  digest {held.get('digest', '-')[:8]}", "dim"),
                    ),
                    exchanges([(seen.name, seen.peers)], {}, out.width),
                    Text(),
                    *(Text(_line(one), EVENTS[one[1].what]) for one in happened),
                ),
                refresh=True,
            )

        _follow(node, show)


def _print(form: Callable[[Told], str], told: list[Told]) -> None:
    for one in told:
        typer.echo(form(one))


def _line(told: Told) -> str:
    at, event = told
    return f"{views.clock(at)}  {one_line(say(event))}"


def _json(told: Told) -> str:
    at, event = told
    found: dict[str, Any] = {"at": at, **event._asdict()}
    return dump(found, indent=None)


def _say(what: str) -> None:
    typer.echo(clean(f"cacp: {what}"), err=True)
