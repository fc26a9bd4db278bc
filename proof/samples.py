"""Holds samples of events and data models against a contract, and gives a consumer made ones."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from proof.agreed import AgreedContract
from proof.exchange import ValueCheck
from proof.messages import json_of
from proof.plain_values import drawn_values, plain_value
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome, not_tried, span
from proof.strategies import NoSuchValue, SchemaValues
from proof.unread import unread_schema
from proof.validators import Misfit
from schemas.plain import one_line

TOOL = "cacp probe"
FAILURES_MAX = 50
SHOWN_MAX = 300
LINES = (".jsonl", ".ndjson")
SUFFIXES = (".json", *LINES)


class Sample(NamedTuple):
    """A message or model as a program made it, and where it comes from."""

    name: str
    text: bytes


Run = Callable[[bytes], "CommandEnd"]
"""Runs a consumer's command with a standard input."""


class CommandEnd(NamedTuple):
    """How a command ended: its status, and the last of what it said."""

    status: int
    said: str


def messages_of(contract: AgreedContract) -> dict[str, ValueCheck]:
    """The events and models that a contract's provider makes, ready to check, by key.

    What its consumer sends, such as the messages that AsyncAPI's `receive` names, is not among
    them: the provider has no samples of it, and the consumer reads none.
    """
    checks: dict[str, ValueCheck] = {}
    for operation in contract.interface.operations:
        if operation.kind == "http":
            continue
        parts = operation.responses.values()
        emitted = [schema for part in parts for schema in part.bodies.values()]
        for schema in emitted[:1]:
            checks[operation.key] = ValueCheck(contract.interface, schema, "response")
    return checks


def sample_files(folder: Path) -> list[Path]:
    """The files of samples in a folder and those below it."""
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def samples_in(folder: Path) -> Iterator[Sample]:
    """The samples in a folder and those below it: a file each, or a line each of JSONL files.

    Raises OSError.
    """
    for path in sample_files(folder):
        name = str(path.relative_to(folder))
        if path.suffix.lower() in LINES:
            yield from lines_of(name, path.read_bytes())
        else:
            yield Sample(name, path.read_bytes())


def lines_of(name: str, text: bytes) -> Iterator[Sample]:
    """The samples in lines of JSON."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Sample(f"{name}, line {number}", line)


def check_samples(
    contract: AgreedContract, samples: Iterable[Sample], allow_skipped: bool = False
) -> ProbeOutcome:
    """Each sample must fit one of the contract's messages, and each message needs a sample."""
    started = datetime.now(UTC)
    checks = messages_of(contract)
    fitting = dict.fromkeys(checks, 0)
    stray = 0
    failures: list[ProbeFailure] = []
    for sample in samples if checks else ():
        key, misfit = _best(checks, sample)
        if misfit is None:
            fitting[key] += 1
        else:
            stray += 1
            where = f"{sample.name}{misfit.where and ', at '}{misfit.where}"
            why = one_line(f"{where}: {misfit.why}", SHOWN_MAX)
            failures.append(ProbeFailure(key, "sample_schema", why))
    tallies = [OperationTally(key, count, 0, count) for key, count in fitting.items() if count]
    if stray:
        tallies.append(OperationTally("samples that fit nothing", 0, stray, 0))
    unproven = [f"There is no sample of {key}." for key, count in fitting.items() if not count]
    unproven += _unproven(contract, checks, allow_skipped)
    return _outcome(contract, None, tallies, failures, unproven, started)


def _best(checks: Mapping[str, ValueCheck], sample: Sample) -> tuple[str, Misfit | None]:
    """The message that a sample fits, or fits best, and then what is wrong with it."""
    first = next(iter(checks))
    try:
        value = json_of(sample.text)
    except ValueError as error:
        return first, Misfit("", f"it is no JSON: {error}")
    for key, check in checks.items():
        if check.validator.accepts(value):
            return key, None
    nearest = min(checks, key=lambda key: len(checks[key].validator.misfits(value)))
    return nearest, checks[nearest].validator.misfits(value)[0]


def _unproven(
    contract: AgreedContract, checks: Mapping[str, ValueCheck], allow_skipped: bool
) -> list[str]:
    if not checks:
        return ["The contract has no event or data model that its provider makes."]
    unread = [
        f"{key}: it is unread: {why}."
        for key, check in checks.items()
        for why in unread_schema(contract.interface, check)
    ]
    return (
        unread
        if allow_skipped
        else unread + [not_tried(check.key) for check in contract.operations]
    )


def feed(
    contract: AgreedContract,
    run: Run,
    command: str,
    cases: int,
    seed: int,
    allow_skipped: bool = False,
) -> ProbeOutcome:
    """Give a consumer's command made messages, one in each line; it must end with status 0."""
    started = datetime.now(UTC)
    checks = messages_of(contract)
    tallies: list[OperationTally] = []
    failures: list[ProbeFailure] = []
    unproven = _unproven(contract, checks, allow_skipped)
    for key, check in checks.items():
        try:
            strategy = SchemaValues(check.schema).strategy()
            values = [plain_value(check.schema, seed), *drawn_values(strategy, seed, cases)]
        except NoSuchValue as error:
            why = f"no value fits its schema: {error}" if str(error) else "no value fits its schema"
            unproven.append(f"{key}: {why}.")
            continue
        except Exception as error:
            # A contract is anybody's text: what can't be made of it must not end the probe.
            why = one_line(f"{type(error).__name__}: {error}", SHOWN_MAX)
            unproven.append(f"{key}: no messages could be made: {why}.")
            continue
        lines = [json.dumps(value).encode() + b"\n" for value in values[:cases]]
        refused = _refused(run, lines)
        tallies.append(OperationTally(key, len(lines), 0, len(lines) - bool(refused)))
        if refused is not None:
            line, ended = refused
            text = line.decode().rstrip("\n")
            again = f"printf '%s' {shlex.quote(text)} | {command}"
            why = one_line(f"It ended with status {ended.status}: {ended.said}", SHOWN_MAX)
            failures.append(ProbeFailure(key, "message_refused", why, again))
    return _outcome(contract, seed, tallies, failures, unproven, started)


def _refused(run: Run, lines: list[bytes]) -> tuple[bytes, CommandEnd] | None:
    """The first line with which a command fails, and how; None if it fails with none.

    One that fails only with several of them at once is given them all.
    """
    ended = run(b"".join(lines))
    if not ended.status:
        return None
    low, high = 0, len(lines)
    # The command ends well with the first `low` lines, and not with the first `high`.
    while high - low > 1:
        middle = (low + high) // 2
        part = run(b"".join(lines[:middle]))
        if part.status:
            high, ended = middle, part
        else:
            low = middle
    alone = run(lines[low])
    return (lines[low], alone) if alone.status else (b"".join(lines[:high]), ended)


def _outcome(
    contract: AgreedContract,
    seed: int | None,
    tallies: list[OperationTally],
    failures: list[ProbeFailure],
    unproven: list[str],
    started: datetime,
) -> ProbeOutcome:
    http = [check.key for check in contract.operations]
    return ProbeOutcome(
        TOOL,
        contract.digest,
        seed,
        tuple(tallies),
        tuple(failures[:FAILURES_MAX]),
        tuple(unproven),
        *span(started),
        skipped=tuple(http),
    )


def failed_command(outcome: ProbeOutcome, ended: CommandEnd) -> ProbeFailure:
    """The failure of a command that printed samples and ended with another status than 0."""
    key = outcome.tallies[0].key if outcome.tallies else "samples"
    why = one_line(f"It ended with status {ended.status}: {ended.said}", SHOWN_MAX)
    return ProbeFailure(key, "command_failed", why)
