"""Methods on receipts: record, list (N2)."""

from typing import Literal

from schemas.base import Identifier, Result, Text, Timestamp
from schemas.contract import ContractParams, ContractStatus
from schemas.facts import Digest
from schemas.receipt import ProofReceipt, ReceiptSide
from schemas.verification import VerificationPolicy


class RecordReceiptParams(ContractParams):
    receipt: ProofReceipt


class UnprovenSide(Result):
    """A side of which the version asks a receipt, and which none proves. `name` is the repo's."""

    repo_id: Identifier
    name: Identifier | None = None
    side: ReceiptSide


class RecordReceiptResult(Result):
    """`proves`: whether the receipt proves its side; not one whose outcome is another than
    `passed`, which is recorded all the same. `unproven`: what still lacks a receipt."""

    status: Literal["recorded"]
    proves: bool
    contract_status: ContractStatus
    unproven: list[UnprovenSide]


class ListReceiptsParams(ContractParams):
    pass


class ListedReceipt(Result):
    """A receipt of the current version. `problem` says why it proves nothing now, if so; `node` is
    the node that recorded it, at `recorded_at`, and vouches for its runner."""

    receipt: ProofReceipt
    name: Identifier | None = None
    """The repo's name; absent while the repo is unknown here."""
    recorded_at: Timestamp
    node: Identifier
    proves: bool
    problem: Text | None = None


class ListReceiptsResult(Result):
    """The receipts of the current version, by round, the oldest first."""

    contract_id: Identifier
    version: int
    digest: Digest
    """Of the version's content: what a receipt must be of."""
    round: int
    verification_policy: VerificationPolicy
    contract_status: ContractStatus
    receipts: list[ListedReceipt]
    unproven: list[UnprovenSide]
