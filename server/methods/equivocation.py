"""A node that says different things to different nodes is found where what it said meets.

Which of the two stays is decided as for any two, alike on every node; here it is only named.
"""

from collections.abc import Callable
from typing import Any

import orjson
import structlog

from schemas.mesh import Signature
from server.domain.agents import same_agent
from server.domain.equivocation import is_two_faced
from server.methods.base import Context
from server.store import equivocations
from server.store.equivocations import Equivocation

log = structlog.get_logger()


def name_two_faced(
    ctx: Context,
    kind: str,
    place: tuple[str, str],
    ours: tuple[dict[str, Any], str | None],
    theirs: tuple[dict[str, Any], Signature],
    holds: Callable[[dict[str, Any], Signature], bool],
) -> None:
    """Keep what is known here and what has come as evidence, if one node signed both and could not
    honestly do so. `place` is where, and the key there; `holds` checks a signature.

    What is known here is checked too: a disk may have changed it. Of what this node wrote itself no
    signature is kept, so that nothing could be proved.
    """
    (body, kept), (other, by) = ours, theirs
    if kept is None or not is_two_faced(kind, body, other):
        return
    before = Signature.model_validate_json(kept)
    if not same_agent(before.node, by.node) or not holds(other, by) or not holds(body, before):
        return
    found = Equivocation(
        by.node,
        kind,
        *place,
        orjson.dumps(body).decode(),
        kept,
        orjson.dumps(other).decode(),
        by.model_dump_json(),
        ctx.now,
    )
    if equivocations.record(ctx.db, found):
        log.warning("equivocation", node=by.node, kind=kind, place=place[0], key=place[1])
        project = place[0] if kind in ("packet", "file", "file_request", "header", "repo") else None
        ctx.record("conflict", place[1], project, "equivocation")
