"""GET /events?kind=mail: an agent's mail as server-sent events (acp-canonical §10, session).

The stream is one of the recipient's sessions, as a lifecycle hook is: what it carries is leased to
it on disk before it goes out, and comes back when it is not acknowledged before the lease ends, on
this stream or another session. An event's id is the message's place in the box, as in the cursor of
`acp/inbox`; with Last-Event-ID, what was sent after it, and perhaps lost, comes at once.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.base import iso
from server.domain.access import check_whole
from server.domain.errors import Forbidden
from server.http.event_stream import CHECK_SECONDS, start_of
from server.methods.acp import delivery, push
from server.methods.base import Context, Session
from server.store import changes, mailboxes, messages, pushes
from server.store.mailboxes import Box
from server.store.pushes import DuePush, PushTarget
from server.util.wait_first import first

KIND = "mail"
PAGE = 20
HOLDER = "GET /events"
"""Who holds the leases of streams. No session of a hook has this name: theirs have no spaces."""


async def begin(session: Session, last_event_id: str | None) -> str:
    """Make ready to stream a caller's mail; the caller's address.

    Raises Forbidden while the session channel is off, and InvalidInput for what is no event id.
    """
    address, after = session.read(partial(_start, last=last_event_id))
    if after is not None:
        await session.write(
            lambda ctx: pushes.release(ctx.db, address, HOLDER, after, iso(ctx.now))
        )
    return address


async def stream(
    session: Session, address: str, check_still: Callable[[], None], stopping: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    """The mail that is due to sessions of an agent, then what becomes due.

    Ends when the node stops. Raises what `check_still` raises, before anything is sent to a caller
    who may not read it any more.
    """
    target = PushTarget("session", address)
    epoch = session.read(lambda ctx: changes.epoch(ctx.db))
    while not stopping.is_set():
        next_commit = session.database.next_commit
        check_still()
        now = session.database.now()
        due = session.read(lambda ctx: pushes.next_due_to(ctx.db, target))
        if due is None or due > now:
            wait = CHECK_SECONDS if due is None else (due - now) / 1_000_000
            await first(next_commit, stopping, seconds=min(wait, CHECK_SECONDS))
            continue
        for one, envelope in await session.write(partial(_shown, address=address)):
            check_still()
            yield event(one, envelope, epoch)


def event(one: DuePush, envelope: dict[str, object], epoch: str) -> ServerSentEvent:
    """A message as an event. What comes back has no id, so that it does not set the reader back."""
    again = one.push.pushes > 0
    data = {"seq": one.box_seq, "again": again, "message": envelope}
    return ServerSentEvent(
        orjson.dumps(data).decode(), event=KIND, id=None if again else f"{epoch}:{one.box_seq}"
    )


def _start(ctx: Context, last: str | None) -> tuple[str, int | None]:
    check_whole(ctx.caller.projects)
    state = ctx.node.acp.capabilities["session"]
    if state != "available":
        raise Forbidden(
            "kind: this node streams no mail: its operator has not set acp_session_injection. "
            "Ask acp/inbox with wait instead",
            reason="session_disabled",
            capability=state,
        )
    address = delivery.address_of(ctx)
    if last is None:
        return address, None
    box = mailboxes.box(ctx.db, address) or Box()
    return address, start_of(last, changes.epoch(ctx.db), box.high_water)


def _shown(ctx: Context, address: str) -> list[tuple[DuePush, dict[str, object]]]:
    shown = push.show(ctx, address, holder=HOLDER, limit=PAGE)
    return [
        (one, messages.envelope(messages.find(ctx.db, one.message.id) or one.message))
        for one in shown
    ]
