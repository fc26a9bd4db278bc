"""Context packets as foreign peers show them (design §8)."""

from schemas.base import iso
from schemas.context import ContextPacket
from schemas.sync import PeerPacket
from server.domain.agents import same_agent
from server.domain.authorship import check_sendable
from server.domain.errors import Refusal
from server.methods.sync.sending_peer import SendingPeer
from server.store import context_packets


def merge_packet(source: SendingPeer, shown: PeerPacket) -> bool:
    """Add a packet that is unknown here. A peer speaks for its own repo only."""
    ctx, project_id = source.ctx, source.project_id
    if context_packets.exists(ctx.db, project_id, shown.packet_id):
        return False
    from_repo = source.local_id(shown.from_repo)
    if from_repo != source.repo_id or not same_agent(shown.from_agent, source.agent_id):
        source.skip("context", shown.packet_id, "Another repo's packet: its own peer sends it")
        return False
    try:
        check_sendable(shown.content)
    except Refusal as refusal:
        source.skip("context", shown.packet_id, refusal.message)
        return False
    packet = ContextPacket.model_construct(
        packet_id=shown.packet_id,
        from_repo=from_repo,
        from_agent=shown.from_agent,
        timestamp=iso(source.past(shown.timestamp)),
        type=shown.type,
        content=shown.content,
        related_contracts=shown.related_contracts or [],
        reply_to=shown.reply_to,
    )
    context_packets.insert(ctx.db, project_id, packet)
    ctx.record("context", packet.packet_id, project_id, packet.type)
    return True
