"""GET /events: every change as a server-sent event, resumable (design §3, §6)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import NamedTuple, cast

import anyio
import orjson
from sse_starlette import ServerSentEvent

from schemas.acp import ACPPolicy, ACPPriority
from schemas.base import iso, present
from server.auth.authenticator import Caller
from server.domain.acp import policy
from server.domain.errors import Forbidden, InvalidInput
from server.store import changes, messages
from server.store.changes import Change
from server.store.database import Database
from server.util.wait_first import first

PAGE = 100
CHECK_SECONDS = 15.0
"""A quiet stream looks this often whether its caller may still read it."""
KINDS = frozenset(
    {"project", "repo", "contract", "context", "file", "file_request", "peer", "conflict"}
)
"""The entities of changes that a stream carries unless asked otherwise."""
MESSAGE = "message"
"""What happens to mail is its parties' business, and a human's who audits what is open to it."""


def kinds_of(text: str | None, caller: Caller) -> frozenset[str] | None:
    """The kinds of `?kind=`, separated by commas.

    Raises InvalidInput for one that there is not, and Forbidden for one that is for humans only.
    """
    if not text:
        return None
    kinds = frozenset(text.split(","))
    unknown = sorted(kinds - KINDS - {MESSAGE})
    if unknown:
        raise InvalidInput(
            f"kind: there is no {unknown[0][:100]!r} among others; there are "
            f"{', '.join(sorted(KINDS | {MESSAGE}))}, and mail by itself"
        )
    if MESSAGE in kinds and not caller.human:
        raise Forbidden(
            "kind: what happens to messages is shown to a human's key; your own mail is kind=mail",
            reason="not_human",
        )
    return kinds


class Filter(NamedTuple):
    """Which changes a stream carries; None is all."""

    project_id: str | None
    kinds: frozenset[str] | None
    caller: Caller

    def takes(self, change: Change) -> bool:
        """Whether the stream carries this change, and its caller may read it."""
        only = self.caller.projects
        if only is not None and change.project_id not in only:
            return False
        if self.project_id is not None and change.project_id != self.project_id:
            return False
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
            if filter.takes(change) and _may_be_shown(database, change):
                # Whoever reads slowly may have been revoked since the last one.
                check_still()
                yield event(change, epoch)
        if len(page) < PAGE:
            await first(next_commit, stopping, seconds=CHECK_SECONDS)
        else:
            # A filter may pass over page after page: others get their turn in between.
            await asyncio.sleep(0)


def _may_be_shown(database: Database, change: Change) -> bool:
    if change.entity != MESSAGE:
        return True
    found = database.read(lambda db: messages.find(db, change.entity_id))
    return found is not None and policy.is_open_to_humans(
        ACPPolicy.model_validate_json(found.policy_json), cast(ACPPriority, found.priority)
    )


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
        orjson.dumps(present(data)).decode(), event=change.entity, id=f"{epoch}:{change.seq}"
    )
