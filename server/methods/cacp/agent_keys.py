"""cacp/agent/revokeKeys: a person ends the access of an agent (design §7)."""

from typing import Any

from schemas.agent import RevokeKeysParams, RevokeKeysResult
from server.domain.agents import identity, same_agent
from server.domain.errors import Conflict, Forbidden, NotFound
from server.methods.base import Context, writes
from server.store import keys


@writes("cacp/agent/revokeKeys", RevokeKeysParams, RevokeKeysResult, reach="node")
def revoke_keys(ctx: Context, params: RevokeKeysParams) -> dict[str, Any]:
    """Revoke all keys that an agent has at this node, for good: it is refused from its next request
    on, and its sessions of the page end. For the operator, and for people whose key is for all
    projects; only the operator revokes the keys of people. Keys of peers stay: `cacp peers ban`
    ends an exchange."""
    caller, wanted = ctx.caller, params.agent_id
    if not (caller.operator or caller.human):
        raise Forbidden(
            "Only a person or the operator revokes keys: call with a human's key for all projects, "
            "or with the operator's",
            reason="not_human",
        )
    held = [key for key in keys.every(ctx.db) if same_agent(key.agent_id, wanted)]
    active = [key for key in held if key.revoked_at is None and key.trust != "peer"]
    if not held:
        raise NotFound(f"{wanted} has no key at this node", kind="agent", agentId=wanted)
    if not active:
        raise Conflict(f"{wanted} has no active key at this node", reason="no_active_key")
    if not caller.operator and any(key.human for key in active):
        raise Forbidden(
            f"{wanted} is a person, whose keys only the operator revokes: `cacp keys revoke`",
            reason="operator_needed",
        )
    for key in active:
        keys.revoke(ctx.db, key.key_id, now=ctx.now)
    ctx.record("agent", identity(wanted), None, "keys_revoked")
    return {
        "agentId": identity(wanted),
        "status": "revoked",
        "keyIds": [key.key_id for key in active],
    }
