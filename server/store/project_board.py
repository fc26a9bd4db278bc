"""What a project's board is made of: its contracts with what they wait for, and its moments."""

from collections import defaultdict
from typing import Any, NamedTuple

import orjson

from schemas.facts import FACT, Fact
from server.domain.contract import FactKey
from server.domain.project_board import BoardCard, CardStep, in_order
from server.store.connection import Connection
from server.store.sql import SQL

NEWEST = (2**63 - 1, "", "")
"""A position before every moment."""
ALL = 2**62
"""More moments than there can be."""


class StoryMoment(NamedTuple):
    """A stamp at which something was done, and to what: a contract, packet, repo or project."""

    at: int
    subject: str
    id: str


class PacketCounts(NamedTuple):
    """How many packets a project had: all, decisions, and questions without an answer."""

    packets: int
    decisions: int
    open_questions: int


def cards(db: Connection, project_id: str) -> list[BoardCard]:
    """Every contract of a project, with the steps that it waits for."""
    steps: dict[str, list[CardStep]] = defaultdict(list)
    for contract_id, kind, repo_id, since in SQL.board_steps(db, project_id=project_id):
        steps[contract_id].append(CardStep(kind, repo_id, since))
    return [
        BoardCard(*row)._replace(steps=in_order(steps.get(row[0], ())))
        for row in SQL.board_contracts(db, project_id=project_id)
    ]


def facts_changed_after(db: Connection, project_id: str, at: int) -> dict[str, dict[FactKey, Fact]]:
    """The facts of each contract that has changed after the stamp `at`. Versions have no
    content."""
    facts: dict[str, dict[FactKey, Fact]] = defaultdict(dict)
    for contract_id, body in SQL.facts_changed_after(db, project_id=project_id, at=at):
        fact = FACT.validate_json(body)
        facts[contract_id][fact.kind, fact.key] = fact
    return facts


def open_questions(db: Connection, project_id: str, limit: int) -> tuple[list[dict[str, Any]], int]:
    """The oldest packets that wait for an answer, and how many there are."""
    rows = list(SQL.open_questions(db, project_id=project_id, limit=limit))
    return [orjson.loads(document) for document, _ in rows], rows[0][1] if rows else 0


def moments(db: Connection, project_id: str) -> list[StoryMoment]:
    """When something was done in a project, and to what; the newest first."""
    return _moments(db, project_id, NEWEST, 0, ALL)


def recent_moments(
    db: Connection, project_id: str, before: tuple[int, str, str], limit: int
) -> list[StoryMoment]:
    """The newest moments before one."""
    # Nearly always each contract's last change is a moment: facts that are older than those of
    # `limit` contracts need no look.
    floor = SQL.recent_contract_time(db, project_id=project_id, at=before[0], place=limit)
    page = _moments(db, project_id, before, floor or 0, limit)
    if floor is None or len(page) == limit:
        return page
    return _moments(db, project_id, before, 0, limit)


def _moments(
    db: Connection, project_id: str, before: tuple[int, str, str], floor: int, limit: int
) -> list[StoryMoment]:
    at, subject, id = before
    place = {"at": at, "subject": subject, "id": id, "floor": floor}
    rows = SQL.project_moments(db, project_id=project_id, **place, limit=limit)
    return [StoryMoment(*row) for row in rows]


def packet_counts(db: Connection, project_id: str, at: int) -> PacketCounts:
    """How many packets a project had at the stamp `at`."""
    return PacketCounts(*SQL.packet_counts_until(db, project_id=project_id, at=at))
