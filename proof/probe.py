"""Probes a provider: sends generated requests, and holds each answer against the contract."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from proof.agreed import AgreedContract
from proof.cases import Requests, Unmakeable
from proof.endpoint_subject import EndpointSubject
from proof.exchange import OperationCheck
from proof.graphql_http import PATH, graphql_schema
from proof.graphql_subject import GraphqlSubject, root_fields
from proof.learned import Learned
from proof.messages import encoded_path
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, not_tried, span
from proof.probe_subject import ProbeSubject
from proof.sender import BaseUrl, Halted, ProbeSender
from proof.time_limit import halting_after
from proof.trial import WHY_MAX, ProbePlan, Progress, Trial
from schemas.plain import one_line

TOOL = "cacp probe"
ODD_MAX = 200
_ORDER = ("POST", "PUT", "PATCH", "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "DELETE")
"""What makes things comes first, what removes them last."""


def probe(
    contract: AgreedContract, url: BaseUrl, sender: ProbeSender, plan: ProbePlan, progress: Progress
) -> ProbeOutcome:
    """Try each operation of a contract. What could not be tried is said in `unproven`."""
    started = datetime.now(UTC)
    tallies: list[OperationTally] = []
    failures: list[ProbeFailure] = []
    unproven: list[str] = []
    unbroken: list[str] = []
    subjects = dict(_subjects(contract, url, plan))
    for number, (key, subject_of) in enumerate(subjects.items()):
        trial, is_halted = None, False
        try:
            with halting_after(sender.seconds_left()):
                trial = Trial(subject_of(), sender, plan, progress)
                trial.run()
            unproven += trial.unproven()
        except Unmakeable as error:
            unproven.append(f"{key}: {one_line(error, WHY_MAX)}.")
        except Halted as error:
            is_halted = True
            rest = ", ".join([*subjects][number:])
            unproven.append(one_line(f"Not tried to the end, for {error}: {rest}", WHY_MAX))
        except Exception as error:
            # A contract is anybody's text: what can't be made of it must not end the probe.
            why = one_line(f"{type(error).__name__}: {error}", ODD_MAX)
            unproven.append(f"{key}: it could not be tried to the end: {why}.")
        if trial is not None:
            tallies.append(trial.tally)
            failures += trial.failures(url.origin)
            unbroken += [f"{key}: {constraint}" for constraint in trial.unbroken()]
        if is_halted:
            break
    if not subjects:
        unproven.append("The contract has nothing to call: no method and path, and no GraphQL.")
    elif not unproven and not failures and not any(tally.succeeded for tally in tallies):
        unproven.append("No request was answered with success.")
    skipped = _skipped(contract)
    if subjects and not plan.allow_skipped:
        unproven += map(not_tried, skipped)
    return ProbeOutcome(
        TOOL,
        contract.digest,
        plan.seed,
        tuple(tallies),
        tuple(failures),
        tuple(unproven),
        *span(started),
        "mock" if sender.saw_mock else None,
        tuple(skipped),
        tuple(unbroken),
    )


def parameter_names(contract: AgreedContract) -> list[str]:
    """The names of the parameters that requests to a contract's operations have."""
    checks = contract.operations
    return sorted({parameter.name for c in checks for parameter, _ in c.request.parameters})


def _subjects(
    contract: AgreedContract, url: BaseUrl, plan: ProbePlan
) -> Iterator[tuple[str, Callable[[], ProbeSubject]]]:
    """What can be tried of a contract, by key, in the order of trials. Each is made when its turn
    comes, from what answers told until then; to make one may raise `Unmakeable`."""
    schema = graphql_schema(contract)
    if schema is not None:
        for root, name in root_fields(schema):
            yield f"{root} {name}", partial(GraphqlSubject, schema, root, name, url.path or PATH)
    base = base_path(contract, url)
    learned = Learned(contract.operations)
    for check in sorted(contract.operations, key=lambda c: _ORDER.index(c.operation.method)):
        yield check.key, partial(_endpoint, check, base, learned, plan)


def _endpoint(
    check: OperationCheck, base: str, learned: Learned, plan: ProbePlan
) -> EndpointSubject:
    if check.is_endless:
        raise Unmakeable("its schemas refer to so many others that no value is held against them")
    requests = Requests(check, base, learned.known(check), plan.values)
    return EndpointSubject(check, requests, learned)


def base_path(contract: AgreedContract, url: BaseUrl) -> str:
    """What stands before the routes: the path of the base URL, else that of the contract's first
    server."""
    servers = contract.interface.servers
    return encoded_path(url.path or (servers[0] if servers else ""))


def _skipped(contract: AgreedContract) -> list[str]:
    """The operations that nobody can call, such as webhooks."""
    called = {check.key for check in contract.operations}
    operations = contract.interface.operations
    keys = [operation.key for operation in operations if operation.key not in called]
    schema = graphql_schema(contract)
    if schema is not None and schema.subscription_type is not None:
        keys += [f"subscription {name}" for name in schema.subscription_type.fields]
    return keys
