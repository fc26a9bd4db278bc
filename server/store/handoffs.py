"""Handoffs, their history and what is to be done about them (acp-canonical §7, §9)."""

import sqlite3
from typing import Any, NamedTuple

import orjson

from schemas.base import iso
from server.domain.acp.handoff import OwnershipGrant
from server.store.sql import SQL


class Handoff(NamedTuple):
    """A row of `handoffs` with what the node keeps beside it. Agents are addresses."""

    handoff_id: str
    thread_id: str
    task_id: str
    from_agent: str
    to_agent: str
    title: str
    reason: str
    package_json: str
    status: Any
    verification_json: str
    initiated_at: str
    resolved_at: str | None
    resolution_notes: str | None
    draft_digest: str
    team: str | None
    previous: str | None
    team_gate: int
    team_approval: str | None
    human_approval: str | None
    artifacts: str | None
    session_key: str | None
    due_at: int | None
    escalated_at: int | None
    workq: Any

    @property
    def package(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.package_json)
        return found

    @property
    def chain(self) -> tuple[str, ...]:
        """The task's owners in order, the sender last."""
        return tuple(self.package["provenance"]["handoff_chain"])

    @property
    def package_hash(self) -> str:
        return str(orjson.loads(self.verification_json)["package_hash"])


class HandoffEvent(NamedTuple):
    """A step as the history has it. `at` is a stamp."""

    seq: int
    step: str
    before: str | None
    after: str
    actor: str
    role: str
    code: str | None
    detail: str | None
    at: int


class Intent(NamedTuple):
    """A call that workq's gateway is still to get."""

    seq: int
    handoff_id: str
    method: str
    item: str
    agent_id: str
    session_key: str | None
    attempts: int


class Elsewhere(NamedTuple):
    """A handoff that another node holds, as far as it is known here."""

    handoff_id: str
    task_id: str | None
    node: str


def find(db: sqlite3.Connection, handoff_id: str) -> Handoff | None:
    row = SQL.handoff(db, id=handoff_id)
    return Handoff(*row) if row else None


def active(db: sqlite3.Connection, task_id: str) -> Handoff | None:
    """The one handoff of a task that is under way (§7.2 rule 3)."""
    found = SQL.active_handoff(db, task_id=task_id)
    return None if found is None else find(db, found)


def grants(db: sqlite3.Connection, task_id: str) -> list[OwnershipGrant]:
    """The acceptances of a task's handoffs since it was last assigned, the newest first."""
    return [
        OwnershipGrant((*orjson.loads(provenance)["handoff_chain"], receiver), ended)
        for provenance, receiver, ended in SQL.grants_of_task(db, task_id=task_id)
    ]


def insert(
    db: sqlite3.Connection,
    package: dict[str, Any],
    *,
    sender: str,
    receiver: str,
    reason: str,
    status: str,
    draft_digest: str,
    team: str | None,
    previous: str | None,
    team_gate: bool,
    stamp: int,
) -> None:
    """A new handoff; its package is whole, hash included."""
    task = package["task"]
    SQL.insert_handoff(
        db,
        id=package["handoff_id"],
        thread_id=package["thread_id"],
        task_id=task["task_id"],
        from_agent=sender,
        to_agent=receiver,
        title=task["title"],
        reason=reason,
        status=status,
        initiated_at=iso(stamp),
        **_parts(package),
    )
    SQL.insert_handoff_control(
        db,
        handoff_id=package["handoff_id"],
        draft_digest=draft_digest,
        team=team,
        previous=previous,
        team_gate=int(team_gate),
    )


def put_package(
    db: sqlite3.Connection, package: dict[str, Any], previous: str | None, *, team_gate: bool
) -> None:
    """What a draft becomes when it is proposed: its chain may be another by then."""
    SQL.put_handoff_package(db, id=package["handoff_id"], **_parts(package))
    SQL.put_handoff_plan(db, id=package["handoff_id"], previous=previous, team_gate=int(team_gate))


def _parts(package: dict[str, Any]) -> dict[str, str]:
    return {
        "package_json": orjson.dumps(package).decode(),
        "provenance_json": orjson.dumps(package["provenance"]).decode(),
        "verification_json": orjson.dumps(package["verification"]).decode(),
    }


def put_status(
    db: sqlite3.Connection,
    handoff_id: str,
    status: str,
    *,
    resolved: int | None = None,
    notes: str | None = None,
) -> None:
    SQL.put_handoff_status(
        db,
        id=handoff_id,
        status=status,
        resolved_at=None if resolved is None else iso(resolved),
        resolution_notes=notes,
    )


def append(
    db: sqlite3.Connection,
    handoff_id: str,
    *,
    step: str,
    before: str | None,
    after: str,
    actor: str,
    role: str,
    stamp: int,
    code: str | None = None,
    detail: str | None = None,
) -> None:
    """Write a step into the history, which only grows (§7.2 rule 7)."""
    SQL.append_handoff_event(
        db,
        handoff_id=handoff_id,
        step=step,
        before_status=before,
        after_status=after,
        actor=actor,
        role=role,
        code=code,
        detail=detail,
        at=stamp,
    )


def events(db: sqlite3.Connection, handoff_id: str) -> list[HandoffEvent]:
    return [HandoffEvent(*row) for row in SQL.handoff_events(db, handoff_id=handoff_id)]


def listed(
    db: sqlite3.Connection,
    agent: str,
    *,
    as_sender: bool,
    as_receiver: bool,
    as_coordinator: bool,
    everything: bool,
    team: str | None,
    task_id: str | None,
    status: str | None,
    before: str,
    limit: int,
) -> list[Handoff]:
    """The newest first. `everything`: whoever they are between; `as_coordinator`: as far as they
    are of no teamspace and no drafts."""
    rows = SQL.handoffs_of(
        db,
        agent=agent,
        as_sender=int(as_sender),
        as_receiver=int(as_receiver),
        as_coordinator=int(as_coordinator),
        everything=int(everything),
        team=team,
        task_id=task_id,
        status=status,
        before=before,
        limit=limit,
    )
    return [found for (one,) in rows if (found := find(db, one)) is not None]


def put_session(db: sqlite3.Connection, handoff_id: str, session_key: str) -> None:
    SQL.put_handoff_session(db, id=handoff_id, session_key=session_key)


def unapproved(db: sqlite3.Connection, after: str, limit: int) -> list[Handoff]:
    """The handoffs behind this id that wait for a human's approval, oldest first."""
    ids = [id for (id,) in SQL.unapproved_handoffs(db, after=after, limit=limit)]
    return [found for one in ids if (found := find(db, one)) is not None]


def unapproved_count(db: sqlite3.Connection, sender: str) -> int:
    """How many handoffs that a sender, an address, has offered wait for a human's approval."""
    return int(SQL.unapproved_count(db, sender=sender))


def put_approval(db: sqlite3.Connection, handoff_id: str, agent: str, *, human: bool) -> None:
    (SQL.put_human_approval if human else SQL.put_team_approval)(db, id=handoff_id, agent=agent)


def put_artifacts(db: sqlite3.Connection, handoff_id: str, checks: list[dict[str, str]]) -> None:
    SQL.put_artifact_checks(db, id=handoff_id, artifacts=orjson.dumps(checks).decode())


def to_check(db: sqlite3.Connection) -> list[str]:
    """Handoffs whose artifacts are still to be looked at."""
    return [one for (one,) in SQL.handoffs_to_check(db)]


# --- the timer ----------------------------------------------------------------------------------


def put_due(db: sqlite3.Connection, handoff_id: str, due_at: int | None) -> None:
    """Start the timer of §7.2 rule 5, or stop it."""
    SQL.put_due(db, id=handoff_id, due_at=due_at)


def put_escalated(db: sqlite3.Connection, handoff_id: str, stamp: int | None) -> None:
    """Note that the handoff was escalated; None when its timer begins anew."""
    SQL.put_escalated(db, id=handoff_id, at=stamp)


def due(db: sqlite3.Connection, now: int) -> list[str]:
    """Handoffs that are to be escalated, once each, and offers whose time is over."""
    return [one for (one,) in SQL.handoffs_due(db, now=now)]


# --- workq --------------------------------------------------------------------------------------


def put_workq(db: sqlite3.Connection, handoff_id: str, status: str) -> None:
    SQL.put_workq(db, id=handoff_id, status=status)


def add_intent(
    db: sqlite3.Connection,
    handoff_id: str,
    *,
    method: str,
    item: str,
    agent_id: str,
    session_key: str | None,
    status: str,
) -> None:
    SQL.insert_workq_intent(
        db,
        handoff_id=handoff_id,
        method=method,
        item=item,
        agent_id=agent_id,
        session_key=session_key,
        status=status,
    )


def open_intents(db: sqlite3.Connection, now: int) -> list[Intent]:
    """What may be tried now: the first open call of each handoff."""
    return [Intent(*row) for row in SQL.open_workq_intents(db, now=now)]


def intent_done(db: sqlite3.Connection, intent: Intent) -> bool:
    """The gateway has taken the call; whether it was the handoff's last."""
    SQL.put_workq_intent(
        db, seq=intent.seq, status="done", attempts=intent.attempts + 1, not_before=0, error=None
    )
    return not SQL.workq_left(db, handoff_id=intent.handoff_id)


def intent_failed(db: sqlite3.Connection, intent: Intent, not_before: int, error: str) -> None:
    """The gateway was not reached; the call is tried again at that time."""
    SQL.put_workq_intent(
        db,
        seq=intent.seq,
        status="pending",
        attempts=intent.attempts + 1,
        not_before=not_before,
        error=error,
    )


def give_up_intents(db: sqlite3.Connection, intent: Intent, error: str) -> None:
    """Nothing more is tried for the handoff: its ownership is to be moved by hand (§10.4)."""
    SQL.put_workq_intent(
        db,
        seq=intent.seq,
        status="manual",
        attempts=intent.attempts + 1,
        not_before=0,
        error=error,
    )
    SQL.give_up_workq(db, handoff_id=intent.handoff_id)
    put_workq(db, intent.handoff_id, "manual")


def manual_count(db: sqlite3.Connection) -> int:
    """Handoffs whose ownership at workq is to be moved by hand."""
    return int(SQL.workq_manual(db))


# --- held by other nodes ------------------------------------------------------------------------


def put_elsewhere(
    db: sqlite3.Connection, handoff_id: str, recipient: str, task_id: str | None, node: str
) -> None:
    """Note that a node has offered a handoff that it holds. The first that did is believed."""
    SQL.insert_handoff_elsewhere(
        db, handoff_id=handoff_id, recipient=recipient, task_id=task_id, node=node
    )


def elsewhere(db: sqlite3.Connection, handoff_id: str, recipient: str) -> str | None:
    """The node that has offered this handoff to an agent here."""
    return SQL.handoff_elsewhere(db, handoff_id=handoff_id, recipient=recipient)  # type: ignore[no-any-return]


def listed_elsewhere(
    db: sqlite3.Connection, recipient: str, *, task_id: str | None, before: str, limit: int
) -> list[Elsewhere]:
    """What other nodes have offered to an agent, the newest first."""
    rows = SQL.handoffs_elsewhere_of(
        db, recipient=recipient, task_id=task_id, before=before, limit=limit
    )
    return [Elsewhere(*row) for row in rows]


def nodes_offering(db: sqlite3.Connection, handoff_id: str) -> list[str]:
    """The nodes that have offered this handoff to anybody here."""
    return [one for (one,) in SQL.nodes_offering(db, handoff_id=handoff_id)]


def task_elsewhere(db: sqlite3.Connection, task_id: str, recipient: str) -> list[Elsewhere]:
    """Handoffs of a task that others hold, were offered to an agent here and are not known to have
    ended; the newest first."""
    return [Elsewhere(*row) for row in SQL.task_elsewhere(db, task_id=task_id, recipient=recipient)]


def end_elsewhere(db: sqlite3.Connection, handoff_id: str, node: str) -> bool:
    """Note that a handoff has ended, by the word of the node that holds it. False when it was noted
    before, or that node has offered no such handoff."""
    return bool(SQL.end_handoff_elsewhere(db, handoff_id=handoff_id, node=node))
