"""Defers what a peer sends and can't be taken in yet, within the bounds of its peer (design §7)."""

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
    "registers": {"signature": True, "repos": _REPOS},
}


SUBJECTS = {
    "contract": "contract_id",
    "packet": "packet_id",
    "file": "file_id",
    "request": "request_id",
    "project": "project_id",
}
"""What a message of a mesh node carries, and the id of that."""


def subject(params: BaseModel) -> str:
    """The id of what a message carries."""
    [found] = [
        getattr(getattr(params, what), id) for what, id in SUBJECTS.items() if hasattr(params, what)
    ]
    return str(found)


def signed_message(source: str, method: str, params: BaseModel) -> deferred.DeferredMessage:
    """A message of a mesh node. It is the same when it comes signed anew."""
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
    """Keep a message until `due`, or until what it waits `about` is here; False when its peer has
    as many deferred as it may: it is lost, and comes again by a comparison. `why` is logged."""
    found = deferred.put(ctx.db, message, reason, about, due=due, now=ctx.now)
    if found == "full":
        ctx.node.deferred_dropped["full"] += 1
        name_once("deferred_full", peer=message.source, method=message.method)
    elif found == "deferred" and reason != "project":
        log.warning(
            "deferred", peer=message.source, method=message.method, about=about or None, why=why
        )
    return found != "full"
