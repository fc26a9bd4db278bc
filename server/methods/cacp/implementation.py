"""cacp/implementation/*: implementing and verifying contracts (CACP 2.0, Implementation
Methods)."""

from typing import Any

from schemas import wire
from schemas.base import iso, present
from schemas.context import AskQuestionParams
from schemas.contract import ContractParams
from schemas.facts import ImplementationFact, ReceiptFact
from schemas.implementation import (
    CompleteParams,
    CompleteResult,
    GetStatusResult,
    ReportParams,
    ReportResult,
    StartParams,
    StartResult,
    VerifyParams,
    VerifyResult,
)
from schemas.verification import VERIFIED_BY
from server.domain import contract as domain
from server.domain import contract_steps as steps
from server.domain import report_status
from server.domain.authorship import check_sendable
from server.domain.errors import InvalidInput
from server.methods.base import Context, reads, writes
from server.methods.cacp import context
from server.methods.cacp.contract import OpenContract, no_contract, open_contract
from server.methods.cacp.receipt import add_receipt, names_of, receipt_fact, unproven_of
from server.store import contracts

OUTCOMES = {"success": "verified", "failure": "failed", "partial": "partial"}


@writes("cacp/implementation/start", StartParams, StartResult)
def start(ctx: Context, params: StartParams) -> dict[str, Any]:
    """Report that you start to implement an agreed contract."""
    contract = open_contract(ctx, params)
    work = steps.implement(
        contract.facts,
        contract.who,
        "in_progress",
        ctx.stamp,
        plan=params.plan,
        files=_files(params.estimated_files),
    )
    return {
        "status": "started",
        "contractStatus": contract.apply([work]),
        "implementationId": f"{params.contract_id}:{work.repo_id}",
    }


@writes("cacp/implementation/complete", CompleteParams, CompleteResult)
def complete(ctx: Context, params: CompleteParams) -> dict[str, Any]:
    """Report that your implementation is complete; the contract is implemented when every party's
    is."""
    contract = open_contract(ctx, params)
    work = steps.implement(
        contract.facts,
        contract.who,
        "complete",
        ctx.stamp,
        files=_files(params.files),
        notes=params.notes,
        test_endpoint=params.test_endpoint,
        commit=params.commit,
    )
    status = contract.apply([work])
    shown = {"status": "complete", "contractStatus": status, "note": _commit_note(contract, work)}
    return present(shown)


@writes("cacp/implementation/verify", VerifyParams, VerifyResult)
def verify(ctx: Context, params: VerifyParams) -> dict[str, Any]:
    """Report whether the implementations work together; a failure opens a new round. Where the
    version is verified by receipts, this is recorded as an agent's word, and verifies nothing; a
    `receipt` of the result may come with it."""
    check_sendable(params.failure_details, "failureDetails")
    contract = open_contract(ctx, params)
    receipt = _brought_receipt(contract, params)
    facts = steps.verify(
        domain.join(contract.facts, [] if receipt is None else [receipt]),
        contract.who,
        params.result,
        ctx.stamp,
        notes=params.notes,
        details=params.failure_details,
    )
    if receipt is not None:
        contract.facts = add_receipt(ctx, params, contract.header, contract.facts, receipt)
    status = contract.apply(facts)
    shown: dict[str, Any] = {"status": OUTCOMES[params.result], "contractStatus": status}
    current = domain.current_of(contract.facts)
    if params.result == "success" and domain.asks_for_receipts(contract.facts, current):
        unproven = unproven_of(contract.facts, names_of(contract.project))
        shown |= {
            "status": "recorded" if unproven else "verified",
            "unproven": unproven,
            "note": f"This is recorded as your word. Version {current.version} is verified by "
            f"{VERIFIED_BY[current.verification or 'receipt']}: `cacp verify`, `cacp probe` "
            "and `cacp mock check` make one, cacp/receipt/record takes it",
        }
    return shown


def _brought_receipt(contract: OpenContract, params: VerifyParams) -> ReceiptFact | None:
    """The receipt that comes with a result. Raises InvalidInput when it says otherwise, and as
    cacp/receipt/record does."""
    receipt = params.receipt
    if receipt is None:
        return None
    if (receipt.outcome == "passed") != (params.result == "success"):
        raise InvalidInput(
            f"receipt: its outcome is {receipt.outcome}, and the result is {params.result}",
            path="receipt.outcome",
        )
    return receipt_fact(
        contract.ctx, params, contract.project, contract.header, contract.facts, receipt
    )


def _commit_note(contract: OpenContract, work: ImplementationFact) -> str | None:
    current = domain.current_of(contract.facts)
    if work.commit is not None or not domain.asks_for_receipts(contract.facts, current):
        return None
    return (
        f"Version {current.version} is verified by receipts of the commit that is complete, and "
        "you have named none: call it again with `commit`"
    )


@reads("cacp/implementation/getStatus", ContractParams, GetStatusResult, wide=True)
def get_status(ctx: Context, params: ContractParams) -> dict[str, Any]:
    """Return each party's implementation of a contract's current version."""
    if contracts.header_of(ctx.db, params.project_id, params.contract_id) is None:
        raise no_contract(params)
    facts = contracts.facts_of(ctx.db, params.contract_id)
    return {
        "contractId": params.contract_id,
        "contractStatus": domain.status_of(facts),
        "implementations": [
            present(
                {
                    "repoId": work.repo_id,
                    "agentId": work.agent_id,
                    "status": work.status,
                    "files": list(work.files),
                    "startedAt": iso(work.started_at) if work.started_at else None,
                    "completedAt": iso(work.completed_at) if work.completed_at else None,
                }
            )
            for work in domain.implementations_of(facts)
        ],
    }


@writes("cacp/implementation/report", ReportParams, ReportResult)
def report(ctx: Context, params: ReportParams) -> dict[str, Any]:
    """Take an agent's compact result text (`STATUS:ok …`) and make the call that it stands for.
    With TESTS:fail or BUILD:fail, STATUS:ok becomes needs_revision. The warnings mention that, and
    every irregularity that was accepted; ambiguous text is refused.
    """
    parsed, warnings = _parse(params.report)
    contract = open_contract(ctx, params)
    step = report_status.step_for(parsed)
    work = steps.implement(
        contract.facts,
        contract.who,
        step.status,
        ctx.stamp,
        files=step.files,
        notes=step.notes,
        commit=params.commit if step.status == "complete" else None,
    )
    result: dict[str, Any] = {
        "status": "started" if step.status == "in_progress" else step.status,
        "contractStatus": contract.apply([work]),
        "report": _report_fields(parsed),
        "warnings": [present(warning.model_dump()) for warning in warnings],
    }
    if step.question is not None:
        question = AskQuestionParams.model_construct(
            project_id=params.project_id,
            question=step.question,
            options=None,
            urgent=False,
            related_contracts=[params.contract_id],
            reply_to=None,
        )
        result["status"] = "question_asked"
        result["packetId"] = context.ask_question(ctx, question)["packetId"]
    return result


def _parse(text: str) -> wire.ParsedMessage[wire.Report]:
    try:
        parsed = wire.parse_report(text)
    except wire.WireError as error:
        raise InvalidInput(f"report: {error}", path="report") from None
    if parsed is None:
        raise InvalidInput(
            "report: has no STATUS line; `cacp wire prompt` shows the format",
            path="report",
        )
    return parsed


def _report_fields(parsed: wire.Report) -> dict[str, Any]:
    """The fields that the report has, as JSON."""
    fields = wire.to_fields(parsed).items()
    return present(
        {name: present(value) if isinstance(value, dict) else value for name, value in fields}
    )


def _files(files: list[str] | None) -> tuple[str, ...] | None:
    return tuple(files) if files else None
