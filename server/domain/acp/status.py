"""The status of a message, for one recipient and as a whole (acp-canonical §4.1)."""

from collections.abc import Iterable

from schemas.acp import ACPMessageStatus

TRANSITIONS: dict[ACPMessageStatus, frozenset[ACPMessageStatus]] = {
    "pending": frozenset({"delivered", "failed", "expired"}),
    "delivered": frozenset({"read", "expired"}),
    "read": frozenset(),
    "expired": frozenset(),
    "failed": frozenset(),
}
"""The direct successors of each status."""


def path(before: ACPMessageStatus, after: ACPMessageStatus) -> list[ACPMessageStatus] | None:
    """The statuses on the way from one to another, including the last; None if there is no way.

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

    It is pending while any recipient's is pending, then delivered while any is delivered. Once all
    are final, it is read if any recipient read the message, else expired if it expired for any,
    else failed. Without recipients it is pending.
    """
    seen = frozenset(statuses)
    order: tuple[ACPMessageStatus, ...] = ("pending", "delivered", "read", "expired", "failed")
    return next((status for status in order if status in seen), "pending")
