"""Which thread a message is of, here (acp-canonical §4, §12.5; `server.domain.acp.threads`)."""

from collections.abc import Collection
from typing import NamedTuple

from server.domain.acp import threads
from server.domain.acp.threads import Candidate, Thread
from server.domain.agents import identity
from server.methods.base import Context
from server.store import messages
from server.store.messages import MessageRow


class Joined(NamedTuple):
    """A thread and what it is called. `closed`: there is one named after the message that began
    it, and the sender has no part in it."""

    id: str
    name: str
    thread: Thread
    closed: bool = False


def of(ctx: Context, message: MessageRow) -> Joined:
    """The thread of a message that is here."""
    thread_id = messages.thread_of(ctx.db, message.id)
    thread = messages.thread(ctx.db, thread_id) or Thread()
    return Joined(thread_id, message.thread_id or message.id, thread)


def joined(
    ctx: Context, name: str, message_id: str, sender: str, recipients: Collection[str]
) -> Joined:
    """The thread that a new message joins by its name, or begins. `recipients` are addresses; none
    when it is for everyone."""
    alone = sender if threads.is_alone(sender, recipients) else None
    if name == message_id:
        return Joined(message_id, name, Thread(alone=alone))
    others = [one for one in recipients if one != sender]
    found, closed = [], False
    for thread_id, thread in messages.threads_named(ctx.db, name):
        spoke = messages.spoke(ctx.db, thread_id, sender)
        if spoke or messages.was_sent(ctx.db, thread_id, sender):
            shared = sum(_is_party(ctx, thread_id, one) for one in others)
            found.append(Candidate(thread_id, thread, spoke, shared))
        elif thread_id == name:
            closed = True
    chosen = threads.chosen(found, name, len(others), alone)
    if chosen is None:
        return Joined(message_id, name, Thread(alone=alone), closed)
    return Joined(chosen.id, name, chosen.thread)


def _is_party(ctx: Context, thread_id: str, address: str) -> bool:
    return messages.spoke(ctx.db, thread_id, address) or messages.was_sent(
        ctx.db, thread_id, address
    )


def spoken(ctx: Context, joined: Joined, message: MessageRow) -> None:
    """Enter a new message of a thread as its sender's."""
    sender = identity(message.from_agent)
    if joined.id == message.id:
        messages.put_thread(ctx.db, joined.id, joined.name, joined.thread)
    party = messages.party(ctx.db, joined.id, sender)
    messages.put_party(ctx.db, joined.id, sender, threads.spoken(party, message.hop))


def heard(ctx: Context, thread_id: str, message: MessageRow, address: str) -> None:
    """Enter that a message has gone to a recipient, who answers it by what it says next."""
    if address != identity(message.from_agent):
        messages.put_heard(ctx.db, thread_id, address, message.hop)
