"""Context packets on disk."""

from typing import Any

import orjson

from schemas.base import iso, present
from schemas.context import ContextPacket, ContextType
from server.store import context_packets
from server.store.connection import Connection
from server.store.projects import ProjectHeader
from tests.server.store.conftest import PROJECT


def insert(
    db: Connection,
    packet_id: str,
    stamp: int,
    *,
    type: ContextType = "question",
    reply_to: str | None = None,
    related: tuple[str, ...] = (),
) -> ContextPacket:
    packet = ContextPacket(
        packet_id=packet_id,
        from_repo="backend",
        from_agent="agent",
        timestamp=iso(stamp),
        type=type,
        content={"a": "ü"},
        related_contracts=list(related),
        reply_to=reply_to,
    )
    context_packets.insert(db, PROJECT, packet)
    return packet


def ids(found: list[orjson.Fragment]) -> list[Any]:
    return [one["packet_id"] for one in orjson.loads(orjson.dumps(found))]


def recent(db: Connection, **chosen: Any) -> list[Any]:
    given = {"type": None, "contract_id": None, "since": -1, "before": None, "limit": 10} | chosen
    return ids(context_packets.recent(db, PROJECT, **given))


def test_a_packet_is_kept_as_it_is_sent(db: Connection, project: ProjectHeader) -> None:
    packet = insert(db, "a", 1_000, related=("c1", "c1"))
    [found] = context_packets.documents(db, PROJECT)
    assert orjson.loads(orjson.dumps(found)) == present(packet.model_dump())
    assert context_packets.exists(db, PROJECT, "a")
    assert not context_packets.exists(db, "other", "a")


def test_the_newest_are_found_and_given_oldest_first(
    db: Connection, project: ProjectHeader
) -> None:
    insert(db, "b", 2_000)
    insert(db, "c", 3_000, type="decision", related=("c1",))
    insert(db, "a", 1_000, related=("c1",))
    assert recent(db) == ids(context_packets.documents(db, PROJECT)) == ["a", "b", "c"]
    assert recent(db, limit=2) == ["b", "c"]
    assert recent(db, since=1_000) == ["b", "c"]
    assert recent(db, type="decision") == ["c"]
    assert recent(db, contract_id="c1") == ["a", "c"]
    assert recent(db, contract_id="c1", since=1_000, type="decision", limit=1) == ["c"]


def test_pages_lead_back_to_the_first_packet(db: Connection, project: ProjectHeader) -> None:
    insert(db, "a", 1_000, related=("c1",))
    insert(db, "c", 2_000)
    insert(db, "b", 2_000, related=("c1",))
    assert recent(db, before="c", limit=1) == ["b"]
    assert recent(db, before="b") == ["a"]
    assert recent(db, before="b", contract_id="c1") == ["a"]
    assert recent(db, before="a") == []


def test_a_thread_is_found_from_any_of_its_packets(db: Connection, project: ProjectHeader) -> None:
    insert(db, "root", 1_000)
    insert(db, "left", 2_000, reply_to="root")
    insert(db, "right", 3_000, reply_to="root")
    insert(db, "leaf", 4_000, reply_to="left")
    insert(db, "apart", 5_000)
    for start in ("root", "left", "right", "leaf"):
        assert ids(context_packets.thread(db, PROJECT, start)) == ["root", "left", "right", "leaf"]
    assert ids(context_packets.thread(db, PROJECT, "apart")) == ["apart"]
    assert context_packets.thread(db, "other", "root") == []


def test_packets_that_reply_to_each_other_make_no_endless_thread(
    db: Connection, project: ProjectHeader
) -> None:
    """What peers send may refer in a circle, or to what is not here."""
    insert(db, "a", 1_000, reply_to="b")
    insert(db, "b", 2_000, reply_to="a")
    insert(db, "lost", 3_000, reply_to="nowhere")
    assert ids(context_packets.thread(db, PROJECT, "a")) == ["a", "b"]
    assert ids(context_packets.thread(db, PROJECT, "lost")) == ["lost"]


def test_lists_go_by_a_packets_own_time_and_then_its_id(
    db: Connection, project: ProjectHeader
) -> None:
    """Whatever order packets arrive in, every node lists them alike."""
    insert(db, "late", 3_000, related=("c1",))
    insert(db, "b", 1_000, reply_to="late", related=("c1",))
    insert(db, "a", 1_000, reply_to="late", related=("c1",))
    assert ids(context_packets.documents(db, PROJECT)) == recent(db) == ["a", "b", "late"]
    assert recent(db, contract_id="c1", limit=2) == ["b", "late"]
    assert ids(context_packets.thread(db, PROJECT, "late")) == ["a", "b", "late"]
