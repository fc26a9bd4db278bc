"""Probes a provider: sends generated requests, and holds each answer against the contract."""

from datetime import UTC, datetime

from proof.agreed import AgreedContract
from proof.cases import Unmakeable
from proof.learned import Learned
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, span
from proof.sender import BaseUrl, Halted, ProbeSender
from proof.trial import WHY_MAX, ProbePlan, Progress, Trial
from schemas.plain import one_line

TOOL = "cacp probe"
_ORDER = ("POST", "PUT", "PATCH", "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "DELETE")
"""What makes things comes first, what removes them last."""


def probe(
    contract: AgreedContract, url: BaseUrl, sender: ProbeSender, plan: ProbePlan, progress: Progress
) -> ProbeOutcome:
    """Try each operation of a contract. What could not be tried is said in `unproven`."""
    started = datetime.now(UTC)
    base = base_path(contract, url)
    learned = Learned(contract.operations)
    tallies: list[OperationTally] = []
    failures: list[ProbeFailure] = []
    unproven: list[str] = []
    operations = sorted(contract.operations, key=lambda check: _ORDER.index(check.operation.method))
    for number, check in enumerate(operations):
        trial = Trial(check, base, sender, plan, learned, progress)
        is_halted = False
        try:
            trial.run()
            unproven += trial.unproven()
        except Unmakeable as error:
            unproven.append(f"{check.key}: {one_line(error, WHY_MAX)}.")
        except Halted as error:
            is_halted = True
            rest = ", ".join(other.key for other in operations[number:])
            unproven.append(one_line(f"Not tried to the end, for {error}: {rest}", WHY_MAX))
        tallies.append(trial.tally)
        failures += trial.failures(url.origin)
        if is_halted:
            break
    if not operations:
        unproven.append("The contract has no endpoint with a method and a path that can be called.")
    return ProbeOutcome(
        TOOL,
        contract.digest,
        plan.seed,
        tuple(tallies),
        tuple(failures),
        tuple(unproven),
        *span(started),
        "mock" if sender.saw_mock else None,
        tuple(_skipped(contract)),
    )


def base_path(contract: AgreedContract, url: BaseUrl) -> str:
    """What stands before the routes: the path of the base URL, else that of the contract's first
    server."""
    servers = contract.interface.servers
    return url.path or (servers[0] if servers else "")


def _skipped(contract: AgreedContract) -> list[str]:
    """The operations that nobody can call, such as webhooks."""
    called = {check.key for check in contract.operations}
    operations = contract.interface.operations
    return [operation.key for operation in operations if operation.key not in called]
