"""Whose a thread is, its bounds, and the order in it (acp-canonical §12.4, §12.5).

A thread is its parties': those who have sent or been sent a message of it. Agents name threads as
they like, and who uses a name first has no more of it than others: a message joins a thread of its
name that its sender and its recipients share, else it begins another one of that name. What one
writes to itself is in a thread of its own. A thread that is named after the message that began it
takes in nobody who was not written to.

The bounds are each party's own: nobody comes to one but by its own messages, whatever others send.

The order rests on four rules, so that whatever others do, the next number is free to be sent and
is delivered at once:

- a number is taken by what is delivered, not by what waits for a human;
- what is before its turn waits in quarantine, and keeps its number from others here;
- what ends without being delivered holds nothing up that its sender has sent behind it;
- what waits while its number is taken gets the next one: nobody ends what others have sent.
"""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from server.domain.errors import Conflict, Forbidden, InvalidInput

NEGOTIATION = ("task.", "position.")
"""Types that need a sequence."""


class Thread(NamedTuple):
    """The last sequence that was taken in it (0: none), and the address of whose notes to itself it
    is; None when it is between parties."""

    sequence: int = 0
    alone: str | None = None


class ThreadParty(NamedTuple):
    """Where one agent is in a thread: the hop of its last message, the highest of what others have
    sent it since (None: nothing), and how many messages it has sent."""

    said: int | None = None
    heard: int | None = None
    sent: int = 0


class Bounds(NamedTuple):
    """How deep a party's replies in a thread may go, and how many messages it may send in it."""

    hops: int = 64
    rounds: int = 1_000


# --- whose a thread is --------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A thread of a message's name that its sender is a party to. `spoke`: the sender has sent a
    message of it; `shared`: how many of the others that the message is for are parties too."""

    id: str
    thread: Thread
    spoke: bool
    shared: int


def is_alone(sender: str, recipients: Collection[str]) -> bool:
    """Whether a message is a note of its sender's to itself. All are addresses; none when it is for
    everyone."""
    return bool(recipients) and all(one == sender for one in recipients)


def chosen(
    found: Iterable[Candidate], name: str, others: int, alone: str | None = None
) -> Candidate | None:
    """The thread that a message joins; None when it begins one. `found` has the oldest first,
    `others` is how many the message is for beside its sender, `alone` its sender when it is a note
    to itself: those are in a thread of their own.
    """
    fit = [
        one
        for one in found
        if one.thread.alone == alone and (one.id == name or one.spoke or one.shared or not others)
    ]
    return max(fit, key=lambda one: (one.shared, one.spoke), default=None)


# --- bounds -------------------------------------------------------------------------------------


def hop_of(party: ThreadParty, parent: int | None = None) -> int:
    """How many replies are before the next message of a party; `parent` is the hop of the note to
    itself that another one answers.

    Who was written to since it spoke last answers, whether it names a message or the thread; who
    goes on after its own words answers nobody. What others have come to among themselves is one
    reply more at most: only its own answers bring a party to the bound.
    """
    if parent is not None:
        return parent + 1
    said = -1 if party.said is None else party.said
    if party.heard is None:
        return max(said, 0)
    return max(said, min(party.heard, said + 1)) + 1


def spoken(party: ThreadParty, hop: int) -> ThreadParty:
    """The party after one more message of its own."""
    return ThreadParty(hop, None, party.sent + 1)


def check_bounds(party: ThreadParty, hop: int, bounds: Bounds) -> None:
    """Raises Forbidden when one more message by this party would be a loop."""
    if hop > bounds.hops:
        raise Forbidden(
            f"This would be reply {hop} in a row; {bounds.hops} are allowed. "
            "Stop, or begin a new thread",
            reason="hop_limit",
            limit=bounds.hops,
        )
    if party.sent >= bounds.rounds:
        raise Forbidden(
            f"You have sent {party.sent} messages in this thread, as many as are allowed. "
            "Stop, or begin a new thread",
            reason="round_limit",
            limit=bounds.rounds,
        )


# --- order --------------------------------------------------------------------------------------


Waits = Literal["gate", "quarantine"]


class Pending(NamedTuple):
    """A message whose number the thread has not come to. `held` is what it waits for; None for one
    that has ended, and waits no more."""

    id: str
    sender: str
    sequence: int
    held: Waits | None


def place(
    type: str, sequence: int | None, thread: Thread, pending: Iterable[Pending]
) -> Literal["next", "early"]:
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
    following = thread.sequence + 1
    if sequence < following:
        raise _taken(f"{sequence} is taken in this thread", following)
    if any(one.held == "quarantine" and one.sequence == sequence for one in pending):
        raise _taken(f"{sequence} is taken in this thread by a message before its turn", following)
    return "next" if sequence == following else "early"


def number_for(sequence: int, thread: Thread, pending: Iterable[Pending]) -> int:
    """The number that a message gets for which a human was waited: its own, or if that is taken by
    now the next one that nobody has."""
    kept = {one.sequence for one in pending if one.held == "quarantine"}
    number = max(sequence, thread.sequence + 1)
    while number in kept:
        number += 1
    return number


def take(thread: Thread, sequence: int, bounds: Bounds) -> Thread:
    """The thread once this number is taken.

    A node sees those messages of a thread that are for its agents, and so numbers with gaps
    between them; but none is further on than a thread has messages. No number that another node
    makes up leaves none for those who are in the thread.
    """
    reached = min(sequence, thread.sequence + bounds.rounds)
    return thread._replace(sequence=max(thread.sequence, reached))


def turn(thread: Thread, pending: Collection[Pending]) -> Pending | None:
    """The message in quarantine that has its turn now, with the number that it takes; None when
    there is none.

    It is the next; or its own number was taken elsewhere, and it gets the next; or it comes behind
    numbers whose messages have ended. Only those of its own sender count: that one knew of them,
    and nobody else could have.
    """
    taken, following = thread.sequence, thread.sequence + 1
    waiting = [one for one in pending if one.held == "quarantine"]
    if not waiting:
        return None
    for one in waiting:
        if one.sequence == following:
            return one
    first = min(waiting, key=lambda one: one.sequence)
    if first.sequence <= taken:
        return first._replace(sequence=following)
    own = [one for one in pending if one.sender == first.sender]
    ended = {one.sequence for one in own if one.held is None}
    gated = {one.sequence for one in own if one.held == "gate"}
    before = range(following, first.sequence)
    # A number may be far off: no more are looked at than have messages.
    reached = len(before) <= len(ended) and ended.issuperset(before)
    return first if reached and gated.isdisjoint(before) else None


def _taken(problem: str, following: int) -> Conflict:
    return Conflict(
        f"sequence: {problem}; the next is {following}", reason="sequence_taken", next=following
    )
