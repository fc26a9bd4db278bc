"""The parties of a thread, its bounds, and the order in it (acp-canonical §12.4, §12.5).

The parties of a thread are the agents that have sent or received one of its messages. Agents choose
the names of threads, and several threads may have the same name: a message joins the thread of its
name that its sender and recipients share, else it begins a new one of that name. Notes to oneself
are in a thread of their own. A thread that is named after its first message accepts only agents
that were written to.

Each party has its own bounds: only its own messages count, whatever others send.

Four rules keep the order live, so that the next number can always be sent and is delivered at once:

- a delivered message takes its number; a message that waits for a human does not;
- a message ahead of its turn waits in quarantine, and reserves its number on this node;
- a message that ends undelivered does not hold up later messages of its sender;
- a waiting message whose number was taken gets the next one, so that nobody can end a message of
  another.
"""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

from server.domain.errors import Conflict, Forbidden, InvalidInput

NEGOTIATION = ("task.", "position.")
"""Types that need a sequence."""


class Thread(NamedTuple):
    """The last number taken in it (0: none). `alone` is the address of an agent whose notes to
    itself it holds; None for a thread between parties."""

    sequence: int = 0
    alone: str | None = None


class ThreadParty(NamedTuple):
    """The state of one agent in a thread: the hop of its last message, the highest hop of messages
    that it got since (None: no message), and how many messages it has sent."""

    own_hop: int | None = None
    heard_hop: int | None = None
    sent: int = 0


class Bounds(NamedTuple):
    """How deep a party's replies in a thread may go, and how many messages it may send there."""

    hops: int = 64
    rounds: int = 1_000


# --- joining a thread --------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A thread with a message's name, to which the sender is a party. `spoke`: the sender has sent
    a message in it; `shared`: how many of the other recipients are parties too."""

    id: str
    thread: Thread
    spoke: bool
    shared: int


def is_alone(sender: str, recipients: Collection[str]) -> bool:
    """Whether a message is a note by its sender to itself. All are addresses; `recipients` is empty
    for a message to everyone."""
    return bool(recipients) and all(address == sender for address in recipients)


def chosen(
    candidates: Iterable[Candidate], name: str, others: int, alone: str | None = None
) -> Candidate | None:
    """The thread that a message joins; None when it begins one. `candidates` has the oldest first,
    `others` is the number of recipients other than the sender, and `alone` is the sender of a note
    to itself.
    """
    fit = [
        candidate
        for candidate in candidates
        if candidate.thread.alone == alone
        and (candidate.id == name or candidate.spoke or candidate.shared or not others)
    ]
    return max(fit, key=lambda candidate: (candidate.shared, candidate.spoke), default=None)


# --- bounds -------------------------------------------------------------------------------------


def hop_of(party: ThreadParty, parent: int | None = None) -> int:
    """The hop of a party's next message: how many replies precede it. `parent` is the hop of the
    note to itself that another note answers.

    A party that got a message since its last one is replying, whether or not it names a message; a
    party that continues after its own message is not. However deep the others' replies are, the hop
    rises by at most one: only a party's own replies bring it to the bound.
    """
    if parent is not None:
        return parent + 1
    own_hop = -1 if party.own_hop is None else party.own_hop
    if party.heard_hop is None:
        return max(own_hop, 0)
    return max(own_hop, min(party.heard_hop, own_hop + 1)) + 1


def spoken(party: ThreadParty, hop: int) -> ThreadParty:
    """The party after it has sent one more message."""
    return ThreadParty(hop, None, party.sent + 1)


def check_bounds(party: ThreadParty, hop: int, bounds: Bounds) -> None:
    """Raises Forbidden (`hop_limit`, `round_limit`) when one more message of this party would
    exceed its bounds."""
    if hop > bounds.hops:
        raise Forbidden(
            f"Reply chain limit reached: {bounds.hops} consecutive replies. "
            "Stop, or begin a new thread",
            reason="hop_limit",
            limit=bounds.hops,
        )
    if party.sent >= bounds.rounds:
        raise Forbidden(
            f"Message limit reached: you have sent {party.sent} messages in this thread. "
            "Stop, or begin a new thread",
            reason="round_limit",
            limit=bounds.rounds,
        )


# --- order --------------------------------------------------------------------------------------


Waits = Literal["gate", "quarantine"]


class Pending(NamedTuple):
    """A message whose number the thread has not reached. `held` says what it waits for; None for a
    message that has ended."""

    id: str
    sender: str
    sequence: int
    held: Waits | None


def place(
    type: str, sequence: int | None, thread: Thread, pending: Iterable[Pending]
) -> Literal["next", "early"]:
    """Whether a message is the next in its thread's order, or early.

    Without a sequence it is always next. Raises InvalidInput when its type needs a sequence, and
    Conflict when the number is taken.
    """
    if sequence is None:
        if type.startswith(NEGOTIATION):
            raise InvalidInput(
                f"sequence: is required for type {type}", reason="schema_invalid", path="sequence"
            )
        return "next"
    following = thread.sequence + 1
    if sequence < following:
        raise _taken(f"{sequence} is taken in this thread", following)
    if any(entry.held == "quarantine" and entry.sequence == sequence for entry in pending):
        raise _taken(f"{sequence} is reserved in this thread by an early message", following)
    return "next" if sequence == following else "early"


def number_for(sequence: int, thread: Thread, pending: Iterable[Pending]) -> int:
    """The number of a message that a human has approved: its own, or the next free one if that
    has been taken."""
    kept = {entry.sequence for entry in pending if entry.held == "quarantine"}
    number = max(sequence, thread.sequence + 1)
    while number in kept:
        number += 1
    return number


def take(thread: Thread, sequence: int, bounds: Bounds) -> Thread:
    """The thread after this number was taken.

    A node sees only the messages for its agents, so numbers may have gaps, but never larger ones
    than a thread has messages. The bound prevents another node from using up all numbers.
    """
    reached = min(sequence, thread.sequence + bounds.rounds)
    return thread._replace(sequence=max(thread.sequence, reached))


def turn(thread: Thread, pending: Collection[Pending]) -> Pending | None:
    """The message in quarantine whose turn it is, with the number that it takes; None when there is
    none.

    It has the next number; or its number was taken elsewhere, and it gets the next one; or all
    numbers before it belong to ended messages of its own sender, the only one who knew of them.
    """
    taken, following = thread.sequence, thread.sequence + 1
    waiting = [entry for entry in pending if entry.held == "quarantine"]
    if not waiting:
        return None
    for entry in waiting:
        if entry.sequence == following:
            return entry
    first = min(waiting, key=lambda entry: entry.sequence)
    if first.sequence <= taken:
        return first._replace(sequence=following)
    own = [entry for entry in pending if entry.sender == first.sender]
    ended = {entry.sequence for entry in own if entry.held is None}
    gated = {entry.sequence for entry in own if entry.held == "gate"}
    before = range(following, first.sequence)
    # A number may be far ahead; compare counts before looking at each.
    reached = len(before) <= len(ended) and ended.issuperset(before)
    return first if reached and gated.isdisjoint(before) else None


def _taken(problem: str, following: int) -> Conflict:
    return Conflict(
        f"sequence: {problem}; the next is {following}", reason="sequence_taken", next=following
    )
