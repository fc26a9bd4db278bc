"""cacp/sync/bans: which nodes are banned, as signed statements (docs/mesh-trust.md).

A node answers with its own bans and those of the nodes whose bans it applies. It keeps a peer's
own bans, for the operator to see, and those of the nodes whose bans it applies, whichever peer
passes them on. Only the bans of trusted nodes hold here.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from peers import clock
from peers.signing import verify
from schemas.base import iso
from schemas.mesh import Ban, BansParams, BansResult, Signature, SignedBan
from server.domain.agents import identity
from server.domain.authorship import statement, written_at
from server.domain.bans import BANS_MAX, BanStatement
from server.domain.canonical import digest
from server.methods.base import Context, reads
from server.methods.sync.digest import check_source
from server.store import bans, mesh
from server.util.log_once import name_once

KIND = "ban"
TOO_MANY = f"{BANS_MAX} of one node are kept"


@reads("cacp/sync/bans", BansParams, BansResult, access="sync")
def list_bans(ctx: Context, params: BansParams) -> dict[str, Any]:
    """The bans of this node and of the nodes whose bans it applies; none when the caller knows them
    all."""
    check_source(ctx, params.source_agent)
    trusted_bans = ctx.node.trusted_bans
    statements = [
        ban
        for by in (trusted_bans.own, *sorted(trusted_bans.others))
        for ban in bans.statements_by(ctx.db, by)
    ]
    now = digest({"bans": [[ban.by_node, ban.body()] for ban in statements]})
    listed = [] if now == params.known else [_signed(ctx, ban).model_dump() for ban in statements]
    return {"digest": now, "bans": listed}


def take(ctx: Context, statements: Iterable[SignedBan]) -> None:
    """Store bans whose signatures are valid, and end the exchange with the nodes they ban.

    No more bans of one node are checked than are stored, because other writes wait for this one.
    """
    counts = Counter[str]()
    for signed in statements:
        by = identity(signed.signature.node)
        counts[by] += 1
        if counts[by] > BANS_MAX:
            name_once("ban_refused", peer=ctx.caller.agent_id, by=by, reason=TOO_MANY)
        elif by != ctx.node.trusted_bans.own and _holds(ctx, by, signed):
            signature = signed.signature.model_dump_json()
            bans.put(ctx.db, BanStatement(by, **signed.ban.model_dump(), signature=signature))
    enforce(ctx)


def is_due(ctx: Context) -> bool:
    """Whether a peer is banned: by a command, a setting or another node."""
    return bans.is_due(ctx.db, ctx.node.trusted_bans)


def enforce(ctx: Context) -> None:
    """End what is exchanged with every banned peer, and record and log it."""
    for agent_id in bans.enforce(ctx.db, ctx.node.trusted_bans, ctx.stamp):
        name_once("peer_banned", peer=agent_id, at=iso(ctx.stamp))
        ctx.record("peer", agent_id, None, "banned")


def banned_by_then(
    ctx: Context, body: dict[str, Any], node: str, public: str | None, author: str | None
) -> bool:
    """Whether a node, with this key if it is known, or an author was banned when `body` was
    written. What was written before a ban stays, on every node on which the ban holds."""
    memo = ctx.transaction.memo if ctx.transaction is not None else {}
    at = ("ban", node, public or "", author or "")
    if at not in memo:
        of_author = bans.find(ctx.db, ctx.node.trusted_bans, author) if author else None
        memo[at] = bans.find(ctx.db, ctx.node.trusted_bans, node, public) or of_author
    ban: BanStatement | None = memo[at]
    return ban is not None and written_at(body) > ban.stamp


def _holds(ctx: Context, by: str, signed: SignedBan) -> bool:
    """Whether a ban is new, and signed by a node whose bans are kept with its proved key."""
    source = identity(ctx.caller.agent_id)
    if by != source and by not in ctx.node.trusted_bans.others:
        return False
    known = {ban.agent: ban for ban in bans.statements_by(ctx.db, by)}
    before = known.get(signed.ban.agent)
    if before is not None and before.stamp >= signed.ban.stamp:
        return False
    key = mesh.node_key(ctx.db, by)
    # The peer that introduces an unmet node could speak for it.
    if key is None or key.introduced_by is not None:
        reason = "that node has not proved its key here: register with it"
    elif not verify(
        key.public_key,
        statement(KIND, signed.ban.agent, signed.ban.model_dump()),
        signed.signature.value,
        signed.signature.path,
    ):
        reason = "the signature is not that of the node"
    elif not clock.is_due(signed.ban.stamp, ctx.now, ctx.node.future_limit):
        reason = "it is stamped too far ahead"
    elif before is None and len(known) >= BANS_MAX:
        reason = TOO_MANY
    else:
        return True
    name_once("ban_refused", peer=source, by=by, agent=signed.ban.agent, reason=reason)
    return False


def _signed(ctx: Context, ban: BanStatement) -> SignedBan:
    if ban.signature is None:
        value = ctx.node.key.sign(statement(KIND, ban.agent, ban.body()))
        signature = Signature(node=ctx.node.agent_id, value=value)
    else:
        signature = Signature.model_validate(orjson.loads(ban.signature))
    return SignedBan(ban=Ban.model_validate(ban.body()), signature=signature)
