"""Holds a recording of a consumer's traffic against the contracts that it uses."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.messages import WireAnswer, WireRequest, curl
from proof.mock import UNMOCKABLE, Mock
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, span

TOOL = "cacp mock check"
LISTED_MAX = 100
BASE = "http://localhost"
_OF_THE_CLIENT = frozenset(
    {"host", "user-agent", "content-length", "connection", "accept-encoding", "transfer-encoding"}
)
"""Headers that each client has of its own."""


class RecordingCheck(NamedTuple):
    """What a recording shows: of each contract, and the requests that are in none of them."""

    outcomes: list[tuple[AgreedContract, ProbeOutcome]]
    elsewhere: list[ProbeFailure]

    @property
    def exit_status(self) -> int:
        statuses = [outcome.exit_status for _, outcome in self.outcomes if outcome.cases]
        if self.elsewhere:
            return 1
        return max(statuses, default=4)


class _Counts:
    """The requests of one operation, and what was wrong with them."""

    def __init__(self) -> None:
        self.sound = self.broken = self.succeeded = 0


def check_recording(
    contracts: list[AgreedContract],
    exchanges: Iterable[tuple[WireRequest, WireAnswer]],
    started: datetime,
) -> RecordingCheck:
    """Each request is held against the contracts as they are now, whatever they were then.

    Raises what reading the recording raises.
    """
    mock = Mock(contracts, 0)
    counts: dict[tuple[str, str], _Counts] = {}
    failures: dict[str, dict[tuple[str, str, str], ProbeFailure]] = {}
    elsewhere: dict[tuple[str, str], ProbeFailure] = {}
    for request, answer in exchanges:
        mocked = mock.answer(request)
        breaches = [b for b in mocked.breaches if b.rule not in UNMOCKABLE]
        if mocked.contract is None or mocked.operation is None:
            failure = _failure(request, f"{request.method} {request.path}", breaches[0])
            elsewhere.setdefault((request.method, request.path), failure)
            continue
        name, key = mocked.contract.digest, mocked.operation
        count = counts.setdefault((name, key), _Counts())
        count.sound += not breaches
        count.broken += bool(breaches)
        count.succeeded += answer.status < 300
        for breach in breaches:
            known = failures.setdefault(name, {})
            known.setdefault((key, breach.rule, breach.where), _failure(request, key, breach))
    outcomes = [
        (contract, _outcome(contract, counts, failures.get(contract.digest, {}), started))
        for contract in contracts
    ]
    return RecordingCheck(outcomes, list(elsewhere.values())[:LISTED_MAX])


def _failure(request: WireRequest, operation: str, breach: RuleBreach) -> ProbeFailure:
    kept = tuple(header for header in request.headers if header[0].lower() not in _OF_THE_CLIENT)
    again = curl(replace(request, headers=kept), BASE)
    return ProbeFailure(operation, breach.rule, str(breach), again)


def _outcome(
    contract: AgreedContract,
    counts: dict[tuple[str, str], _Counts],
    failures: dict[tuple[str, str, str], ProbeFailure],
    started: datetime,
) -> ProbeOutcome:
    tallies = tuple(
        OperationTally(key, count.sound, count.broken, count.succeeded)
        for (digest, key), count in counts.items()
        if digest == contract.digest
    )
    unproven = () if tallies else (f"The recording has no request to {contract.title}.",)
    listed = tuple(failures.values())[:LISTED_MAX]
    return ProbeOutcome(TOOL, contract.digest, None, tallies, listed, unproven, *span(started))
