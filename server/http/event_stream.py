"""GET /events: every change as a server-sent event, resumable (design §3, §6)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.base import iso, present
from server.auth.authenticator import Caller
from server.domain.activity import KINDS as KINDS
from server.domain.activity import MESSAGE as MESSAGE
from server.domain.errors import Forbidden, InvalidHeader
from server.store import changes, messages
from server.store.changes import Change
from server.store.database import Database
from server.util.wait_first import first

PAGE = 100
CHECK_SECONDS = 15.0
"""How often an idle stream checks whether its caller may still read."""
MAIL = "mail"
"""The kind that streams the caller's own mail (`server.http.mail_stream`), alone."""
ATTENTION = "attention"
"""The kind that streams what waits for the caller (`server.http.attention_stream`), alone."""
ALONE = (ATTENTION, MAIL)


def kinds_of(text: str | None, caller: Caller) -> frozenset[str] | None:
    """The comma-separated kinds of `?kind=`; None for the default kinds.

    Raises InvalidHeader for an unknown kind, and Forbidden for one that only humans may read.
    """
    if not text:
        return None
    kinds = frozenset(text.split(","))
    for alone in ALONE:
        if alone in kinds:
            raise InvalidHeader(f"kind: {alone} can't be combined with other kinds")
    unknown = sorted(kinds - KINDS - {MESSAGE})
    if unknown:
        raise InvalidHeader(
            f"kind: {unknown[0][:100]!r} is unknown; the kinds are "
            f"{', '.join(sorted(KINDS | {MESSAGE}))}, and {' or '.join(ALONE)} (alone)"
        )
    if MESSAGE in kinds and not caller.human:
        raise Forbidden(
            "kind: changes of messages need a human's key; kind=mail streams your own mail",
            reason="not_human",
        )
    return kinds


class Filter(NamedTuple):
    """The changes that a stream carries; None means all projects, and the default kinds."""

    project_id: str | None
    kinds: frozenset[str] | None
    caller: Caller

    def takes(self, change: Change) -> bool:
        """Whether the stream carries this change and its caller may read it."""
        only = self.caller.projects
        if only is not None and change.project_id not in only:
            return False
        if self.project_id is not None and change.project_id != self.project_id:
            return False
        return change.entity in (KINDS if self.kinds is None else self.kinds)


def start_of(last_event_id: str | None, epoch: str, newest: int) -> int:
    """The sequence number to continue after.

    Without an id a stream starts at the present. With an id of another epoch (a restored database)
    it starts at the beginning, so that it skips nothing. An id beyond the newest change, which a
    power cut may have rolled back, starts at the present. Raises InvalidHeader for a malformed id.
    """
    if last_event_id is None:
        return newest
    known_epoch, colon, text = last_event_id.rpartition(":")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidHeader("Last-Event-ID should be the id of an event of this stream")
    if colon and known_epoch != epoch:
        return 0
    return min(int(text), newest)


async def stream(
    database: Database,
    epoch: str,
    after: int,
    filter: Filter,
    recheck_access: Callable[[], Awaitable[None]],
    stopping: anyio.Event,
) -> AsyncIterator[ServerSentEvent]:
    """The changes after `after` that pass the filter, then each new one once it is committed.

    Ends when the node stops. Raises what `recheck_access` raises, before it sends a change that the
    caller may no longer read.
    """
    while not stopping.is_set():
        next_commit = database.next_commit
        await recheck_access()
        page = await database.read(partial(changes.after, seq=after, limit=PAGE))
        for change in page:
            after = change.seq
            if filter.takes(change) and await _may_be_shown(database, change):
                # A slow reader's key may have been revoked since the last change.
                await recheck_access()
                yield event(change, epoch)
        if len(page) < PAGE:
            await first(next_commit, stopping, seconds=CHECK_SECONDS)
        else:
            # A filter may skip many pages: other tasks get their turn in between.
            await asyncio.sleep(0)


async def _may_be_shown(database: Database, change: Change) -> bool:
    return change.entity != MESSAGE or await database.read(
        partial(messages.is_open_to_humans, message_id=change.entity_id)
    )


def event(change: Change, epoch: str) -> ServerSentEvent:
    """A change as an event, named after the entity; its id is where a reader resumes."""
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
        orjson.dumps(present(data)).decode(), event=change.entity, id=f"{epoch}:{change.seq}"
    )
