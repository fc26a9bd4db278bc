"""The state of a mesh as tables, lines and JSON. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from cli import views
from schemas.plain import one_line

Json = dict[str, Any]

DOWN = "down"
SHORT_DIGEST = 8
TONES = {**views.HEALTH_TONES, "up": "green", DOWN: "red", "starting": "yellow"}
NARROW = 100
"""Below this many columns, errors are not shown: `cacp peers` shows them."""


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as it answers now. `held` is the answer of GET /mesh, None when there is none."""

    name: str
    url: str
    pid: int | None = None
    health: str = DOWN
    held: Json | None = None
    peers: list[Json] = field(default_factory=list)

    @property
    def digest(self) -> str | None:
        """The digest of everything that it holds; None while the node still counts it."""
        return None if self.held is None or self.held["behind"] else self.held["digest"]


class PeerEvent(NamedTuple):
    """Something that happened to a peer, or to the node if `peer` is None. `what` is in EVENTS."""

    what: str
    peer: str | None
    detail: str


EVENTS = {
    "joined": "green",
    "removed": "yellow",
    "up": "green",
    DOWN: "red",
    "caught_up": "green",
    "conflict": "magenta",
    "deferred": "yellow",
}


def equal(nodes: Sequence[NodeView]) -> bool:
    """Whether every node is up and holds the same."""
    return None not in (digests := {node.digest for node in nodes}) and len(digests) == 1


def settled(nodes: Sequence[NodeView]) -> bool:
    """Whether all nodes hold the same, and each exchanges with all others."""
    others = len(nodes) - 1
    return equal(nodes) and all(
        sum((peer.get("sync") or {}).get("health") == "up" for peer in node.peers) >= others
        for node in nodes
    )


def as_json(nodes: Sequence[NodeView]) -> Json:
    return {"equal": equal(nodes), "nodes": [asdict(node) for node in nodes]}


def verdict(nodes: Sequence[NodeView]) -> str:
    """Which nodes hold the same, in a sentence.

    >>> verdict([NodeView("a", "http://a"), NodeView("b", "http://b")])
    'a and b are down'
    """
    down = [node.name for node in nodes if node.held is None]
    groups: dict[str | None, list[str]] = {}
    for node in nodes:
        if node.held is not None:
            groups.setdefault(node.digest, []).append(node.name)
    if equal(nodes):
        return f"All {len(nodes)} nodes hold the same"
    parts = []
    if len(groups) == 1 and None not in groups and len(next(iter(groups.values()))) > 1:
        parts.append(f"{_and(*next(iter(groups.values())))} hold the same")
    elif groups and len([name for names in groups.values() for name in names]) > 1:
        parts.append("not equal yet: " + " | ".join(_and(*names) for names in groups.values()))
    if down:
        parts.append(f"{_and(*down)} {'is' if len(down) == 1 else 'are'} down")
    return "; ".join(parts) or "one node alone"


def picture(nodes: Sequence[NodeView], width: int) -> Group:
    """The nodes, the exchange of each with each, and whether all hold the same."""
    tone = "green" if equal(nodes) else "yellow"
    names = {node.url: node.name for node in nodes}
    return Group(
        _nodes(nodes, width),
        Text(),
        exchanges([(node.name, node.peers) for node in nodes], names, width),
        Text(),
        Text.assemble(("● ", tone), (verdict(nodes), f"bold {tone}")),
    )


def _nodes(nodes: Sequence[NodeView], width: int) -> RenderableType:
    digests = [node.digest for node in nodes if node.digest]
    usual = max(digests, key=digests.count) if digests else None
    rows: list[Sequence[RenderableType]] = []
    for number, node in enumerate(nodes, start=1):
        held = node.held or {}
        digest = (node.digest or "-")[: SHORT_DIGEST if width < NARROW else None]
        rows.append(
            (
                views.data(f"{number} {node.name}", "bold"),
                views.data(node.url.removeprefix("http://")),
                views.data(node.pid or "-"),
                Text(f"● {node.health}", TONES.get(node.health, "yellow")),
                *(views.data(held.get(kind, "-")) for kind in ("projects", "contracts", "packets")),
                views.data(digest, "green" if node.digest == usual else "yellow"),
            )
        )
    return views.table(
        "NODE", "ADDRESS", "#PID", "HEALTH", "#PROJ", "#CONTR", "#PACK", "DIGEST", rows=rows
    )


def exchanges(
    from_each: Iterable[tuple[str, list[Json]]], names: dict[str, str], width: int
) -> RenderableType:
    """The exchange with each peer, as the sending node sees it. `names` are by URL."""
    rows: list[Sequence[RenderableType]] = []
    for name, peers in from_each:
        for peer in peers:
            sync = peer.get("sync") or {}
            health = sync.get("health", "starting")
            row = [
                views.data(name, "bold"),
                views.data(names.get(peer["endpoint"]) or views.short_agent(peer["agentId"])),
                Text(f"● {health}", TONES.get(health, "white")),
                views.data(sync.get("backlog", "-")),
                views.data(f"{sync['lagSeconds']:.1f} s" if sync else "-"),
                views.data(sync.get("retries", "-")),
                views.data(sync.get("digestRounds", "-")),
            ]
            if width >= NARROW:
                row.append(views.data(one_line(sync.get("lastError") or "-", 60), "dim"))
            rows.append(row)
    heads = ["FROM", "TO", "STATE", "#WAITING", "#LAG", "#RETRIES", "#COMPARED"]
    return views.table(*heads, *(["LAST ERROR"] if width >= NARROW else []), rows=rows)


# --- what has changed ---------------------------------------------------------------------------


def lines(before: Sequence[NodeView], after: Sequence[NodeView]) -> list[str]:
    """The changes as lines, for an output that is not a terminal."""
    changes = []
    old = {node.name: node for node in before}
    for node in after:
        was = old.get(node.name, NodeView(node.name, node.url))
        if node.health != was.health:
            pid = f", pid {node.pid}" if node.pid else ""
            changes.append(f"{node.name} is {node.health} ({node.url}{pid})")
        events = peer_events(was, node) if node.held and was.held else []
        changes += [f"{node.name}: {one_line(say(event))}" for event in events]
    if verdict(before) != verdict(after):
        changes.append(verdict(after))
    return changes


def peer_events(before: NodeView, after: NodeView) -> list[PeerEvent]:
    """What happened between two views of one node."""
    old = {peer["agentId"]: peer for peer in before.peers}
    new = {peer["agentId"]: peer for peer in after.peers}
    events = [PeerEvent("removed", gone, "") for gone in old if gone not in new]
    for agent_id, peer in new.items():
        if agent_id not in old:
            events.append(PeerEvent("joined", agent_id, f"at {peer['endpoint']}"))
        events += _exchange_events(agent_id, old.get(agent_id, {}), peer)
    for kind, what, detail in (
        ("conflicts", "conflict", "more kept; `cacp show` and cacp/contract/conflicts tell them"),
        ("deferred", "deferred", "more: stamped too far ahead, or of unknown projects"),
    ):
        more = (after.held or {}).get(kind, 0) - (before.held or {}).get(kind, 0)
        if more > 0:
            events.append(PeerEvent(what, None, f"{more} {detail}"))
    return events


def _exchange_events(agent_id: str, before: Json, after: Json) -> list[PeerEvent]:
    old, new = before.get("sync") or {}, after.get("sync") or {}
    events = []
    was, now = old.get("health", "unknown"), new.get("health", "unknown")
    if now != was and now == DOWN:
        waiting = views.count(new["backlog"], "entity").replace("entitys", "entities")
        events.append(
            PeerEvent(DOWN, agent_id, f"{new.get('lastError', 'no answer')}; {waiting} waiting")
        )
    if now != was and now == "up":
        events.append(PeerEvent("up", agent_id, ""))
    if old.get("backlog") and old["lagSeconds"] >= 1 and new.get("backlog") == 0:
        events.append(PeerEvent("caught_up", agent_id, f"{old['lagSeconds']:.0f} s behind before"))
    return events


def say(event: PeerEvent) -> str:
    """An event as text.

    >>> say(PeerEvent("down", "aid://h/beta@1.0.0", "no route"))
    'beta is down: no route'
    """
    who = views.short_agent(event.peer) if event.peer else ""
    what = {"joined": "has joined", "removed": "is removed", "caught_up": "has caught up"}
    did = what.get(event.what, f"is {event.what}") if who else event.what.replace("_", " ")
    return f"{who} {did}".strip() + (f": {event.detail}" if event.detail else "")


def _and(*names: str) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
