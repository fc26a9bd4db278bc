"""Methods on receipts: record, list (N2)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from schemas.base import Commit, Identifier, Result, Text, Timestamp
from schemas.contract import ContractParams, ContractStatus
from schemas.facts import Digest
from schemas.receipt import ProofReceipt, ReceiptOutcome, ReceiptSide
from schemas.verification import VerificationPolicy


class RecordReceiptParams(ContractParams):
    receipt: ProofReceipt


class StandingFailure(Result):
    """What a runner found that stands against a side, whatever else has passed: until the same
    runner has run the same command and it passes, or the repo declares another commit complete."""

    command: Text
    commit: Commit
    outcome: ReceiptOutcome
    runner: Identifier
    recorded_at: Timestamp


class UnprovenSide(Result):
    """A side of which the version asks a receipt, and which none proves, or a `failure` stands
    against. `name` is the repo's."""

    repo_id: Identifier
    name: Identifier | None = None
    side: ReceiptSide
    failure: StandingFailure | None = None


def lack_of(side: Mapping[str, Any], shown: Callable[[str], str]) -> str:
    """What an UnprovenSide lacks, in words. `shown` makes a text safe to show where it stands.

    >>> lack_of({"repoId": "r-1", "side": "provider"}, str)
    'no receipt proves it'
    """
    failure = side.get("failure")
    if failure is None:
        return "no receipt proves it"
    return (
        f"a failure stands against it: {shown(failure['command'])} at {failure['commit'][:12]}, by "
        f"runner {shown(failure['runner'])}: run the same again until it passes, or declare "
        "another commit complete"
    )


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
