"""Implementation methods: start, complete, verify, report (CACP 2.0, Implementation Methods)."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Commit, Identifier, JsonObject, Result, Strings, Text, Timestamp
from schemas.contract import (
    ContractParams,
    ContractStatus,
    ImplementationStatus,
    VerificationResult,
)
from schemas.receipt import ProofReceipt
from schemas.receipt_calls import UnprovenSide
from schemas.wire import WireWarning


class StartParams(ContractParams):
    plan: Text | None = None
    estimated_files: Strings | None = None


class StartResult(Result):
    status: Literal["started"]
    contract_status: ContractStatus
    implementation_id: Identifier


class CompleteParams(ContractParams):
    files: Strings = []
    notes: Text | None = None
    test_endpoint: Text | None = None
    commit: Commit | None = None
    """The git commit that is complete, in full: receipts count that are of it."""


class CompleteResult(Result):
    status: Literal["complete"]
    contract_status: ContractStatus
    note: Text | None = None
    """What is missing before a receipt can prove it."""


class VerifyParams(ContractParams):
    result: VerificationResult
    notes: Text | None = None
    failure_details: JsonObject | None = None
    receipt: ProofReceipt | None = None
    """A runner's receipt, as for cacp/receipt/record, of this result."""


class VerifyResult(Result):
    """`recorded`: the result is an agent's word, and the version is verified by receipts; `note`
    says so, and `unproven` what still lacks one."""

    status: Literal["verified", "failed", "partial", "recorded"]
    contract_status: ContractStatus
    note: Text | None = None
    unproven: list[UnprovenSide] | None = None


class ReportParams(ContractParams):
    """A compact result text, `STATUS:ok …`; the node makes the call that it stands for."""

    report: Annotated[str, Field(min_length=1, max_length=1_000_000)]
    commit: Commit | None = None
    """As for cacp/implementation/complete, if the report says that the work is."""


class ReportResult(Result):
    status: Literal["started", "complete", "needs_revision", "question_asked"]
    contract_status: ContractStatus
    report: JsonObject
    warnings: list[WireWarning]
    packet_id: Identifier | None = None


class ImplementationState(Result):
    repo_id: Identifier
    agent_id: Identifier
    status: ImplementationStatus
    files: Strings
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None


class GetStatusResult(Result):
    contract_id: Identifier
    contract_status: ContractStatus
    implementations: list[ImplementationState]
