"""Bounds and order within a thread (acp-canonical §12.4, §12.5)."""

from typing import Literal, NamedTuple

from server.domain.errors import Conflict, Forbidden, InvalidInput

NEGOTIATION = ("task.", "position.")
"""Types that need a sequence."""


class Thread(NamedTuple):
    """Its messages, the last sequence that was taken in it (0: none), its highest hop, and the
    address of who spoke last in it."""

    rounds: int = 0
    sequence: int = 0
    hop: int = 0
    speaker: str | None = None


class Bounds(NamedTuple):
    """How deep replies may go, and how many messages a thread may have."""

    hops: int = 64
    rounds: int = 1_000


def hop_of_joining(thread: Thread, sender: str) -> int:
    """How many replies are before a message that joins a thread by its name.

    It answers what is there, as a reply would; but who goes on after its own words answers nobody.
    """
    if not thread.rounds or thread.speaker == sender:
        return thread.hop
    return thread.hop + 1


def after(thread: Thread, hop: int, sender: str) -> Thread:
    """The thread after one more message by this address.

    It is one reply more at most, whatever another node says of what was before it: else one message
    would use up a thread for those who are in it.
    """
    if thread.rounds:
        hop = min(hop, thread.hop + 1)
    return Thread(thread.rounds + 1, thread.sequence, max(thread.hop, hop), sender)


def check_bounds(thread: Thread, hop: int, bounds: Bounds) -> None:
    """Raises Forbidden when one more message would be a loop."""
    if hop > bounds.hops:
        raise Forbidden(
            f"This would be reply {hop} in a row; {bounds.hops} are allowed. "
            "Stop, or begin a new thread",
            reason="hop_limit",
            limit=bounds.hops,
        )
    if thread.rounds >= bounds.rounds:
        raise Forbidden(
            f"The thread has {thread.rounds} messages, as many as are allowed. "
            "Stop, or begin a new thread",
            reason="round_limit",
            limit=bounds.rounds,
        )


def place(type: str, sequence: int | None, thread: Thread) -> Literal["next", "early"]:
    """Whether a message is the next in its thread's order, or before its turn.

    Without a sequence it is always next. Raises InvalidInput when its type needs one, and Conflict
    when that sequence has been taken.
    """
    if sequence is None:
        if type.startswith(NEGOTIATION):
            raise InvalidInput(
                f"sequence: {type} needs one", reason="schema_invalid", path="sequence"
            )
        return "next"
    if sequence <= thread.sequence:
        raise Conflict(
            f"sequence: {sequence} is taken in this thread; the next is {thread.sequence + 1}",
            reason="sequence_taken",
            next=thread.sequence + 1,
        )
    return "next" if sequence == thread.sequence + 1 else "early"
