"""GET /events?kind=mail: an agent's mail as server-sent events (acp-canonical §10, session).

The stream is one of the recipient's sessions, like a lifecycle hook. A message is leased to it on
disk before it is sent. If it is not acknowledged before the lease ends, it is sent again, on this
stream or to another session. An event's id is the message's position in the mailbox, as in the
cursor of `acp/inbox`. A reader with Last-Event-ID gets at once what was sent after it and may be
lost.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.base import iso
from server.domain.access import check_unrestricted
from server.domain.errors import Forbidden
from server.http.event_stream import CHECK_SECONDS, MAIL, start_of
from server.methods.acp import delivery, push
from server.methods.base import CallSession, Context
from server.store import changes, mailboxes, messages, pushes
from server.store.mailboxes import Mailbox
from server.store.pushes import DuePush, PushTarget
from server.util.wait_first import first

PAGE = 20
HOLDER = "GET /events"
"""The holder of the leases of streams. The names of a hook's sessions have no spaces."""


async def begin(session: CallSession, last_event_id: str | None) -> str:
    """Prepare to stream a caller's mail. Returns the caller's address.

    Raises Forbidden while the session channel is off, and InvalidHeader for a malformed event id.
    """
    address, after = await session.read(partial(_start, last=last_event_id))
    if after is not None:
        await session.write(
            lambda ctx: pushes.release(ctx.db, address, HOLDER, after, iso(ctx.now))
        )
    return address


async def stream(
    session: CallSession,
    address: str,
    recheck_access: Callable[[], Awaitable[None]],
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """The mail that is due to an agent's sessions, then each message once it is due.

    Ends when the node stops. Raises what `recheck_access` raises, before it sends anything that the
    caller may no longer read.
    """
    target = PushTarget("session", address)
    epoch = await session.read(lambda ctx: changes.epoch(ctx.db))
    while not stopping.is_set():
        next_commit = session.database.next_commit
        await recheck_access()
        now = session.database.now()
        due = await session.read(lambda ctx: pushes.next_due_to(ctx.db, target))
        if due is None or due > now:
            wait = CHECK_SECONDS if due is None else (due - now) / 1_000_000
            await first(next_commit, stopping, seconds=min(wait, CHECK_SECONDS))
            continue
        for due_push, envelope in await session.write(partial(_lease, address=address)):
            await recheck_access()
            yield event(due_push, envelope, epoch)


def event(due_push: DuePush, envelope: dict[str, object], epoch: str) -> ServerSentEvent:
    """A message as an event. A repeated one has no id, so that the reader resumes no earlier."""
    again, seq = due_push.push.pushes > 0, due_push.box_seq
    data = {"seq": seq, "again": again, "message": envelope}
    return ServerSentEvent(
        orjson.dumps(data).decode(), event=MAIL, id=None if again else f"{epoch}:{seq}"
    )


def _start(ctx: Context, last: str | None) -> tuple[str, int | None]:
    check_unrestricted(ctx.caller.projects)
    state = delivery.capabilities_of(ctx)["session"]
    if state != "available":
        raise Forbidden(
            "Mail streaming to this caller is disabled (acp_session_injection). "
            "Use acp/inbox with wait.",
            reason="session_disabled",
            capability=state,
        )
    address = delivery.address_of(ctx)
    if last is None:
        return address, None
    box = mailboxes.box(ctx.db, address) or Mailbox()
    return address, start_of(last, changes.epoch(ctx.db), box.high_water)


def _lease(ctx: Context, address: str) -> list[tuple[DuePush, dict[str, object]]]:
    """Lease a page of due messages to streams; each with its envelope."""
    return [
        (
            due_push,
            messages.envelope(messages.find(ctx.db, due_push.message.id) or due_push.message),
        )
        for due_push in push.show(ctx, address, holder=HOLDER, limit=PAGE)
    ]
