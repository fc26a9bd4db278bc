"""cacp/context/*: context that agents share (CACP 2.0, Context Methods)."""

from typing import Any

from schemas.base import iso, present, stamp_of
from schemas.context import (
    AskQuestionParams,
    ContextPacket,
    ContextType,
    ListContextParams,
    ListContextResult,
    RecordDecisionParams,
    ShareParams,
    ShareResult,
    ThreadParams,
    ThreadResult,
)
from server.domain.authorship import check_record, check_sendable
from server.domain.errors import NotFound
from server.methods.base import Context, new_id, open_project, party, reads, writes
from server.store import context_packets, contracts


@writes("cacp/context/share", ShareParams, ShareResult)
def share(ctx: Context, params: ShareParams) -> dict[str, Any]:
    """Share code, a type, a spec or an answer with the project."""
    check_sendable(params.content)
    return send(ctx, params, params.type, params.content)


@writes("cacp/context/askQuestion", AskQuestionParams, ShareResult)
def ask_question(ctx: Context, params: AskQuestionParams) -> dict[str, Any]:
    """Ask the project a question; it is shared as a packet of type question."""
    content = {
        "question": params.question,
        "options": params.options,
        "urgent": params.urgent,
    }
    return send(ctx, params, "question", present(content))


@writes("cacp/context/recordDecision", RecordDecisionParams, ShareResult)
def record_decision(ctx: Context, params: RecordDecisionParams) -> dict[str, Any]:
    """Record a technical decision; it is shared as a packet of type decision."""
    content = {
        "decision": params.decision,
        "chosen": params.chosen,
        "rationale": params.rationale,
        "implications": params.implications or [],
    }
    return send(ctx, params, "decision", content)


@reads("cacp/context/list", ListContextParams, ListContextResult, wide=True)
def list_(ctx: Context, params: ListContextParams) -> dict[str, Any]:
    """List the newest packets of a project, oldest first; by type, contract or time. `before`, the
    id of the first packet of a page, lists the page before it. Packets are
    ordered by the time at which they were written (then by id), the same on every node, and `since`
    refers to that time: a packet of another node may arrive late and appear before packets that you
    know. `/events` reports each packet as it arrives.
    """
    open_project(ctx, params.project_id)
    if params.before is not None and not context_packets.exists(
        ctx.db, params.project_id, params.before
    ):
        raise no_packet(params.before)
    packets = context_packets.recent(
        ctx.db,
        params.project_id,
        type=params.type,
        contract_id=params.contract_id,
        since=stamp_of(params.since) if params.since else -1,
        before=params.before,
        limit=params.limit,
    )
    return {"packets": packets}


@reads(
    "cacp/context/getThread",
    ThreadParams,
    ThreadResult,
    wide=True,
    instead="cacp/context/list, with a limit",
)
def get_thread(ctx: Context, params: ThreadParams) -> dict[str, Any]:
    """Return the whole conversation that a packet belongs to, oldest first."""
    open_project(ctx, params.project_id)
    thread = context_packets.thread(ctx.db, params.project_id, params.packet_id)
    if not thread:
        raise no_packet(params.packet_id)
    return {"thread": thread}


def send(
    ctx: Context,
    params: ShareParams | AskQuestionParams | RecordDecisionParams,
    type: ContextType,
    content: dict[str, Any],
) -> dict[str, Any]:
    """Store a packet from the caller's repo. Raises NotFound for a contract or packet that it
    refers to."""
    check_record(content, "content")
    project = open_project(ctx, params.project_id)
    who = party(ctx, params.project_id, project)
    related = known_contracts(ctx, params.project_id, params.related_contracts)
    if params.reply_to is not None and not context_packets.exists(
        ctx.db, params.project_id, params.reply_to
    ):
        raise no_packet(params.reply_to)
    packet = ContextPacket.model_construct(
        packet_id=new_id(),
        from_repo=who.repo_id,
        from_agent=who.agent_id,
        timestamp=iso(ctx.stamp),
        type=type,
        content=content,
        related_contracts=related,
        reply_to=params.reply_to,
    )
    context_packets.insert(ctx.db, params.project_id, packet)
    ctx.record("context", packet.packet_id, params.project_id, type)
    return {"packetId": packet.packet_id, "status": "shared"}


def known_contracts(ctx: Context, project_id: str, ids: list[str] | None) -> list[str]:
    """`relatedContracts` without repetitions. Raises NotFound for an unknown contract."""
    related = list(dict.fromkeys(ids or []))
    for contract_id in related:
        if contracts.header_of(ctx.db, project_id, contract_id) is None:
            raise NotFound(
                f"relatedContracts: there is no contract {contract_id} in the project",
                kind="contract",
                contractId=contract_id,
            )
    return related


def no_packet(packet_id: str) -> NotFound:
    return NotFound(
        f"There is no packet {packet_id} in the project", kind="packet", packetId=packet_id
    )
