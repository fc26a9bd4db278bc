"""Finds the thread of a message on this node (acp-canonical §4, §12.5;
`server.domain.acp.threads`)."""

from collections.abc import Collection
from typing import NamedTuple

from server.domain.acp import threads
from server.domain.acp.threads import Candidate, Thread
from server.domain.agents import identity
from server.methods.base import Context
from server.store import messages
from server.store.messages import MessageRow

NOBODY = threads.ThreadParty()
"""An agent that is no party yet."""


class JoinedThread(NamedTuple):
    """A thread and its name. `closed`: the name is that of an existing thread's first message, and
    the sender is not a party to that thread."""

    id: str
    name: str
    thread: Thread
    closed: bool = False


def of(ctx: Context, message: MessageRow) -> JoinedThread:
    """The thread of a stored message."""
    thread_id = messages.thread_of(ctx.db, message.id)
    thread = messages.thread(ctx.db, thread_id) or Thread()
    return JoinedThread(thread_id, message.thread_id or message.id, thread)


def joined(
    ctx: Context, name: str, message_id: str, sender: str, recipients: Collection[str]
) -> JoinedThread:
    """The thread that a new message joins by name, or begins. `recipients` are addresses; empty
    when the message is for everyone."""
    alone = sender if threads.is_alone(sender, recipients) else None
    if name == message_id:
        return JoinedThread(message_id, name, Thread(alone=alone))
    others = [address for address in recipients if address != sender]
    candidates, closed = [], False
    for thread_id, thread in messages.threads_named(ctx.db, name):
        spoke = messages.spoke(ctx.db, thread_id, sender)
        if spoke or messages.was_sent(ctx.db, thread_id, sender):
            shared = sum(_is_party(ctx, thread_id, address) for address in others)
            candidates.append(Candidate(thread_id, thread, spoke, shared))
        elif thread_id == name:
            closed = True
    chosen = threads.chosen(candidates, name, len(others), alone)
    if chosen is None:
        return JoinedThread(message_id, name, Thread(alone=alone), closed)
    return JoinedThread(chosen.id, name, chosen.thread)


def _is_party(ctx: Context, thread_id: str, address: str) -> bool:
    return messages.spoke(ctx.db, thread_id, address) or messages.was_sent(
        ctx.db, thread_id, address
    )


def party_of(
    ctx: Context, joined: JoinedThread, message_id: str, address: str
) -> threads.ThreadParty:
    """What the sender of a new message has done in its thread. Nothing is looked up for a thread
    that the message begins."""
    if joined.id == message_id:
        return NOBODY
    return messages.party(ctx.db, joined.id, address)


def begun(ctx: Context, joined: JoinedThread, message: MessageRow) -> None:
    """Record a thread that a new message of this node begins, and that its sender has sent it."""
    messages.insert_thread(ctx.db, joined.id, joined.name, joined.thread)
    sender, party = identity(message.from_agent), threads.spoken(NOBODY, message.hop)
    messages.insert_party(ctx.db, joined.id, sender, party, message.id)
    _note_open(ctx, joined.id, message)


def spoken(ctx: Context, joined: JoinedThread, message: MessageRow) -> None:
    """Record in the thread, which it may begin, that its sender has sent this message."""
    sender = identity(message.from_agent)
    if joined.id == message.id:
        messages.put_thread(ctx.db, joined.id, joined.name, joined.thread)
    party = party_of(ctx, joined, message.id, sender)
    messages.put_party(ctx.db, joined.id, sender, threads.spoken(party, message.hop), message.id)
    _note_open(ctx, joined.id, message)


def _note_open(ctx: Context, thread_id: str, message: MessageRow) -> None:
    if messages.row_is_open_to_humans(message):
        messages.put_open(ctx.db, thread_id, message.id)


def heard(
    ctx: Context, thread_id: str, message: MessageRow, address: str, *, first: bool = False
) -> None:
    """Record in the thread that a recipient got this message, which its next message answers.
    `first`: the message has just begun the thread, and the recipient got nothing of it before."""
    if address == identity(message.from_agent):
        return
    if first:
        party = NOBODY._replace(heard_hop=message.hop)
        messages.insert_party(ctx.db, thread_id, address, party, message.id)
    else:
        messages.put_heard(ctx.db, thread_id, address, message.hop, message.id)
