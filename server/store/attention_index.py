"""Keeps what waits on contracts and questions, written with the facts that it follows from.

Every write of facts or packets renews the openings of its subject in the same transaction, whatever
path it came by, so that a list needs no facts of contracts on which nothing waits.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from schemas.base import stamp_of
from schemas.contract import ContractStatus
from schemas.facts import VersionFact
from server.domain.agents import same_agent
from server.domain.attention import contracts, questions
from server.domain.attention.items import Opening
from server.domain.attention.questions import QUESTION, PacketReply
from server.domain.contract import Facts
from server.store.connection import Connection
from server.store.sql import SQL, plain

# On the hot path: run as text, which is faster than aiosql's own call.
_OF_SUBJECT = plain(SQL.openings_of_subject)
_INSERT = plain(SQL.insert_opening)
_INSERT_FIRST = plain(SQL.insert_first_opening)
_REPLIES = plain(SQL.replies_to_packet)
_DROP = plain(SQL.drop_opening)
_REVISE = plain(SQL.revise_openings)
_ADD = plain(SQL.add_to_opening_count)


def insert_contract(
    db: Connection, project_id: str, contract_id: str, version: VersionFact
) -> None:
    """Keep what waits on a new contract with its first version."""
    change: dict[str, int] = defaultdict(int)
    for opening in contracts.first_openings(project_id, contract_id, version):
        db.execute(_INSERT_FIRST, (contract_id, *opening, version.stamp))
        change[opening.kind] += 1
    _count(db, project_id, change)


def renew_contract(
    db: Connection,
    project_id: str,
    contract_id: str,
    facts: Facts,
    current: VersionFact,
    status: ContractStatus,
) -> None:
    """Renew what waits on a contract with these facts, whose current version and status these
    are."""
    opened = contracts.openings_at(project_id, contract_id, facts, current, status)
    _renew(db, contract_id, project_id, opened)


def note_packet(db: Connection, project_id: str, packet: Mapping[str, Any]) -> None:
    """Renew the questions that a packet, as its readers get it, concerns: itself, and the one that
    it answers."""
    if packet["type"] == QUESTION:
        _renew_question(db, project_id, packet)
    answered = packet.get("reply_to")
    if answered is not None:
        renew_packet(db, project_id, answered)


def renew_packet(db: Connection, project_id: str, packet_id: str) -> None:
    """Renew whether a packet waits for an answer. It may be no question, or not here yet."""
    document = SQL.question_packet(db, project_id=project_id, packet_id=packet_id)
    if document is None:
        _renew(db, packet_id, project_id, [])
    else:
        _renew_question(db, project_id, orjson.loads(document))


def _renew_question(db: Connection, project_id: str, packet: Mapping[str, Any]) -> None:
    packet_id = packet["packet_id"]
    opened = questions.openings(
        project_id,
        packet_id,
        packet["from_repo"],
        packet["from_agent"],
        stamp_of(packet["timestamp"]),
        urgent=questions.is_urgent(packet["content"]),
        replies=replies_to(db, project_id, packet_id),
    )
    _renew(db, packet_id, project_id, opened)


def replies_to(db: Connection, project_id: str, packet_id: str) -> tuple[PacketReply, ...]:
    """The packets that reply to a packet, in any order."""
    rows = db.execute(_REPLIES, (project_id, packet_id))
    return tuple(PacketReply(*row) for row in rows)


def note_message(
    db: Connection,
    message_id: str,
    from_agent: str,
    type: str,
    reply_to: str | None,
    payload_json: str,
) -> None:
    """Note a new message that asks, or that answers one which does."""
    if type == questions.QUERY:
        repliers = [replier for (replier,) in SQL.repliers_to(db, message_id=message_id)]
        if all(same_agent(replier, from_agent) for replier in repliers):
            SQL.insert_unanswered_query(db, message_id=message_id)
    elif reply_to is not None or type == questions.RESPONSE:
        query_id = orjson.loads(payload_json).get("query_id")
        for answered in {reply_to, query_id if type == questions.RESPONSE else None} - {None}:
            asker = SQL.asker_of_query(db, message_id=answered)
            if asker is not None and not same_agent(asker, from_agent):
                SQL.drop_unanswered_query(db, message_id=answered)


def counts(db: Connection) -> dict[str, int]:
    """How many openings of each kind there are, for whomever."""
    return dict(SQL.opening_counts(db))


def _renew(db: Connection, subject_id: str, project_id: str, opened: Iterable[Opening]) -> None:
    """Make these the openings of a subject that has changed."""
    missing = dict.fromkeys(opened)
    change: dict[str, int] = defaultdict(int)
    stays = False
    for row in db.execute(_OF_SUBJECT, (project_id, subject_id)).fetchall():
        kept = Opening(*row)
        if kept in missing:
            del missing[kept]
            stays = True
        else:
            db.execute(_DROP, (project_id, subject_id, kept.id))
            change[kept.kind] -= 1
    if stays:
        db.execute(_REVISE, (project_id, subject_id))
    for opening in missing:
        db.execute(_INSERT, (subject_id, *opening))
        change[opening.kind] += 1
    _count(db, project_id, change)


def _count(db: Connection, project_id: str, change: Mapping[str, int]) -> None:
    """Keep how the number of each kind has changed."""
    for kind, count in change.items():
        if count:
            db.execute(_ADD, (project_id, kind, count))
