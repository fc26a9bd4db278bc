"""What a probe found, or a look through a recording: the facts that a receipt is made of."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import rfc8785

ProbeResult = Literal["passed", "failed", "not_run"]
EXIT_STATUS: Mapping[ProbeResult, int] = {"passed": 0, "failed": 1, "not_run": 4}
"""The exit status of a command by what it found; 2 is wrong usage, 3 an unreachable node."""


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """A case that breaks the contract, the smallest that was found of its kind.

    `rule` names what was broken, in snake_case; `why` says what was wrong, where, and what would be
    right. `reproduce` is a command line that shows it, empty where there is none.
    """

    operation: str
    rule: str
    why: str
    reproduce: str = ""

    def output(self) -> dict[str, str]:
        return {
            "operation": self.operation,
            "rule": self.rule,
            "why": self.why,
            "reproduce": self.reproduce,
        }


@dataclass(frozen=True, slots=True)
class OperationTally:
    """How often an operation was tried, with valid and with invalid requests, and how often it was
    answered with success."""

    key: str
    valid: int
    invalid: int
    succeeded: int


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What was tried against a contract, and what broke it.

    `contract_digest` is the SHA-256, hex, of the content's canonical JSON. `unproven` says, in one
    line each, what could not be tried: an outcome with any is not passed. `started_at` is an ISO
    8601 time, `duration` is in milliseconds.
    """

    tool: str
    contract_digest: str
    seed: int | None
    tallies: tuple[OperationTally, ...]
    failures: tuple[ProbeFailure, ...]
    unproven: tuple[str, ...]
    started_at: str
    duration: int
    target: Literal["mock"] | None = None
    """What answered, where it was not the program itself."""
    skipped: tuple[str, ...] = ()
    """The keys of operations that can't be tried this way, such as a webhook by its provider."""
    unbroken: tuple[str, ...] = ()
    """The constraints that no request could break, each with its operation and place."""

    @property
    def cases(self) -> int:
        return sum(tally.valid + tally.invalid for tally in self.tallies)

    @property
    def result(self) -> ProbeResult:
        if self.failures:
            return "failed"
        return "not_run" if self.unproven or not self.cases else "passed"

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.result]

    @property
    def output_digest(self) -> str:
        """The SHA-256, hex, of the canonical JSON of `output`."""
        return hashlib.sha256(rfc8785.dumps(self.output())).hexdigest()

    def output(self) -> dict[str, Any]:
        """The outcome as JSON, as `--json` prints it."""
        return {
            "tool": self.tool,
            "result": self.result,
            "contractDigest": self.contract_digest,
            "seed": self.seed,
            "cases": self.cases,
            "operations": [
                {
                    "key": tally.key,
                    "valid": tally.valid,
                    "invalid": tally.invalid,
                    "succeeded": tally.succeeded,
                }
                for tally in self.tallies
            ],
            "failures": [failure.output() for failure in self.failures],
            "unproven": list(self.unproven),
            "startedAt": self.started_at,
            "duration": self.duration,
            "target": self.target,
            "skipped": list(self.skipped),
            "unbroken": list(self.unbroken),
        }


def not_tried(key: str) -> str:
    """That an operation can't be tried this way, so that it is not proven."""
    return f"{key}: it can't be tried this way; --allow-skipped lets the rest pass without it."


def contract_digest(content: Mapping[str, Any]) -> str:
    """The SHA-256, hex, of a content's canonical JSON (RFC 8785), to which an agreement is bound.

    Raises `rfc8785.CanonicalizationError` for content without such a form.
    """
    return hashlib.sha256(rfc8785.dumps(dict(content))).hexdigest()


def span(started: datetime, ended: datetime | None = None) -> tuple[str, int]:
    """When a run started, as ISO 8601 with six digits of fraction; and the milliseconds from then
    to its end, or to now."""
    duration = (ended or datetime.now(UTC)) - started
    return started.isoformat(timespec="microseconds"), int(duration.total_seconds() * 1000)
