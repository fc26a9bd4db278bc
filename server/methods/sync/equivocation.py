"""A node that says different things to different nodes is found where what it said meets.

Which of the two stays is decided as for any two, alike on every node; here it is only named. Of two
nodes that were told different things, the first that hears of the other's may take it before it has
told its own, and then the other would never know: so nodes ask each other for what they found
(`cacp/sync/evidence`), and check it as if they had found it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import structlog

from peers.client import ANSWER_MAX
from peers.signing import verify
from schemas.mesh import Evidence, EvidenceParams, EvidenceResult, Signature
from server.domain.agents import same_agent
from server.domain.authorship import statement
from server.domain.equivocation import is_two_faced, proves
from server.methods.base import Context, reads
from server.methods.sync import agent_homes
from server.methods.sync.digest import check_source
from server.store import equivocations, mesh
from server.store.equivocations import Equivocation
from server.util.log_once import name_once

TOLD_BYTES = 2 * 1024 * 1024
"""Of one answer, about, unless a single one is larger."""
ONE_BYTES = ANSWER_MAX - 1024 * 1024
"""Of a single one, at most: no node takes a larger answer."""
log = structlog.get_logger()


@reads("cacp/sync/evidence", EvidenceParams, EvidenceResult, access="sync")
def told(ctx: Context, params: EvidenceParams) -> dict[str, Any]:
    """What proves that nodes have contradicted themselves, as this node found it."""
    check_source(ctx, params.source_agent)
    found, last = equivocations.after(ctx.db, params.after, TOLD_BYTES, ONE_BYTES)
    evidence = [
        {
            "kind": one.kind,
            "place": one.place,
            "key": one.key,
            "ours": orjson.loads(one.ours),
            "ours_signature": orjson.loads(one.ours_signature or ""),
            "theirs": orjson.loads(one.theirs),
            "theirs_signature": orjson.loads(one.theirs_signature),
        }
        for one in found
    ]
    about = {one["theirs_signature"]["node"] for one in evidence}
    known = {node: mesh.node_key(ctx.db, node) for node in sorted(about)}
    keys = {node: key.public_key for node, key in known.items() if key is not None}
    return {"evidence": evidence, "keys": keys, "last": last}


def take(ctx: Context, source: str, told: EvidenceResult) -> None:
    """Keep what a peer has found, each checked as if it had been found here."""
    ctx = replace(ctx, origin=source)
    for one in told.evidence:
        by = one.theirs_signature
        if problem := _problem(ctx, one, told.keys):
            name_once("evidence_refused", peer=source, node=by.node, kind=one.kind, reason=problem)
            continue
        at = (one.place, one.key)
        kept = one.ours_signature.model_dump_json()
        _keep(ctx, by.node, one.kind, at, (one.ours, kept), (one.theirs, by))


def _problem(ctx: Context, one: Evidence, introduced: Mapping[str, str]) -> str | None:
    """Why it proves nothing here."""
    node = one.theirs_signature.node
    if not same_agent(one.ours_signature.node, node):
        return "two nodes have signed it"
    if not proves(one.kind, (one.place, one.key), one.ours, one.theirs):
        return "an honest node could say both"
    public = agent_homes.key_of(ctx, node, mesh.node_key(ctx.db, node), introduced)
    if public is None:
        return "nobody here knows the key of that node"
    for body, by in ((one.ours, one.ours_signature), (one.theirs, one.theirs_signature)):
        if not verify(public, statement(one.kind, one.place, body), by.value, by.path):
            return "a signature is not that of the node"
    return None


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
    _keep(ctx, by.node, kind, place, (body, kept), theirs)


def _keep(
    ctx: Context,
    node: str,
    kind: str,
    at: tuple[str, str],
    ours: tuple[dict[str, Any], str],
    theirs: tuple[dict[str, Any], Signature],
) -> None:
    found = Equivocation(
        node,
        kind,
        *at,
        orjson.dumps(ours[0]).decode(),
        ours[1],
        orjson.dumps(theirs[0]).decode(),
        theirs[1].model_dump_json(),
        ctx.now,
    )
    if equivocations.record(ctx.db, found):
        log.warning("equivocation", node=node, kind=kind, place=at[0], key=at[1])
        project = at[0] if kind in ("packet", "file", "file_request", "header", "repo") else None
        ctx.record("conflict", at[1], project, "equivocation")
