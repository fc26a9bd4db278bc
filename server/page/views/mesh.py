"""The mesh: is it equal, and how does the exchange with each node go."""

from typing import Any

from schemas.base import iso, present
from server.domain.access import check_unrestricted
from server.domain.mesh_verdict import PeerStanding, standing
from server.mesh.peer_status import verdict_of
from server.page.view import Page, PageCall, view
from server.store import alarms, bans, deferred, mesh

Json = dict[str, Any]

SHOWN = 100
"""The most bans, deferred messages by peer, and undelivered entities that are listed."""
ORDER: tuple[PeerStanding, ...] = ("down", "differs", "unknown", "behind", "equal", "foreign")


@view(
    "mesh",
    "/ui/mesh",
    title="Mesh",
    kinds=("peer", "project", "repo", "contract", "receipt", "context", "file", "file_request"),
)
def mesh_(call: PageCall) -> Page:
    """Whether the nodes of the mesh hold the same, and how the exchange with each goes."""
    check_unrestricted(call.caller.projects)
    db, status = call.ctx.db, call.state.mesh.status
    peers = [_with_standing(peer) for peer in status.peers(db)]
    peers.sort(key=lambda peer: (ORDER.index(peer["standing"]), peer["agentId"]))
    return {
        "verdict": verdict_of(status.equality(db)),
        "node": status.holdings(db),
        "peers": peers,
        "undelivered": _undelivered(peers),
        "deferred": [
            {
                "source": share.source,
                "messages": share.messages,
                "bytes": share.bytes,
                "since": iso(share.since),
            }
            for share in deferred.by_source(db)[:SHOWN]
        ],
        "bans": _bans(call),
        "joining": [
            present({"url": wanted.url, "error": wanted.error}) for wanted in mesh.wanted(db)
        ],
        "alarms": [
            {"about": alarm.about, "detail": alarm.detail, "since": iso(alarm.raised_at)}
            for alarm in alarms.every(db)
            if alarm.reason == "content_differs"
        ],
    }


def _with_standing(peer: Json) -> Json:
    sync = peer.get("sync") or {}
    return peer | {
        "standing": standing(
            is_mesh=peer["kind"] == "mesh",
            is_up=None if sync.get("health") in (None, "unknown") else sync["health"] == "up",
            is_equal=sync.get("isEqual"),
            backlog=sync.get("backlog", 0),
        )
    }


def _undelivered(peers: list[Json]) -> list[Json]:
    """The first entities that peers have refused, each with its peer."""
    entities = [
        {"peer": peer["agentId"], **entity}
        for peer in peers
        for entity in (peer.get("sync") or {}).get("undeliveredEntities", ())
    ]
    return entities[:SHOWN]


def _bans(call: PageCall) -> list[Json]:
    """The bans that this node knows, and whether each holds here."""
    db, trusted = call.ctx.db, call.ctx.node.trusted_bans
    banned = [statement for statement in bans.every(db) if statement.banned]
    banned.sort(key=lambda statement: -statement.stamp)
    return [
        {
            "agent": statement.agent,
            "byNode": statement.by_node,
            "reason": statement.reason,
            "since": iso(statement.stamp),
            "holdsHere": bans.find(db, trusted, statement.agent, statement.public_key) is not None,
        }
        for statement in banned[:SHOWN]
    ]
