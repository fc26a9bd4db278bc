"""cacp/peer/announce and the peer register (CACP 2.0, POST /peers/register; design §7)."""

from typing import Any

from schemas.base import iso
from schemas.sync import AnnounceParams, AnnounceResult
from server.domain.agents import same_agent
from server.domain.endpoints import check_endpoint
from server.domain.errors import Forbidden
from server.methods.base import Context, check_unscoped, writes
from server.store import mesh, peers

PEERS_MAX = 100
"""Each costs a sender, which looks at every change."""


@writes("cacp/peer/announce", AnnounceParams, AnnounceResult, access="sync")
def announce(ctx: Context, params: AnnounceParams) -> dict[str, Any]:
    """Tell this node who you are and where you listen; it answers with who it is."""
    enter(ctx, params)
    return {
        "status": "acknowledged",
        "myAgentId": ctx.node.agent_id,
        "myRepoName": ctx.node.repo,
    }


def register(ctx: Context, params: AnnounceParams) -> dict[str, Any]:
    """Body of POST /peers/register."""
    enter(ctx, params)
    return {
        "status": "registered",
        "agentId": ctx.node.agent_id,
        "repoName": ctx.node.repo,
        "peerCount": peers.count(ctx.db),
    }


def enter(ctx: Context, params: AnnounceParams) -> None:
    """Enter a peer, or renew its endpoint. An agent that has a key needs it for that."""
    check_unscoped(ctx)
    caller = ctx.caller
    if caller.via != "local" and not same_agent(caller.agent_id, params.agent_id):
        raise Forbidden(
            f"You are {caller.agent_id}; another agent must register itself",
            reason="other_agent",
        )
    keyed = mesh.is_known_by_key(ctx.db, params.agent_id)
    if caller.via != "key" and keyed and params.agent_id != ctx.node.agent_id:
        raise Forbidden(
            f"{params.agent_id} has a key: send it with the registration",
            reason="key_needed",
        )
    if same_agent(params.agent_id, ctx.node.agent_id):
        raise Forbidden("This node doesn't register itself as its peer", reason="own_agent")
    check_endpoint(params.endpoint, loopback_allowed=ctx.node.loopback)
    known = peers.find(ctx.db, params.agent_id)
    if known is None and peers.count(ctx.db) >= PEERS_MAX:
        raise Forbidden(f"This node has {PEERS_MAX} peers, which is its limit", reason="peer_limit")
    trust = "verified" if caller.via == "key" else "unkeyed"
    peers.put(ctx.db, params.agent_id, params.endpoint, params.repo_name, trust, ctx.stamp)
    ctx.record("peer", params.agent_id, None, "registered")


def describe(peer: peers.Peer) -> dict[str, Any]:
    """The PeerSummary object."""
    return {
        "agentId": peer.agent_id,
        "endpoint": peer.endpoint,
        "repoName": peer.repo_name,
        "trust": peer.trust,
        "registeredAt": iso(peer.registered_at),
        "lastSeen": iso(peer.last_seen),
    }
