"""cacp/sync/digest and cacp/sync/pull: mesh peers compare and fetch entities (design §7)."""

from collections.abc import Sequence
from typing import Any

import orjson

from peers import digest
from peers.digest import Name
from schemas.mesh import DigestParams, DigestResult, PullParams, PullResult
from server.domain.agents import same_agent
from server.domain.errors import Forbidden
from server.methods.base import CallSession, Context, waits, writes
from server.methods.sync.composer import MessageBuilder
from server.store import digests, peers, undelivered, unreceived_changes

PULL_BYTES = 2 * 1024 * 1024
"""A result ends once it has this much; the peer asks again for the rest."""


@writes("cacp/sync/digest", DigestParams, DigestResult, access="sync")
def compare(ctx: Context, params: DigestParams) -> dict[str, Any]:
    """Digests of what this node holds, by place, for a peer to find differences."""
    check_source(ctx, params.source_agent)
    done = digests.catch_up(ctx.db)
    sums: dict[str, str] = {}
    leaves: list[dict[str, str]] = []
    for prefix in params.prefixes:
        if len(prefix) < digest.DEPTH:
            sums |= digests.sums_below(ctx.db, prefix)
        else:
            own_leaves = digests.leaves_at(ctx.db, prefix)
            leaves += [
                name._asdict() | {"digest": leaf}
                for name, leaf in own_leaves.items()
                if name.entity in params.kinds
            ]
    assert ctx.transaction is not None
    clock = ctx.transaction.clock
    # Entities that may still be restamped must not be fetched.
    behind = not done or (
        not clock.sends and unreceived_changes.has_unreceived(ctx.db, ctx.node.agent_id)
    )
    status = {"time": clock.own(), "behind": behind}
    return status | {"sums": sums, "leaves": leaves}


@waits("cacp/sync/pull", PullParams, PullResult, access="sync")
async def pull(session: CallSession, params: PullParams) -> Any:
    """The sync calls that carry these entities, as many as fit into one answer. What can't be sent
    is left out, and noted as not delivered to the caller.
    """

    def look(ctx: Context) -> tuple[orjson.Fragment, dict[Name, str]]:
        check_source(ctx, params.source_agent)
        names = [
            Name(entity.entity, entity.project_id, entity.entity_id) for entity in params.entities
        ]
        made = MessageBuilder(ctx.db, ctx.node).messages(names, PULL_BYTES)
        answer = _answer([built.texts for _, built in made], params.piece)
        answer["rest"] += len(names) - len(made)
        problems = {name: built.problem for name, built in made if built.problem is not None}
        return orjson.Fragment(orjson.dumps(answer)), problems

    answer, problems = await session.read_wide(look)
    if problems:
        peer = session.caller.agent_id
        await session.write(lambda ctx: undelivered.note(ctx.db, peer, problems))
    return answer


def _answer(made: Sequence[Sequence[bytes]], piece: int | None) -> dict[str, Any]:
    """As many messages as fit, entity by entity; of the first entity those after `piece`.

    A peer that gives no `piece` is of a release that can't go on within an entity: an entity counts
    as given once its first part is, and the peer asks again at its next comparison.
    """
    messages: list[orjson.Fragment] = []
    size = 0
    for at, texts in enumerate(made):
        given = piece or 0 if at == 0 else 0
        for number, text in enumerate(texts[given:], given):
            if messages and size + len(text) > PULL_BYTES:
                rest = {"messages": messages, "rest": len(made) - at}
                if piece is not None:
                    return rest | {"nextPiece": number}
                return rest | {"rest": len(made) - at - (number > 0)}
            messages.append(orjson.Fragment(text))
            size += len(text)
    return {"messages": messages, "rest": 0}


def check_source(ctx: Context, source_agent: str) -> None:
    """Raises Forbidden unless a mesh peer calls in its own name (design §6)."""
    peer = peers.find(ctx.db, ctx.caller.agent_id)
    if peer is None or peer.secret is None or not same_agent(source_agent, peer.agent_id):
        raise Forbidden(
            "Only a peer that has exchanged keys may call this, in its own name",
            reason="unknown_peer",
        )
