"""GET /events: every change as a server-sent event, resumable (design §3, §7)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import NamedTuple

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.base import iso
from server.domain.errors import InvalidInput
from server.identity import Caller
from server.store import changes
from server.store.changes import Change
from server.store.database import Database

PAGE = 100
CHECK_SECONDS = 15.0
"""A quiet stream looks this often whether its caller may still read it."""
KINDS = frozenset(
    {"project", "repo", "contract", "context", "file", "file_request", "peer", "conflict"}
)
"""The entities of changes."""


def kinds_of(text: str | None) -> frozenset[str] | None:
    """The kinds of `?kind=`, separated by commas. Raises InvalidInput for one that there is not."""
    if not text:
        return None
    kinds = frozenset(text.split(","))
    unknown = sorted(kinds - KINDS)
    if unknown:
        raise InvalidInput(
            f"kind: there is no {unknown[0][:100]!r}; there are {', '.join(sorted(KINDS))}"
        )
    return kinds


class Filter(NamedTuple):
    """Which changes a stream carries; None is all."""

    project_id: str | None
    kinds: frozenset[str] | None
    caller: Caller

    def takes(self, change: Change) -> bool:
        """Whether the stream carries this change, and its caller may read it."""
        only = self.caller.project_id
        if only is not None and change.project_id != only:
            return False
        if self.project_id is not None and change.project_id != self.project_id:
            return False
        # Mail and handoffs are their parties' business: the stream of changes carries none.
        return change.entity in (KINDS if self.kinds is None else self.kinds)


def start_of(last_event_id: str | None, epoch: str, newest: int) -> int:
    """The sequence number to go on after.

    Without an id a stream starts now; with the id of another epoch (a restored database) at the
    beginning, so that nothing is skipped. One beyond the newest, which a power cut may have taken
    back, starts now. Raises InvalidInput for what is no event id.
    """
    if last_event_id is None:
        return newest
    known_epoch, colon, text = last_event_id.rpartition(":")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput("Last-Event-ID: not the id of an event of this stream")
    if colon and known_epoch != epoch:
        return 0
    return min(int(text), newest)


async def stream(
    database: Database,
    epoch: str,
    after: int,
    filter: Filter,
    check_still: Callable[[], None],
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """The changes after `after` that the filter takes, then each new one as it is committed.

    Ends when the node stops. Raises what `check_still` raises, before a change is sent that the
    caller may not read any more.
    """
    while not stopping.is_set():
        next_commit = database.next_commit
        check_still()
        page = database.read(partial(changes.after, seq=after, limit=PAGE))
        for change in page:
            after = change.seq
            if filter.takes(change):
                yield event(change, epoch)
        if len(page) < PAGE:
            await _first(next_commit, stopping)
        else:
            # A filter may pass over page after page: others get their turn in between.
            await asyncio.sleep(0)


async def _first(*happens: asyncio.Event | anyio.Event) -> None:
    """Wait until one of them happens, but no longer than a caller is taken to be the same."""
    waits = [asyncio.ensure_future(one.wait()) for one in happens]
    try:
        await asyncio.wait(waits, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def event(change: Change, epoch: str) -> ServerSentEvent:
    """A change as an event: its kind is the entity's, its id is where to resume."""
    data = {
        "seq": change.seq,
        "at": iso(change.at),
        "origin": change.origin,
        "actor": change.actor,
        "action": change.action,
        "entity": change.entity,
        "entityId": change.entity_id,
        "projectId": change.project_id,
        "outcome": change.outcome,
    }
    return ServerSentEvent(
        orjson.dumps(data).decode(), event=change.entity, id=f"{epoch}:{change.seq}"
    )
