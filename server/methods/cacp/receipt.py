"""cacp/receipt/*: what runners have found of a contract's implementations (N2)."""

from collections.abc import Mapping
from typing import Any

from schemas.base import iso, present
from schemas.contract import ContractParams
from schemas.facts import ReceiptFact
from schemas.receipt import ProofReceipt
from schemas.receipt_calls import (
    ListReceiptsParams,
    ListReceiptsResult,
    RecordReceiptParams,
    RecordReceiptResult,
)
from schemas.verification import PartyRole
from server.domain import contract as domain
from server.domain.authorship import signer_of
from server.domain.contract import Facts
from server.domain.errors import Conflict, Forbidden
from server.domain.lineage import ContractRef
from server.domain.proof import ProofProblem, problem_of
from server.domain.receipts import ReceiptPlace, judged, receipts_of
from server.methods.base import Context, open_project, reads, writes
from server.methods.cacp.authority import has_standing
from server.methods.cacp.contract import no_contract
from server.store import contracts, keys
from server.store.contracts import ContractHeader
from server.store.projects import Membership

OF_RUNNER = frozenset(
    {
        "receipt_unknown_runner",
        "receipt_revoked_runner",
        "receipt_other_runner",
        "receipt_runner_repo",
        "receipt_runner_project",
    }
)
"""Reasons that the key of a receipt has no right to it."""


@writes("cacp/receipt/record", RecordReceiptParams, RecordReceiptResult, access="record")
def record(ctx: Context, params: RecordReceiptParams) -> dict[str, Any]:
    """Record a runner's receipt of a contract. Whoever brings it, what counts is the signature of a
    runner whose key the operator of this node has made (`cacp keys create --runner`). A receipt
    that would prove nothing if it had passed is refused, with the reason."""
    project, header, facts = _open(ctx, params)
    fact = receipt_fact(ctx, params, project, header, facts, params.receipt)
    joined = add_receipt(ctx, params, header, facts, fact)
    ground = domain.ground_for_receipts(joined, _roles(project, header, joined))
    passed = params.receipt.outcome == "passed"
    return {
        "status": "recorded",
        "proves": passed and problem_of(ground, params.receipt, fact.stamp) is None,
        "contractStatus": domain.status_of(joined),
        "unproven": unproven_of(joined, names_of(project)),
    }


@reads("cacp/receipt/list", ListReceiptsParams, ListReceiptsResult, wide=True)
def list_(ctx: Context, params: ListReceiptsParams) -> dict[str, Any]:
    """List the receipts of a contract's current version, whether each proves its side, and what
    still lacks one."""
    project, header, facts = _open(ctx, params)
    current = domain.current_of(facts)
    return {
        "contractId": params.contract_id,
        "version": current.version,
        "digest": current.digest,
        "round": domain.round_of(facts, current),
        "verificationPolicy": current.verification or "word",
        "contractStatus": domain.status_of(facts),
        "receipts": shown_receipts(ctx, params.contract_id, project, header, facts),
        "unproven": unproven_of(facts, names_of(project)),
    }


def shown_receipts(
    ctx: Context, contract_id: str, project: Membership, header: ContractHeader, facts: Facts
) -> list[dict[str, Any]]:
    """The ListedReceipt objects of the current version."""
    ground = domain.ground_for_receipts(facts, _roles(project, header, facts))
    names = names_of(project)
    shown = []
    for fact in receipts_of(facts):
        receipt = ProofReceipt.model_validate(fact.receipt)
        problem = problem_of(ground, receipt, fact.stamp)
        kept = contracts.signature_of(ctx.db, contract_id, (fact.kind, fact.key))
        listed = {
            "receipt": fact.receipt,
            "name": names.get(fact.repo_id),
            "recordedAt": iso(fact.stamp),
            "node": signer_of(kept, ctx.node.agent_id),
            "proves": problem is None and receipt.outcome == "passed",
            "problem": problem and problem.why,
        }
        shown.append(present(listed))
    return shown


def receipt_fact(
    ctx: Context,
    params: ContractParams,
    project: Membership,
    header: ContractHeader,
    facts: Facts,
    receipt: ProofReceipt,
) -> ReceiptFact:
    """The fact that a receipt becomes; of a known one the known fact. Raises Forbidden when no
    runner of this node has signed it, and Conflict when it proves nothing; `reason` is the
    condition that it fails."""
    names = names_of(project)
    of = ContractRef(params.project_id, params.contract_id)
    place = ReceiptPlace(of, facts, _roles(project, header, facts), names)
    key = keys.runner(ctx.db, receipt.public_key)
    outcome = judged(place, receipt, key, ctx.stamp)
    if isinstance(outcome, ProofProblem):
        kind = Forbidden if outcome.reason in OF_RUNNER else Conflict
        raise kind(f"The receipt proves nothing: {outcome.why}", reason=outcome.reason)
    if not has_standing(ctx, params.project_id, ctx.node.agent_id):
        raise Forbidden(
            "This node takes no part in the project, so no other node would believe a receipt of "
            "it: record it at a node that does, or let an agent of this one call cacp/project/join "
            "first",
            reason="no_standing",
            projectId=params.project_id,
        )
    return outcome


def add_receipt(
    ctx: Context,
    params: ContractParams,
    header: ContractHeader,
    facts: Facts,
    fact: ReceiptFact,
) -> Facts:
    """Record a receipt; returns the facts with it. One that is known already changes nothing."""
    joined = domain.join(facts, [fact])
    if joined == facts:
        return facts
    project_id, contract_id = params.project_id, params.contract_id
    joined = dict(contracts.add(ctx.db, project_id, contract_id, header, facts, [fact]))
    ctx.record("receipt", contract_id, project_id, str(fact.receipt["outcome"]))
    status = domain.status_of(joined)
    if status != domain.status_of(facts):
        ctx.record("contract", contract_id, project_id, status)
    return joined


def names_of(project: Membership) -> dict[str, str]:
    """The names of a project's repos, by id."""
    return {member.repo_id: member.name for member in project.members}


def unproven_of(facts: Facts, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The UnprovenSide objects of the current version."""
    unproven = domain.unproven_sides(facts)
    failures = domain.failures_of(facts) if unproven else {}
    return [
        present(
            {
                "repoId": repo_id,
                "name": names.get(repo_id),
                "side": side,
                "failure": _failure(failures.get((repo_id, side))),
            }
        )
        for repo_id, side in unproven
    ]


def _failure(fact: ReceiptFact | None) -> dict[str, Any] | None:
    """The StandingFailure object of a receipt."""
    if fact is None:
        return None
    ran = fact.receipt
    return {
        "command": ran.get("command") or ran["tool"],
        "commit": ran["commit"],
        "outcome": ran["outcome"],
        "runner": ran["runner"],
        "recordedAt": iso(fact.stamp),
    }


def _open(ctx: Context, params: ContractParams) -> tuple[Membership, ContractHeader, Facts]:
    """Raises NotFound."""
    project = open_project(ctx, params.project_id)
    header = contracts.header_of(ctx.db, params.project_id, params.contract_id)
    if header is None:
        raise no_contract(params)
    return project, header, contracts.facts_of(ctx.db, params.contract_id)


def _roles(project: Membership, header: ContractHeader, facts: Facts) -> dict[str, PartyRole]:
    """The roles of the parties of the current version."""
    current = domain.current_of(facts)
    return domain.roles_in(header.type, facts, current, project.terms.repo_roles)
