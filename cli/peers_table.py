"""The tables of `cacp peers`: the peers, and the entities that they have refused."""

from collections.abc import Mapping
from typing import Any

import typer

from cli.columns import print_columns
from schemas.plain import one_line

PEER_HEADS = (
    "AGENT",
    "REPO",
    "ENDPOINT",
    "TRUST",
    "HEALTH",
    "BACKLOG",
    "UNDELIVERED",
    "LAG",
    "CLOCK",
    "EQUAL",
    "LAST ERROR",
)
UNDELIVERED_HEADS = ("NOT TAKEN BY", "ENTITY", "ID", "PROJECT", "TRIES", "WHY")
CLOCK_TOLERANCE = 2
"""Seconds of difference that the network may have added."""


def print_peers(
    peers: list[dict[str, Any]], verdict: Mapping[str, Any] | None, projects: Mapping[str, str]
) -> None:
    """Print what GET /peers answers: the peers, and whether the mesh is equal (None from a node of
    an earlier release). `projects` has the name of each project by id."""
    print_columns(
        PEER_HEADS,
        [_peer_row(peer) for peer in peers],
        none="There are no peers: `cacp peers add URL` or `cacp join URL CODE` registers this node "
        "with another",
    )
    undelivered = [row for peer in peers for row in _undelivered_rows(peer, projects)]
    if undelivered:
        typer.echo()
        print_columns(UNDELIVERED_HEADS, undelivered, none="", whole=["ID"])
    if peers and verdict is not None:
        typer.echo()
        typer.echo("\n".join([_verdict(verdict), *map(one_line, verdict["limits"])]))


def _peer_row(peer: dict[str, Any]) -> list[str]:
    sync = peer.get("sync") or {}
    return [
        peer["agentId"],
        peer.get("repoName") or "-",
        peer["endpoint"],
        peer["trust"],
        sync.get("health", "-"),
        str(sync.get("backlog", "-")),
        str(sync.get("undelivered", "-")),
        f"{sync['lagSeconds']:.1f} s" if sync else "-",
        _clock(peer.get("clockAheadSeconds")),
        _equal(sync),
        "; ".join(filter(None, (sync.get("lastError"), _contradictions(peer)))) or "-",
    ]


def _undelivered_rows(peer: dict[str, Any], projects: Mapping[str, str]) -> list[list[str]]:
    entities = (peer.get("sync") or {}).get("undeliveredEntities") or []
    return [
        [
            peer["agentId"],
            entity["entity"],
            entity["entityId"],
            one_line(projects.get(entity["projectId"], entity["projectId"])),
            str(entity["tries"]),
            one_line(entity["reason"]),
        ]
        for entity in entities
    ]


def _verdict(verdict: Mapping[str, Any]) -> str:
    """Whether the mesh is equal, and when it was compared."""
    from cli.times import ago

    compared_at = verdict.get("comparedAt")
    when = f" (compared {ago(compared_at)})" if compared_at else ""
    return f"{one_line(verdict['sentence'])}{when}."


def _equal(sync: dict[str, Any]) -> str:
    """Whether both held the same when they were last compared; else what differed, by kind."""
    if sync.get("isEqual") is not False:
        return "yes" if sync.get("isEqual") else "-"
    counts = [f"{count} {kind}" for kind, count in (sync.get("differing") or {}).items()]
    return f"no: {', '.join(counts)}" if counts else "no"


def _clock(seconds_ahead: int | None) -> str:
    if seconds_ahead is None:
        return "-"
    return "ok" if abs(seconds_ahead) <= CLOCK_TOLERANCE else f"{seconds_ahead:+d} s"


def _contradictions(peer: dict[str, Any]) -> str:
    count = peer.get("equivocations", 0)
    return f"it has contradicted itself ({count}): see `cacp peers evidence`" if count else ""
