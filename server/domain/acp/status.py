"""How far a message is, with one recipient and as a whole (acp-canonical §4.1)."""

from collections.abc import Iterable

from schemas.acp import ACPMessageStatus

TRANSITIONS: dict[ACPMessageStatus, frozenset[ACPMessageStatus]] = {
    "pending": frozenset({"delivered", "failed", "expired"}),
    "delivered": frozenset({"read", "expired"}),
    "read": frozenset(),
    "expired": frozenset(),
    "failed": frozenset(),
}
"""What may follow each status, at once."""


def path(before: ACPMessageStatus, after: ACPMessageStatus) -> list[ACPMessageStatus] | None:
    """The statuses to go through from one to another, the last included; None if there is no way.

    >>> path("pending", "read")
    ['delivered', 'read']
    """
    if after == before:
        return []
    if after in TRANSITIONS[before]:
        return [after]
    for step in sorted(TRANSITIONS[before]):
        rest = path(step, after)
        if rest:
            return [step, *rest]
    return None


def whole(statuses: Iterable[ACPMessageStatus]) -> ACPMessageStatus:
    """The status of an envelope, from those of its recipients.

    It waits for the last of them: pending while one is pending, then delivered while one has not
    read what it got. Once all are done: read when anyone read it, else expired when it expired for
    anyone, else failed. It is pending without recipients.
    """
    found = frozenset(statuses)
    order: tuple[ACPMessageStatus, ...] = ("pending", "delivered", "read", "expired", "failed")
    return next((status for status in order if status in found), "pending")
