"""Holds a recording of a consumer's traffic against the contracts that it uses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.hidden_values import HIDDEN, hidden_places, is_of
from proof.messages import WireRequest, curl
from proof.mock import GRAPHQL, OVERSIZED, UNMOCKABLE, Mock, Mocked
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, span
from proof.recording import Completions, RecordedExchange

TOOL = "cacp mock check"
LISTED_MAX = 100
BASE = "http://localhost"
_OF_THE_CLIENT = frozenset(
    {"host", "user-agent", "content-length", "connection", "accept-encoding", "transfer-encoding"}
)
"""Headers that each client has of its own."""


class RecordingCheck(NamedTuple):
    """What a recording shows: of each contract, and the requests that are in none of them.

    An outcome has the time of the contract's own exchanges. `stale` are the digests of contracts
    that the mock answered by another content than the one that the requests are held against.
    `completions` has what the mock knew then of the completions, by the content's digest.
    """

    outcomes: list[tuple[AgreedContract, ProbeOutcome]]
    elsewhere: list[ProbeFailure]
    stale: frozenset[str]
    completions: Mapping[str, list[Completions | None]]

    @property
    def exit_status(self) -> int:
        statuses = [outcome.exit_status for _, outcome in self.outcomes if outcome.cases]
        if self.elsewhere or 1 in statuses:
            return 1
        return max(statuses, default=4)


def unused(contract: AgreedContract, outcome: ProbeOutcome) -> list[str]:
    """The keys of the operations of a contract that a recording has no request to."""
    used = {tally.key for tally in outcome.tallies}
    if GRAPHQL in used:
        return []
    return [check.key for check in contract.operations if check.key not in used]


class _Counts:
    """The requests of one operation, and what was wrong with them."""

    def __init__(self) -> None:
        self.sound = self.broken = self.succeeded = 0


@dataclass
class _Heard:
    """What a recording has of one contract: its operations by key, what was wrong, once for each
    cause, and when the exchanges were."""

    counts: dict[str, _Counts] = field(default_factory=dict)
    failures: dict[tuple[str, str, str], ProbeFailure] = field(default_factory=dict)
    times: list[datetime] = field(default_factory=list)
    completions: list[Completions | None] = field(default_factory=list)

    def add(self, exchange: RecordedExchange, key: str, breaches: list[RuleBreach]) -> None:
        count = self.counts.setdefault(key, _Counts())
        count.sound += not breaches
        count.broken += bool(breaches)
        count.succeeded += 200 <= exchange.answer.status < 300
        for breach in breaches:
            failure = _failure(exchange.request, key, breach)
            self.failures.setdefault((key, breach.rule, breach.where), failure)
        times = (*self.times, exchange.at)
        self.times = [min(times), max(times)]
        if exchange.completions not in self.completions:
            self.completions.append(exchange.completions)


def check_recording(
    contracts: list[AgreedContract], exchanges: Iterable[RecordedExchange], now: datetime
) -> RecordingCheck:
    """Each request is held against the contracts as they are now, whatever they were then.

    Raises what reading the recording raises.
    """
    mock = Mock(contracts, 0)
    heard: dict[str, _Heard] = {}
    elsewhere: dict[tuple[str, str], ProbeFailure] = {}
    stale: set[str] = set()
    for exchange in exchanges:
        request = exchange.request
        mocked = mock.answer(request)
        breaches = _breaches(exchange, mocked)
        if mocked.contract is None or mocked.operation is None:
            breach = (breaches or mocked.breaches)[0]
            failure = _failure(request, f"{request.method} {request.path}", breach)
            elsewhere.setdefault((request.method, request.path), failure)
            continue
        digest = mocked.contract.digest
        heard.setdefault(digest, _Heard()).add(exchange, mocked.operation, breaches)
        if exchange.digest != digest and not _is_oversized(exchange):
            stale.add(digest)
    outcomes = [
        (contract, _outcome(contract, heard.get(contract.digest, _Heard()), now))
        for contract in contracts
    ]
    completions = {digest: each.completions for digest, each in heard.items()}
    listed = list(elsewhere.values())[:LISTED_MAX]
    return RecordingCheck(outcomes, listed, frozenset(stale), completions)


def _breaches(exchange: RecordedExchange, mocked: Mocked) -> list[RuleBreach]:
    """What is wrong with a recorded request: by what the mock finds now, and of what the recording
    hides by what it found then."""
    if _is_oversized(exchange):
        return list(exchange.breaches)
    hidden = hidden_places(exchange.request)
    now = [b for b in mocked.breaches if not (is_of(b, hidden) or f'"{HIDDEN}"' in b.why)]
    then = [breach for breach in exchange.breaches if is_of(breach, hidden)]
    return [breach for breach in now + then if breach.rule not in UNMOCKABLE]


def _is_oversized(exchange: RecordedExchange) -> bool:
    """Whether the mock refused the request before it had read it."""
    return any(breach.rule == OVERSIZED for breach in exchange.breaches)


def _failure(request: WireRequest, operation: str, breach: RuleBreach) -> ProbeFailure:
    kept = tuple(header for header in request.headers if header[0].lower() not in _OF_THE_CLIENT)
    again = curl(replace(request, headers=kept), BASE)
    return ProbeFailure(operation, breach.rule, str(breach), again)


def _outcome(contract: AgreedContract, heard: _Heard, now: datetime) -> ProbeOutcome:
    tallies = tuple(
        OperationTally(key, count.sound, count.broken, count.succeeded)
        for key, count in heard.counts.items()
    )
    unproven: tuple[str, ...] = ()
    if not tallies:
        unproven = (f"The recording has no request to {contract.title}.",)
    elif not any(tally.succeeded for tally in tallies):
        why = "was answered with success, so it shows nothing of its use"
        unproven = (f"No recorded request to {contract.title} {why}.",)
    listed = tuple(heard.failures.values())[:LISTED_MAX]
    first, last = heard.times or (now, now)
    when = span(first, last)
    return ProbeOutcome(
        TOOL, contract.digest, None, tallies, listed, unproven, *when, target="mock"
    )
