"""cacp/peer/announce and the peer register (CACP 2.0, POST /peers/register; design §6)."""

from typing import Any

from schemas.base import iso, present
from schemas.sync import AnnounceParams, AnnounceResult
from server.auth.authenticator import Caller
from server.domain.access import operator_needed
from server.domain.agents import check_canonical, check_unlike, same_agent
from server.domain.endpoints import check_endpoint
from server.domain.errors import Forbidden
from server.domain.peer_limits import check_peer_limit
from server.methods.base import CallSession, Context, waits
from server.store import bans, mesh, peers


@waits("cacp/peer/announce", AnnounceParams, AnnounceResult, access="sync")
async def announce(session: CallSession, params: AnnounceParams) -> dict[str, Any]:
    """Tell this node who you are and where you listen; it answers with its own agent and repo.

    An agent whose card there names another major version of CACP is refused (-32602).
    """
    await _enter(session, params)
    return {
        "status": "acknowledged",
        "myAgentId": session.node.agent_id,
        "myRepoName": session.node.repo,
    }


async def register(session: CallSession, params: AnnounceParams) -> dict[str, Any]:
    """Body of POST /peers/register."""
    await _enter(session, params)
    return {
        "status": "registered",
        "agentId": session.node.agent_id,
        "repoName": session.node.repo,
        "peerCount": await session.read(lambda ctx: peers.count(ctx.db)),
    }


async def _enter(session: CallSession, params: AnnounceParams) -> None:
    """Check the caller before anything is asked of the endpoint that it names."""
    await session.read(lambda ctx: check_entry(ctx, params))
    await session.node.check_card(params.endpoint)
    await session.write(lambda ctx: enter(ctx, params))


def enter(ctx: Context, params: AnnounceParams) -> None:
    """Add a peer, or renew its endpoint."""
    check_entry(ctx, params)
    trust = "verified" if _proves_itself(ctx.caller) else "unkeyed"
    peers.put(ctx.db, params.agent_id, params.endpoint, params.repo_name, trust, ctx.stamp)
    if trust == "verified":
        peers.take_back(ctx.db, params.agent_id)
    ctx.record("peer", params.agent_id, None, "registered")


def check_entry(ctx: Context, params: AnnounceParams) -> None:
    """Raises Forbidden if the caller may not register this peer; an agent with a key needs it."""
    caller, keyed = ctx.caller, _proves_itself(ctx.caller)
    if not caller.is_own_agent and not same_agent(caller.agent_id, params.agent_id):
        raise Forbidden(
            f"You are {caller.agent_id}; another agent must register itself",
            reason="other_agent",
        )
    if caller.via == "local" and not ctx.node.takes_unkeyed_peers:
        # Where peers without a key are accepted, one of this machine may call without X-Agent-ID.
        raise operator_needed("registers a peer that has no key")
    if same_agent(params.agent_id, ctx.node.agent_id):
        raise Forbidden("This node doesn't register itself as its peer", reason="own_agent")
    if not keyed and mesh.is_known_by_key(ctx.db, params.agent_id, ctx.node.agent_id):
        raise Forbidden(
            f"{params.agent_id} has a key, here or at another node: send it with the registration",
            reason="key_needed",
        )
    if not keyed:
        check_canonical(params.agent_id, "agentId")
        check_unlike(params.agent_id, [ctx.node.agent_id, *mesh.known_agents(ctx.db)])
    bans.check(ctx.db, ctx.node.trusted_bans, params.agent_id)
    check_endpoint(params.endpoint, loopback_allowed=ctx.node.loopback)
    if peers.find(ctx.db, params.agent_id) is None:
        check_peer_limit(peers.count_by_way(ctx.db), "operator")


def _proves_itself(caller: Caller) -> bool:
    """Whether the caller registers itself with its own key."""
    return caller.via == "key" and not caller.operator


def describe(peer: peers.Peer) -> dict[str, Any]:
    """The PeerSummary object."""
    summary = {
        "agentId": peer.agent_id,
        "endpoint": peer.endpoint,
        "repoName": peer.repo_name,
        "trust": peer.trust,
        "kind": "foreign" if peer.secret is None else "mesh",
        "registeredAt": iso(peer.registered_at),
        "lastSeen": iso(peer.last_seen),
    }
    return present(summary)
