"""Context packets, which are immutable and stored as the JSON that readers get."""

from collections.abc import Callable, Iterable

import orjson

from schemas.base import iso, present, stamp_of
from schemas.context import ContextPacket
from server.store import attention_index
from server.store.connection import Connection
from server.store.sql import SQL


def insert(
    db: Connection,
    project_id: str,
    packet: ContextPacket,
    signature: str | None = None,
) -> None:
    """Store a packet. Lists order packets by `timestamp`, the same on every node, not by arrival.

    `signature` is that of another node that vouches for it (schemas.mesh.Signature, JSON).
    """
    stamp, document = stamp_of(packet.timestamp), present(packet.model_dump())
    SQL.insert_packet(
        db,
        project_id=project_id,
        packet_id=packet.packet_id,
        type=packet.type,
        reply_to=packet.reply_to,
        stamp=stamp,
        document=orjson.dumps(document).decode(),
        signature=signature,
    )
    for contract_id in packet.related_contracts:
        SQL.insert_packet_contract(
            db,
            project_id=project_id,
            contract_id=contract_id,
            stamp=stamp,
            packet_id=packet.packet_id,
        )
    attention_index.note_packet(db, project_id, document)


def replace(db: Connection, project_id: str, packet: ContextPacket, signature: str | None) -> None:
    """Replace the packet with the same id."""
    former = signed(db, project_id, packet.packet_id)
    SQL.drop_packet_contracts(db, project_id=project_id, packet_id=packet.packet_id)
    SQL.drop_packet(db, project_id=project_id, packet_id=packet.packet_id)
    insert(db, project_id, packet, signature)
    if former is not None:
        # It may have been a question, or have answered one.
        attention_index.renew_packet(db, project_id, packet.packet_id)
        answered = orjson.loads(former[0]).get("reply_to")
        if answered is not None:
            attention_index.renew_packet(db, project_id, answered)


def exists(db: Connection, project_id: str, packet_id: str) -> bool:
    return bool(SQL.packet_exists(db, project_id=project_id, packet_id=packet_id))


def documents(db: Connection, project_id: str) -> list[orjson.Fragment]:
    """Every packet of a project as JSON, oldest first."""
    return _fragments(SQL.packet_documents(db, project_id=project_id))


def recent(
    db: Connection,
    project_id: str,
    *,
    type: str | None,
    contract_id: str | None,
    since: int,
    before: str | None,
    limit: int,
) -> list[orjson.Fragment]:
    """The newest packets after the stamp `since` and before the packet `before`, oldest first."""
    chosen = {"type": type, "since": since, "before": before, "limit": limit}
    if contract_id is None:
        rows = SQL.recent_packets(db, project_id=project_id, **chosen)
    else:
        rows = SQL.recent_packets_of_contract(
            db, project_id=project_id, contract_id=contract_id, **chosen
        )
    return _fragments(rows)[::-1]


def thread(db: Connection, project_id: str, packet_id: str) -> list[orjson.Fragment]:
    """The whole conversation that a packet belongs to, oldest first."""
    return _fragments(SQL.thread_documents(db, project_id=project_id, packet_id=packet_id))


def signed(db: Connection, project_id: str, packet_id: str) -> tuple[str, str | None] | None:
    """A packet as JSON and its signature; None for the signature of this node's own packet."""
    return SQL.signed_packet(  # type: ignore[no-any-return]
        db, project_id=project_id, packet_id=packet_id
    )


def restamp(db: Connection, project_id: str, packet_id: str, moved: Callable[[int], int]) -> None:
    """Move the stamp of this node's own packet, which no other node has received yet."""
    stored = signed(db, project_id, packet_id)
    if stored is None or stored[1] is not None:
        return
    packet = orjson.loads(stored[0])
    stamp = moved(stamp_of(packet["timestamp"]))
    place = {"project_id": project_id, "packet_id": packet_id, "stamp": stamp}
    packet["timestamp"] = iso(stamp)
    SQL.restamp_packet(db, document=orjson.dumps(packet).decode(), **place)
    SQL.restamp_packet_contracts(db, **place)
    attention_index.note_packet(db, project_id, packet)


def _fragments(rows: Iterable[tuple[str]]) -> list[orjson.Fragment]:
    return [orjson.Fragment(document) for (document,) in rows]
