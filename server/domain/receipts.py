"""Receipts as they come in: whether a runner signed them, and which facts they become (N2).

A receipt is signed by its runner, and recorded by the node that knows the runner's key. That node
signs the fact, as it signs for its agents; others believe it where it takes part in the project,
and see by the runner's own signature that nobody has edited what it found.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import ValidationError

from peers import clock
from peers.receipts import is_signed
from schemas.facts import ReceiptFact
from schemas.receipt import ProofReceipt
from schemas.verification import PartyRole
from server.domain.agents import RunnerKey, same_agent
from server.domain.contract import Facts, current_of, facts_about, ground_for_receipts, winner
from server.domain.lineage import ContractRef
from server.domain.proof import ProofProblem, problem_of


class ReceiptPlace(NamedTuple):
    """The contract that a receipt is brought to: its facts, the roles of its parties, and the names
    of the project's repos by id."""

    of: ContractRef
    facts: Facts
    roles: Mapping[str, PartyRole]
    names: Mapping[str, str]


def judged(
    place: ReceiptPlace, receipt: ProofReceipt, key: RunnerKey | None, stamp: int
) -> ReceiptFact | ProofProblem:
    """The fact that a receipt becomes when it is recorded at `stamp`, of a known one the known
    fact; or why it proves nothing. `key` is the runner's that this node knows by the receipt's
    public key."""
    ground = ground_for_receipts(place.facts, place.roles)
    work = ground.works.get(receipt.repo)
    # The node has seen the completion, so it records later, whatever the clocks are.
    completed = 0 if work is None else work.completed_at or work.stamp
    fact = fact_of(receipt, clock.after(stamp, completed))
    flaw = flaw_of(place.of.contract_id, fact)
    if flaw is not None:
        other = receipt.contract_id != place.of.contract_id
        return ProofProblem("receipt_contract" if other else "receipt_edited", flaw)
    problem = _runner_problem(place, receipt, key)
    if problem is not None:
        return problem
    known = place.facts.get((fact.kind, fact.key))
    if isinstance(known, ReceiptFact) and known.receipt == fact.receipt:
        fact = known
    problem = problem_of(ground, receipt, fact.stamp)
    if problem is None and known is not None and fact != known and winner(known, fact) == known:
        problem = ProofProblem(
            "receipt_superseded",
            "its runner has run the same command on the same commit again since",
        )
    return fact if problem is None else problem


def _runner_problem(
    place: ReceiptPlace, receipt: ProofReceipt, key: RunnerKey | None
) -> ProofProblem | None:
    """Whether the key that signed a receipt is no runner's, or not for that repo and project."""
    if key is None:
        return ProofProblem(
            "receipt_unknown_runner",
            "the key that signed it is no runner's of this node: the operator makes one with "
            "`cacp keys create --runner`",
        )
    if key.is_revoked:
        return ProofProblem("receipt_revoked_runner", f"the key of {key.agent_id} is revoked")
    if not same_agent(key.agent_id, receipt.runner):
        return ProofProblem(
            "receipt_other_runner",
            f"it is signed by the key of {key.agent_id}, and says that {receipt.runner} ran it",
        )
    repo = place.names.get(receipt.repo, receipt.repo)
    if key.repo not in ("", repo):
        return ProofProblem(
            "receipt_runner_repo", f"its runner runs for repo {key.repo}, and not for {repo}"
        )
    if key.projects is not None and place.of.project_id not in key.projects:
        return ProofProblem("receipt_runner_project", "the key of its runner is for other projects")
    return None


def fact_of(receipt: ProofReceipt, stamp: int) -> ReceiptFact:
    """The fact that a receipt becomes when it is recorded at `stamp`."""
    return ReceiptFact(
        version=receipt.version,
        digest=receipt.digest,
        stamp=stamp,
        repo_id=receipt.repo,
        agent_id=receipt.runner,
        round=receipt.round,
        receipt=receipt.wire(),
    )


def flaw_of(contract_id: str, fact: ReceiptFact) -> str | None:
    """What is wrong with a receipt, whatever it is of; None for one that its runner signed as it
    is, for this contract."""
    try:
        receipt = ProofReceipt.model_validate(fact.receipt)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        return f"it is malformed at {where or 'its top'}"
    if fact_of(receipt, fact.stamp) != fact:
        return "it says something else than the fact that carries it"
    if receipt.contract_id != contract_id:
        return f"it is of contract {receipt.contract_id}"
    if not is_signed(receipt):
        return "the signature of its runner does not match it"
    return None


def receipts_of(facts: Facts) -> list[ReceiptFact]:
    """The receipts of the current version, by round, then in the order of their records."""
    known = facts_about(facts, current_of(facts), ReceiptFact)
    return sorted(known, key=lambda fact: (fact.round, fact.stamp, fact.key))
