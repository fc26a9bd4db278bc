"""cacp/sync/bans: whom nodes have banned, as signed statements (docs/mesh-trust.md).

A node answers with its own word and that of the nodes that it heeds. It keeps what a peer says of
its own, for the operator to see, and what those say that it heeds, whoever passes it on; only
theirs holds here.
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
def told(ctx: Context, params: BansParams) -> dict[str, Any]:
    """Whom this node has banned, and the nodes whose bans it takes; nothing when the caller knows
    it all."""
    check_source(ctx, params.source_agent)
    heeds = ctx.node.heeds
    said = [one for by in (heeds.own, *sorted(heeds.others)) for one in bans.said_by(ctx.db, by)]
    now = digest({"bans": [[one.by_node, one.body()] for one in said]})
    listed = [] if now == params.known else [_signed(ctx, one).model_dump() for one in said]
    return {"digest": now, "bans": listed}


def take(ctx: Context, statements: Iterable[SignedBan]) -> None:
    """Keep what nodes have said, each checked for who signed it; end what is banned from now on.

    Of one node no more is looked at than is kept: writes wait meanwhile.
    """
    told = Counter[str]()
    for one in statements:
        by = identity(one.signature.node)
        told[by] += 1
        if told[by] > BANS_MAX:
            name_once("ban_refused", peer=ctx.caller.agent_id, by=by, reason=TOO_MANY)
        elif by != ctx.node.heeds.own and _holds(ctx, by, one):
            signature = one.signature.model_dump_json()
            bans.put(ctx.db, BanStatement(by, **one.ban.model_dump(), signature=signature))
    enforce(ctx)


def is_due(ctx: Context) -> bool:
    """Whether a peer is banned: by a command, a setting or another node."""
    return bans.is_due(ctx.db, ctx.node.heeds)


def enforce(ctx: Context) -> None:
    """End what is exchanged with every peer that is banned, and say so."""
    for agent_id in bans.enforce(ctx.db, ctx.node.heeds, ctx.stamp):
        name_once("peer_banned", peer=agent_id, at=iso(ctx.stamp))
        ctx.record("peer", agent_id, None, "banned")


def banned_by_then(
    ctx: Context, body: dict[str, Any], node: str, public: str | None, author: str | None
) -> bool:
    """Whether what a node signed, by this key if it is known, is of one who was banned when it was
    written: what was written before stays, and is the same on every node on which the ban holds."""
    memo = ctx.transaction.memo if ctx.transaction is not None else {}
    at = ("ban", node, public or "", author or "")
    if at not in memo:
        of_author = bans.find(ctx.db, ctx.node.heeds, author) if author else None
        memo[at] = bans.find(ctx.db, ctx.node.heeds, node, public) or of_author
    ban: BanStatement | None = memo[at]
    return ban is not None and written_at(body) > ban.stamp


def _holds(ctx: Context, by: str, one: SignedBan) -> bool:
    """Whether it is news, and signed by a node whose word is kept, with the key that it proved."""
    source = identity(ctx.caller.agent_id)
    if by != source and by not in ctx.node.heeds.others:
        return False
    known = {said.agent: said for said in bans.said_by(ctx.db, by)}
    before = known.get(one.ban.agent)
    if before is not None and before.stamp >= one.ban.stamp:
        return False
    key = mesh.node_key(ctx.db, by)
    # Whoever introduces a node that was never met could speak for it.
    if key is None or key.introduced_by is not None:
        reason = "that node has not proved its key here: register with it"
    elif not verify(
        key.public_key,
        statement(KIND, one.ban.agent, one.ban.model_dump()),
        one.signature.value,
        one.signature.path,
    ):
        reason = "the signature is not that of the node"
    elif not clock.is_due(one.ban.stamp, ctx.now, ctx.node.future_limit):
        reason = "it is stamped too far ahead"
    elif before is None and len(known) >= BANS_MAX:
        reason = TOO_MANY
    else:
        return True
    name_once("ban_refused", peer=source, by=by, agent=one.ban.agent, reason=reason)
    return False


def _signed(ctx: Context, said: BanStatement) -> SignedBan:
    if said.signature is None:
        value = ctx.node.key.sign(statement(KIND, said.agent, said.body()))
        signature = Signature(node=ctx.node.agent_id, value=value)
    else:
        signature = Signature.model_validate(orjson.loads(said.signature))
    return SignedBan(ban=Ban.model_validate(said.body()), signature=signature)
