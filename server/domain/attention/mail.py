"""Unread mail, as one item, and messages that wait for a human's approval."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from schemas.acp import ACPPriority
from schemas.attention import Urgency
from schemas.base import present
from server.domain.acp.routing import PRIORITIES
from server.domain.agents import same_agent
from server.domain.attention.items import Actor, ItemSubject, NextStep, WaitingItem, item_id, named

URGENCY: dict[ACPPriority, Urgency] = {
    "critical": "urgent",
    "high": "high",
    "normal": "normal",
    "low": "low",
}


@dataclass(frozen=True, slots=True)
class UnreadSubject:
    """The unread mail of an agent: how many messages of each priority, the time of the oldest (a
    stamp), and the position of the newest in the mailbox."""

    address: str
    counts: Mapping[ACPPriority, int]
    oldest: int
    newest: int


def items(subject: UnreadSubject, who: Actor) -> Iterator[WaitingItem]:
    """The unread mail of the agent in one item, if there is any."""
    counts = {name: subject.counts[name] for name in PRIORITIES[::-1] if subject.counts.get(name)}
    if not counts or not same_agent(subject.address, who.agent_id):
        return
    total = sum(counts.values())
    shown = ", ".join(f"{count} {name}" for name, count in counts.items())
    step = NextStep(
        "acp_inbox",
        "acp/inbox",
        {},
        {"ack": "the ids of the messages that you have handled; leave it out to read them first"},
    )
    yield WaitingItem(
        item_id("mail", subject.address, subject.newest),
        "mail",
        URGENCY[next(iter(counts))],
        subject.oldest,
        ItemSubject("mailbox", subject.address, "inbox"),
        f"{total} unread message{'' if total == 1 else 's'}: {shown}",
        {"counts": counts},
        (step,),
    )


@dataclass(frozen=True, slots=True)
class GatedSubject:
    """A message that waits for a human's approval. `since` is a stamp."""

    message_id: str
    from_agent: str
    to: tuple[str, ...]
    type: str
    priority: ACPPriority
    text: str
    since: int
    expires_at: str | None = None


def gated_items(subject: GatedSubject, who: Actor) -> Iterator[WaitingItem]:
    """The message, for every human."""
    if not who.human:
        return
    detail = {
        "from": subject.from_agent,
        "to": list(subject.to),
        "type": subject.type,
        "priority": subject.priority,
        "expiresAt": subject.expires_at,
    }
    yield WaitingItem(
        item_id("approve", "message", subject.message_id),
        "approve",
        URGENCY[subject.priority],
        subject.since,
        ItemSubject("message", subject.message_id, subject.text),
        f"Approve or refuse a message of {named(subject.from_agent)}: {named(subject.text)}",
        present(detail),
        (approval(subject.message_id),),
    )


def approval(subject_id: str) -> NextStep:
    """A human's decision on a message or a handoff. Models have no tool for it."""
    return NextStep(
        None,
        "acp/approve",
        {"message_id": subject_id},
        {"decision": "approve or refuse", "comment": "optional: why"},
    )
