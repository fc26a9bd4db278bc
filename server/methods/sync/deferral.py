"""Defers messages that can't be merged yet, within the limits of each peer (design §7)."""

from typing import Any

import structlog
from pydantic import BaseModel

from server.methods.base import Context
from server.store import deferred
from server.util.log_once import name_once

log = structlog.get_logger()

_REPOS = {"__all__": {"signature": True, "claims": {"__all__": {"signature"}}}}
_SIGNED: Any = {
    "keys": True,
    "signature": True,
    "header_signature": True,
    "facts": {"__all__": {"signature"}},
    "receipts": {"facts": {"__all__": {"signature"}}},
    "registers": {"signature": True, "repos": _REPOS},
    "state": {"lifecycle": {"signature"}, "releases": {"__all__": {"signature"}}},
}


SUBJECTS = {
    "contract": "contract_id",
    "receipts": "contract_id",
    "packet": "packet_id",
    "file": "file_id",
    "request": "request_id",
    "project": "project_id",
    "state": "project_id",
}
"""The member of a message that has its entity, and the entity's id."""


def subject(params: BaseModel) -> str:
    """The id of the entity in a message."""
    [id_of] = [
        getattr(getattr(params, what), id) for what, id in SUBJECTS.items() if hasattr(params, what)
    ]
    return str(id_of)


def signed_message(source: str, method: str, params: BaseModel) -> deferred.DeferredMessage:
    """A message of a mesh peer. With new signatures it counts as the same message."""
    unsigned = params.model_dump_json(exclude=_SIGNED)
    return deferred.DeferredMessage(source, method, params.model_dump_json(by_alias=True), unsigned)


def defer(
    ctx: Context,
    message: deferred.DeferredMessage,
    reason: deferred.Reason,
    about: str,
    *,
    due: int,
    why: str = "",
) -> bool:
    """Keep a message until `due`, or until the entity `about` which it waits is here.

    Returns False if its peer has as many deferred as it may: then it is dropped, and comes again by
    a comparison. `why` is logged.
    """
    outcome = deferred.put(ctx.db, message, reason, about, due=due, now=ctx.now)
    if outcome == "full":
        ctx.node.deferred_dropped["full"] += 1
        name_once("deferred_full", peer=message.source, method=message.method)
    elif outcome == "deferred" and reason != "project":
        log.warning(
            "deferred", peer=message.source, method=message.method, about=about or None, why=why
        )
    return outcome != "full"
