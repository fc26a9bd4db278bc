"""Equivocation: a node signs different things for different nodes. It is found where these meet.

Which of the two stays is decided as for any two; here the node is only recorded and logged. Of two
nodes that got different things, one may take the other's before it has sent its own, and then the
other would never know. So nodes ask each other for their evidence (`cacp/sync/evidence`), and check
it as if it were their own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import structlog

from peers.client import ANSWER_MAX
from peers.signing import verify
from schemas.mesh import EquivocationEvidence, EvidenceParams, EvidenceResult, Signature
from server.domain.agents import same_agent
from server.domain.authorship import statement
from server.domain.equivocation import contradict, proves
from server.methods.base import Context, reads
from server.methods.sync import agent_homes
from server.methods.sync.digest import check_source
from server.store import equivocations, mesh
from server.store.equivocations import Equivocation
from server.util.log_once import name_once

TOLD_BYTES = 2 * 1024 * 1024
"""Of one result, about, unless a single piece of evidence is larger."""
ONE_BYTES = ANSWER_MAX - 1024 * 1024
"""Of a single piece of evidence, at most: no node takes a larger response."""
log = structlog.get_logger()


@reads("cacp/sync/evidence", EvidenceParams, EvidenceResult, access="sync")
def list_evidence(ctx: Context, params: EvidenceParams) -> dict[str, Any]:
    """The evidence that this node has found against nodes that contradicted themselves."""
    check_source(ctx, params.source_agent)
    proofs, last = equivocations.after(ctx.db, params.after, TOLD_BYTES, ONE_BYTES)
    evidence = [
        {
            "kind": proof.kind,
            "place": proof.place,
            "key": proof.key,
            "ours": orjson.loads(proof.ours),
            "ours_signature": orjson.loads(proof.ours_signature or ""),
            "theirs": orjson.loads(proof.theirs),
            "theirs_signature": orjson.loads(proof.theirs_signature),
        }
        for proof in proofs
    ]
    about = {item["theirs_signature"]["node"] for item in evidence}
    known = {node: mesh.node_key(ctx.db, node) for node in sorted(about)}
    keys = {node: key.public_key for node, key in known.items() if key is not None}
    return {"evidence": evidence, "keys": keys, "last": last}


def take(ctx: Context, source: str, result: EvidenceResult) -> None:
    """Keep the evidence of a peer, checked as if it had been found here."""
    ctx = replace(ctx, origin=source)
    for evidence in result.evidence:
        by = evidence.theirs_signature
        if problem := _problem(ctx, evidence, result.keys):
            name_once(
                "evidence_refused", peer=source, node=by.node, kind=evidence.kind, reason=problem
            )
            continue
        at = (evidence.place, evidence.key)
        kept = evidence.ours_signature.model_dump_json()
        _keep(ctx, by.node, evidence.kind, at, (evidence.ours, kept), (evidence.theirs, by))


def _problem(
    ctx: Context, evidence: EquivocationEvidence, introduced: Mapping[str, str]
) -> str | None:
    """Why evidence proves nothing here; None if it does."""
    node = evidence.theirs_signature.node
    if not same_agent(evidence.ours_signature.node, node):
        return "the two statements are signed by different nodes"
    if not proves(evidence.kind, (evidence.place, evidence.key), evidence.ours, evidence.theirs):
        return "an honest node could sign both"
    public = agent_homes.key_of(ctx, node, mesh.node_key(ctx.db, node), introduced)
    if public is None:
        return f"the public key of {node} is unknown"
    for body, by in (
        (evidence.ours, evidence.ours_signature),
        (evidence.theirs, evidence.theirs_signature),
    ):
        if not verify(public, statement(evidence.kind, evidence.place, body), by.value, by.path):
            return f"a signature does not match the key of {node}"
    return None


def name_two_faced(
    ctx: Context,
    kind: str,
    place: tuple[str, str],
    known: tuple[dict[str, Any], str | None],
    sent: tuple[dict[str, Any], Signature],
    holds: Callable[[dict[str, Any], Signature], bool],
) -> None:
    """Keep what is known here and what was sent as evidence, if one node signed both and no honest
    node could. `place` is where they are, and their key there; `holds` checks a signature.

    What is known here is checked too: a disk may have changed it. Nothing can be proved about what
    this node wrote itself, for its own signatures are not kept.
    """
    (body, kept), (other, by) = known, sent
    if kept is None or not contradict(kind, body, other):
        return
    before = Signature.model_validate_json(kept)
    if not same_agent(before.node, by.node) or not holds(other, by) or not holds(body, before):
        return
    _keep(ctx, by.node, kind, place, (body, kept), sent)


def _keep(
    ctx: Context,
    node: str,
    kind: str,
    at: tuple[str, str],
    known: tuple[dict[str, Any], str],
    sent: tuple[dict[str, Any], Signature],
) -> None:
    equivocation = Equivocation(
        node,
        kind,
        *at,
        orjson.dumps(known[0]).decode(),
        known[1],
        orjson.dumps(sent[0]).decode(),
        sent[1].model_dump_json(),
        ctx.now,
    )
    if equivocations.record(ctx.db, equivocation):
        log.warning("equivocation", node=node, kind=kind, place=at[0], key=at[1])
        project = at[0] if kind in ("packet", "file", "file_request", "header", "repo") else None
        ctx.record("conflict", at[1], project, "equivocation")
