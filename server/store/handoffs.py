"""Handoffs, their history, timers and calls to workq (acp-canonical §7, §9)."""

from typing import Any, NamedTuple

import orjson

from schemas.base import iso
from schemas.handoff import HandoffStatus
from server.domain.acp.handoff import ENDED, OwnershipGrant
from server.store.connection import Connection
from server.store.sql import SQL


class Handoff(NamedTuple):
    """A row of `handoffs` joined with `handoff_control`. Agents are addresses."""

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
        package: dict[str, Any] = orjson.loads(self.package_json)
        return package

    @property
    def chain(self) -> tuple[str, ...]:
        """The task's owners in order, the sender last."""
        return tuple(self.package["provenance"]["handoff_chain"])

    @property
    def package_hash(self) -> str:
        return str(orjson.loads(self.verification_json)["package_hash"])


class HandoffHistoryRow(NamedTuple):
    """A step in the history. `at` is a stamp."""

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
    """A queued call to workq's gateway."""

    seq: int
    handoff_id: str
    method: str
    item: str
    agent_id: str
    session_key: str | None
    attempts: int


class Elsewhere(NamedTuple):
    """A handoff that another node holds."""

    handoff_id: str
    task_id: str | None
    node: str


def find(db: Connection, handoff_id: str) -> Handoff | None:
    row = SQL.handoff(db, id=handoff_id)
    return Handoff(*row) if row else None


def active(db: Connection, task_id: str) -> Handoff | None:
    """The active handoff of a task (§7.2 rule 3)."""
    handoff_id = SQL.active_handoff(db, task_id=task_id)
    return None if handoff_id is None else find(db, handoff_id)


def grants(db: Connection, task_id: str) -> list[OwnershipGrant]:
    """The acceptances of a task's handoffs since it was last assigned, the newest first."""
    return [
        OwnershipGrant((*orjson.loads(provenance)["handoff_chain"], receiver), ended)
        for provenance, receiver, ended in SQL.grants_of_task(db, task_id=task_id)
    ]


def insert(
    db: Connection,
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
    """Insert a handoff with its complete package, including the hash."""
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
    db: Connection, package: dict[str, Any], previous: str | None, *, team_gate: bool
) -> None:
    """Update a draft's package when it is proposed, as its chain may have changed."""
    SQL.put_handoff_package(db, id=package["handoff_id"], **_parts(package))
    SQL.put_handoff_plan(db, id=package["handoff_id"], previous=previous, team_gate=int(team_gate))


def _parts(package: dict[str, Any]) -> dict[str, str]:
    return {
        "package_json": orjson.dumps(package).decode(),
        "provenance_json": orjson.dumps(package["provenance"]).decode(),
        "verification_json": orjson.dumps(package["verification"]).decode(),
    }


def put_status(
    db: Connection,
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
    db: Connection,
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
    """Append a step to the history, which is never changed (§7.2 rule 7)."""
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


def events(db: Connection, handoff_id: str) -> list[HandoffHistoryRow]:
    return [HandoffHistoryRow(*row) for row in SQL.handoff_events(db, handoff_id=handoff_id)]


def listed(
    db: Connection,
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
    """Handoffs of an agent, the newest first. `everything`: whoever their parties are;
    `as_coordinator`: all outside teamspaces, except drafts."""
    asked = {
        "agent": agent,
        "as_sender": int(as_sender),
        "as_receiver": int(as_receiver),
        "as_coordinator": int(as_coordinator),
        "everything": int(everything),
        "team": team,
        "task_id": task_id,
        "before": before,
        "limit": limit,
    }
    if status is None:
        rows = SQL.handoffs_of(db, **asked)
    else:
        rows = SQL.handoffs_in_state(db, status=status, **asked)
    return [handoff for (handoff_id,) in rows if (handoff := find(db, handoff_id)) is not None]


def put_session(db: Connection, handoff_id: str, session_key: str) -> None:
    SQL.put_handoff_session(db, id=handoff_id, session_key=session_key)


def unapproved(db: Connection, after: str, limit: int) -> list[Handoff]:
    """The handoffs after this id that wait for a human's approval, oldest first."""
    ids = [id for (id,) in SQL.unapproved_handoffs(db, after=after, limit=limit)]
    return [handoff for handoff_id in ids if (handoff := find(db, handoff_id)) is not None]


def unapproved_count(db: Connection, sender: str) -> int:
    """How many handoffs offered by `sender`, an address, wait for a human's approval."""
    return int(SQL.unapproved_count(db, sender=sender))


def put_approval(db: Connection, handoff_id: str, agent: str, *, human: bool) -> None:
    (SQL.put_human_approval if human else SQL.put_team_approval)(db, id=handoff_id, agent=agent)


def put_artifacts(db: Connection, handoff_id: str, checks: list[dict[str, str]]) -> None:
    SQL.put_artifact_checks(db, id=handoff_id, artifacts=orjson.dumps(checks).decode())


def to_check(db: Connection) -> list[str]:
    """The ids of handoffs whose artifacts must be checked."""
    return [handoff_id for (handoff_id,) in SQL.handoffs_to_check(db)]


# --- the timer ----------------------------------------------------------------------------------


def put_due(db: Connection, handoff_id: str, due_at: int | None) -> None:
    """Start the timer of §7.2 rule 5; None stops it."""
    SQL.put_due(db, id=handoff_id, due_at=due_at)


def put_escalated(db: Connection, handoff_id: str, stamp: int | None) -> None:
    """Record when the handoff was escalated; None when its timer restarts."""
    SQL.put_escalated(db, id=handoff_id, at=stamp)


def due(db: Connection, now: int) -> list[str]:
    """The ids of handoffs to escalate, each once, and of offers that have expired."""
    return [handoff_id for (handoff_id,) in SQL.handoffs_due(db, now=now)]


# --- workq --------------------------------------------------------------------------------------


def put_workq(db: Connection, handoff_id: str, status: str) -> None:
    SQL.put_workq(db, id=handoff_id, status=status)


def add_intent(
    db: Connection,
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


def open_intents(db: Connection, now: int) -> list[Intent]:
    """The calls that may be made now: the first open one of each handoff."""
    return [Intent(*row) for row in SQL.open_workq_intents(db, now=now)]


def intent_done(db: Connection, intent: Intent) -> bool:
    """Note that the gateway took the call. True when it was the handoff's last."""
    _put_intent(db, intent, "done")
    return not SQL.workq_left(db, handoff_id=intent.handoff_id)


def intent_failed(db: Connection, intent: Intent, not_before: int, error: str) -> None:
    """Note that the gateway was not reached; the call is tried again at `not_before`."""
    _put_intent(db, intent, "pending", not_before=not_before, error=error)


def give_up_intents(db: Connection, intent: Intent, error: str) -> None:
    """Stop calling the gateway for the handoff: a person moves its items by hand (§10.4)."""
    _put_intent(db, intent, "manual", error=error)
    SQL.give_up_workq(db, handoff_id=intent.handoff_id)
    put_workq(db, intent.handoff_id, "manual")


def _put_intent(
    db: Connection,
    intent: Intent,
    status: str,
    *,
    not_before: int = 0,
    error: str | None = None,
) -> None:
    SQL.put_workq_intent(
        db,
        seq=intent.seq,
        status=status,
        attempts=intent.attempts + 1,
        not_before=not_before,
        error=error,
    )


def manual_count(db: Connection) -> int:
    """The number of handoffs whose workq items a person must move."""
    return int(SQL.workq_manual(db))


# --- held by other nodes ------------------------------------------------------------------------


def put_elsewhere(
    db: Connection,
    handoff_id: str,
    recipient: str,
    task_id: str | None,
    node: str,
    offer: str | None = None,
) -> None:
    """Record that a node has offered a handoff that it holds, by the message with the id `offer`.
    The first such node is believed."""
    at = {"handoff_id": handoff_id, "recipient": recipient}
    SQL.insert_handoff_elsewhere(db, **at, task_id=task_id, node=node, offer=offer)


def put_status_elsewhere(db: Connection, handoff_id: str, node: str, status: HandoffStatus) -> None:
    """Record the status that the node that holds a handoff has reported."""
    SQL.put_status_elsewhere(db, handoff_id=handoff_id, node=node, status=status)
    if status in ENDED:
        end_elsewhere(db, handoff_id, node)


def elsewhere(db: Connection, handoff_id: str, recipient: str) -> str | None:
    """The node that has offered this handoff to an agent here; None when none has."""
    return SQL.handoff_elsewhere(db, handoff_id=handoff_id, recipient=recipient)  # type: ignore[no-any-return]


def listed_elsewhere(
    db: Connection, recipient: str, *, task_id: str | None, before: str, limit: int
) -> list[Elsewhere]:
    """The handoffs that other nodes have offered to an agent, the newest first."""
    rows = SQL.handoffs_elsewhere_of(
        db, recipient=recipient, task_id=task_id, before=before, limit=limit
    )
    return [Elsewhere(*row) for row in rows]


def nodes_offering(db: Connection, handoff_id: str) -> list[str]:
    """The nodes that have offered this handoff to anybody here."""
    return [node for (node,) in SQL.nodes_offering(db, handoff_id=handoff_id)]


def task_elsewhere(db: Connection, task_id: str, recipient: str) -> list[Elsewhere]:
    """A task's handoffs that other nodes hold and have offered to an agent here, and that have not
    ended as far as this node knows; the newest first."""
    return [Elsewhere(*row) for row in SQL.task_elsewhere(db, task_id=task_id, recipient=recipient)]


def end_elsewhere(db: Connection, handoff_id: str, node: str) -> bool:
    """Record that the node that holds a handoff has reported its end. False when that was recorded
    before, or the node has offered no such handoff."""
    return bool(SQL.end_handoff_elsewhere(db, handoff_id=handoff_id, node=node))
