"""The words for what is open, the same on the page and at a shell."""

from schemas.attention_overview import OverviewGroup, OverviewKind, PersonReason
from server.domain.attention.overview import JudgedItem

VERBS: dict[OverviewKind, str] = {
    "join": "find an agent for",
    "respond": "respond to",
    "revise": "revise",
    "implement": "implement",
    "repair": "repair",
    "verify": "verify",
    "answer": "answer",
    "conflict": "settle the conflict about",
    "handoff": "take the next step of handoff",
    "approve": "approve or refuse",
    "mail": "read",
    "absent": "wake the agent of",
    "undelivered": "see to",
}
REASONS: dict[PersonReason, str] = {
    "approval": "needs approval",
    "asked": "asks a person",
    "conflict": "conflict",
    "absent": "agent away",
    "vacant": "no agent",
    "escalated": "escalated",
    "undelivered": "undelivered",
}
MARKS: dict[OverviewGroup, str] = {"person": "needs a person", "overdue": "too long", "in_time": ""}


def mark_of(entry: JudgedItem) -> str:
    """Why an item needs a look; empty if agents are in time with it."""
    return MARKS[entry.group] if entry.item.reason is None else REASONS[entry.item.reason]
