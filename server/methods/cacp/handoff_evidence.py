"""The evidence of a handoff's package, as far as this node can judge it (design-next N2).

It is judged at the receiver's node, whichever holds the handoff: that node knows the checks that
were made there, and which receipts prove something to it.
"""

from typing import Any

from schemas.base import TEXT_MAX, iso, present
from schemas.facts import ReceiptFact
from schemas.plain import one_line
from schemas.receipt import ProofReceipt
from server.domain import contract as domain
from server.domain.acp.evidence import EvidenceFinding, EvidenceProblem, RecordedCheck, finding_of
from server.domain.acp.handoff import HandoffRules, package_hash
from server.domain.agents import same_agent
from server.domain.errors import Conflict
from server.domain.proof import ProofGround, problem_of
from server.domain.receipts import receipts_of
from server.store import contracts, handoff_checks, projects
from server.store.connection import Connection

Json = dict[str, Any]


class KnownReceipts:
    """What this node knows of receipts that packages name. Each contract is read once, however
    often it is named."""

    def __init__(self, db: Connection) -> None:
        self.db = db
        self._contracts: dict[str, tuple[str | None, dict[str, Json]]] = {}

    def named(self, contract_id: str, signature: str) -> Json:
        """The NamedReceipt object."""
        if contract_id not in self._contracts:
            self._contracts[contract_id] = self._read(contract_id)
        contract, receipts = self._contracts[contract_id]
        known = receipts.get(signature)
        if known is None:
            what = "the contract" if contract is None else "such a receipt of its current version"
            known = {"outcome": "unknown", "detail": f"this node does not know {what}"}
        about = {"contractId": contract_id, "signature": signature, "contract": contract}
        return present(about | known)

    def _read(self, contract_id: str) -> tuple[str | None, dict[str, Json]]:
        """The contract's name, and what each receipt of its current version is worth, by its
        signature."""
        project_id = contracts.project_of(self.db, contract_id) or ""
        project = projects.membership(self.db, project_id)
        header = contracts.header_of(self.db, project_id, contract_id)
        if project is None or header is None:
            return None, {}
        facts = contracts.facts_of(self.db, contract_id)
        current, repo_roles = domain.current_of(facts), project.terms.repo_roles
        roles = domain.roles_in(header.type, facts, current, repo_roles)
        ground = domain.ground_for_receipts(facts, roles)
        return header.name, {
            fact.receipt["signature"]: _worth(ground, fact) for fact in receipts_of(facts)
        }


def _worth(ground: ProofGround, fact: ReceiptFact) -> Json:
    receipt = ProofReceipt.model_validate(fact.receipt)
    problem = problem_of(ground, receipt, fact.stamp)
    ran = (
        f"{receipt.outcome.replace('_', ' ')}: {receipt.command or receipt.tool} at "
        f"{receipt.commit[:12]}, by runner {receipt.runner}"
    )
    proves = problem is None and receipt.outcome == "passed"
    why = ran if problem is None else f"{ran}: {problem.why}"
    return {"outcome": "proves" if proves else "unproven", "detail": one_line(why, TEXT_MAX)}


def problem_with(known: KnownReceipts, handoff_id: str, package: Json) -> EvidenceProblem | None:
    """Why the evidence of a package doesn't hold. None if it does, and for a package that doesn't
    say that tests pass."""
    finding = _judged(known, handoff_id, package)[0]
    return None if finding is None else finding.problem


def check_holds(db: Connection, handoff_id: str, package: Json) -> None:
    """Raises Conflict unless the evidence of a package holds, where it says that tests pass."""
    problem = problem_with(KnownReceipts(db), handoff_id, package)
    if problem is not None:
        raise Conflict(
            f"This node accepts it only when its evidence holds: {problem.why}",
            reason=problem.reason,
            handoffId=handoff_id,
        )


def with_evidence(db: Connection, rules: HandoffRules, answer: Json, agent_id: str) -> Json:
    """An answer of acp/handoff to an agent, with what this node makes of the evidence if it has the
    package."""
    package, about = answer.get("package"), answer.get("handoff")
    if package is None or about is None:
        return answer
    finding, receipts, check = _judged(KnownReceipts(db), about["handoffId"], package)
    if finding is None:
        return answer
    required = rules.asks_evidence and same_agent(agent_id, about["toAgent"])
    evidence = present(
        {
            "standing": finding.standing,
            "required": required,
            "problem": finding.problem and finding.problem.why,
            "commands": _commands(package, finding, check),
            "receipts": receipts,
            "checkedBy": check and check.checked_by,
            "checkedAt": check and iso(check.at),
        }
    )
    answer = answer | {"evidence": evidence}
    if required and finding.problem and about["status"] == "proposed":
        step = str(answer.get("nextStep", "")).replace("accept, ", "", 1)
        answer["nextStep"] = f"{step} It can't be accepted yet: {finding.problem.why}.".strip()
    return answer


def _judged(
    known: KnownReceipts, handoff_id: str, package: Json
) -> tuple[EvidenceFinding | None, list[Json], RecordedCheck | None]:
    """What the evidence comes to, its receipts as NamedReceipt objects, and the last check."""
    work_state = package["work_state"]
    if work_state.get("test_status") != "passing":
        return None, [], None
    evidence = work_state.get("test_evidence") or {}
    receipts = [
        known.named(named["contract_id"], named["signature"])
        for named in evidence.get("receipts") or ()
    ]
    check = handoff_checks.last(known.db, handoff_id, package_hash(package))
    outcomes = [receipt["outcome"] for receipt in receipts]
    return finding_of(handoff_id, work_state, outcomes, check), receipts, check


def _commands(
    package: Json, finding: EvidenceFinding, check: RecordedCheck | None
) -> list[dict[str, Any]]:
    """The CheckedCommand objects."""
    commands = (package["work_state"].get("test_evidence") or {}).get("commands") or []
    shown = []
    for place, (claimed, outcome) in enumerate(zip(commands, finding.commands, strict=True)):
        run = check.commands[place] if check is not None and outcome != "unchecked" else {}
        digests = claimed.get("output_digest"), run.get("output_digest")
        command = {
            "command": claimed["command"],
            "commit": claimed["commit"],
            "outcome": outcome,
            "exitCode": run.get("exit_code"),
            "sameOutput": None if None in digests else digests[0] == digests[1],
            "detail": run.get("detail"),
        }
        shown.append(present(command))
    return shown
