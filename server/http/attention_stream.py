"""GET /events?kind=attention: what waits for an agent, whenever that changes (design-next N1).

An event says what has opened and what has closed since the event before it. Its id names the state
of the list, so that a reader that comes back with it hears nothing if nothing has changed, and
otherwise gets the whole list.
"""

import hashlib
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.base import present
from server.domain.attention.items import Actor
from server.domain.errors import InvalidHeader
from server.http.event_stream import ATTENTION, CHECK_SECONDS
from server.methods.base import CallSession, Context
from server.methods.cacp.attention import Waiting, actor_of, items_of, waiting_for
from server.store import changes
from server.store.changes import Change
from server.util.wait_first import first

SHOWN_MAX = 20
"""Items in one event; `more` says how many it leaves out."""
PAUSE_SECONDS = 0.1
"""Between two looks at the list, so that a busy node derives it a few times a second at most."""
PAGE = 500
_OF_AGENTS = frozenset({"message", "handoff", "teamspace"})
"""The entities of no project that make items."""
_OF_ANY_PROJECT = frozenset({"repo", "conflict", "project"})
"""The entities that may give the caller a repo, or take it away, in a project it had none in."""
_ID = re.compile(r"(?:([^:]{1,100}):)?[0-9]{1,18}(?::([0-9a-f]{16}))?", re.ASCII)


class AttentionState(NamedTuple):
    """What waits for a caller after the change `seq`, the most urgent first."""

    seq: int
    who: Actor
    project_id: str | None
    waiting: dict[str, Waiting]

    @property
    def digest(self) -> str:
        """The same for the same items."""
        return hashlib.sha256(" ".join(sorted(self.waiting)).encode()).hexdigest()[:16]


def last_state(last_event_id: str | None, epoch: str) -> str | None:
    """The digest of the list that a reader knows; "" for a list that is not known here any more.
    None for a reader that begins. Raises InvalidHeader for a malformed id."""
    if last_event_id is None:
        return None
    match = _ID.fullmatch(last_event_id)
    if match is None:
        raise InvalidHeader("Last-Event-ID should be the id of an event of this stream")
    return match[2] or "" if match[1] == epoch else ""


async def begin(session: CallSession, project_id: str | None) -> AttentionState:
    """The list from which a stream starts; `project_id` leaves out other projects."""
    return await session.read_wide(partial(_state, project_id=project_id))


async def stream(
    session: CallSession,
    epoch: str,
    state: AttentionState,
    known: str | None,
    recheck_access: Callable[[], Awaitable[None]],
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """The changes of the caller's list since `state`; at once the whole list for a reader that
    knows another one. `known` is what `last_state` returns.

    Ends when the node stops. Raises what `recheck_access` raises, before it sends anything that the
    caller may no longer read.
    """
    if known is not None and known != state.digest:
        await recheck_access()
        yield await _event(session, epoch, state, state.waiting.values(), restarted=True)
    looked_at = time.monotonic()
    while not stopping.is_set():
        next_commit = session.database.next_commit
        await recheck_access()
        # Mail expires without a change, so a stream looks now and then.
        is_due = time.monotonic() - looked_at >= CHECK_SECONDS
        if not is_due and not await session.read(partial(_concerns, state=state)):
            await first(next_commit, stopping, seconds=CHECK_SECONDS)
            continue
        before, looked_at = state, time.monotonic()
        state = await begin(session, before.project_id)
        opened = [entry for id, entry in state.waiting.items() if id not in before.waiting]
        closed = [id for id in before.waiting if id not in state.waiting]
        if opened or closed:
            await recheck_access()
            yield await _event(session, epoch, state, opened, closed=closed)
        await first(stopping, seconds=PAUSE_SECONDS)


def _state(ctx: Context, project_id: str | None) -> AttentionState:
    who = actor_of(ctx)
    seq = changes.newest(ctx.db)
    waiting = sorted(waiting_for(ctx, who), key=lambda entry: entry.rank)
    chosen = (entry for entry in waiting if project_id in (None, entry.project_id))
    return AttentionState(seq, who, project_id, {entry.id: entry for entry in chosen})


def _concerns(ctx: Context, state: AttentionState) -> bool:
    """Whether any change after the state may have changed it."""
    page = changes.after(ctx.db, state.seq, PAGE)
    return len(page) == PAGE or any(_may_change(change, state.who) for change in page)


def _may_change(change: Change, who: Actor) -> bool:
    if change.project_id is None:
        return change.entity in _OF_AGENTS
    return change.project_id in who.repos or change.entity in _OF_ANY_PROJECT


async def _event(
    session: CallSession,
    epoch: str,
    state: AttentionState,
    opened: Iterable[Waiting],
    *,
    closed: list[str] | None = None,
    restarted: bool = False,
) -> ServerSentEvent:
    entries = list(opened)
    page = entries[:SHOWN_MAX]
    items = await session.read_wide(lambda ctx: items_of(ctx, page, state.who))
    waiting = state.waiting.values()
    data: dict[str, Any] = {
        "seq": state.seq,
        "restarted": restarted,
        "opened": [item.wire() for item in items],
        "more": len(entries) - len(page) or None,
        "closed": closed or [],
        "counts": Counter(entry.kind for entry in waiting),
        "total": len(waiting),
        "urgent": sum(entry.urgency == "urgent" for entry in waiting),
    }
    return ServerSentEvent(
        orjson.dumps(present(data)).decode(),
        event=ATTENTION,
        id=f"{epoch}:{state.seq}:{state.digest}",
    )
