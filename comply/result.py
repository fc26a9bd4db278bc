"""What a test came to (acpcomply, Sample Report)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from comply.files import Case
from comply.record import Frame, Nearest


class Verdict(StrEnum):
    """PARTIAL: an optional test of which some expectations were met. ERROR: our own fault."""

    PASS = "PASS"  # noqa: S105
    FAIL = "FAIL"
    PARTIAL = "PARTIAL"
    NA = "NA"
    ERROR = "ERROR"


class Finding(Exception):
    """The subject breaks a rule of the test."""

    def __init__(self, text: str, near: Nearest | None = None, log: str = "") -> None:
        super().__init__(text)
        self.near = near
        self.log = log


class NotApplicable(Exception):
    """Something that the test needs is not there."""


@dataclass(slots=True)
class Result:
    """One test of one subject. `reason` says why the verdict is not PASS."""

    case: Case
    verdict: Verdict
    reason: str = ""
    near: Nearest | None = None
    frames: list[Frame] = field(default_factory=list)
    log: str = ""
    seconds: float = 0.0
    waiting: bool = False
    """It has not been run, yet or at all."""
    breaches: list[str] = field(default_factory=list)
    """The rules of the protocol that single messages break, each once."""

    @property
    def key(self) -> str:
        """Names the test in baselines and reports."""
        return f"{self.case.suite}/{self.case.id}"

    @property
    def area(self) -> str:
        return self.case.test.area or self.case.test.title

    @property
    def required(self) -> bool:
        """An agent needn't offer everything, but what it says must be right."""
        return self.case.test.severity == "required" or bool(self.breaches)

    @property
    def bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.PARTIAL)


def not_run(case: Case) -> Result:
    """The place of a test's result until it is there."""
    return Result(case, Verdict.NA, "not run", waiting=True)


@dataclass(slots=True)
class Subject:
    """An agent or node, what it says of itself, and how its tests ended."""

    name: str
    facts: dict[str, str]
    results: list[Result]
    seconds: float = 0.0
    """How long its tests took together, several at a time."""
    problem: str = ""
    """Why it was not tested, or not to the end."""

    def stop(self, problem: str) -> None:
        """Nothing more is tested of it."""
        self.problem = problem
        for result in self.results:
            if result.waiting:
                result.reason = f"not run: {problem}"

    @property
    def stray(self) -> list[str]:
        """The tests in which it wrote lines to stdout that are no messages."""
        return [
            result.case.id
            for result in self.results
            if any(frame.kind == "other" and not frame.sent for frame in result.frames)
        ]

    @property
    def ran(self) -> int:
        return sum(not result.waiting for result in self.results)

    def untested(self) -> dict[str, int]:
        """Why tests that were run are NA, and how many are for this reason."""
        reasons = (
            result.reason
            for result in self.results
            if result.verdict is Verdict.NA and not result.waiting
        )
        return dict(sorted(Counter(reasons).items()))

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict is verdict for result in self.results)


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the required tests. What is NA, or ERROR, has been tested by nobody."""

    required: int
    passed: int
    failed: int
    breaking: int = 0
    """Optional tests in which messages break a rule of the protocol."""

    @property
    def untested(self) -> int:
        return self.required - self.passed - self.failed

    def __str__(self) -> str:
        """
        >>> str(Tally(24, 3, 0))
        '3 of 24 pass, 21 not tested'
        """
        parts = [f"{self.passed} of {self.required} pass"]
        parts += [f"{self.failed} fail"] if self.failed else []
        parts += [f"{self.untested} not tested"] if self.untested else []
        parts += [f"{self.breaking} optional break the protocol"] if self.breaking else []
        return ", ".join(parts)


def tally(subjects: Iterable[Subject]) -> Tally:
    every = [result for _, result in results_of(subjects)]
    required = [one.verdict for one in every if one.case.test.severity == "required"]
    failed = len([one for one in required if one in (Verdict.FAIL, Verdict.PARTIAL)])
    breaking = sum(one.required and one.case.test.severity != "required" for one in every)
    return Tally(len(required), required.count(Verdict.PASS), failed, breaking)


def results_of(subjects: Iterable[Subject]) -> list[tuple[Subject, Result]]:
    return [(subject, result) for subject in subjects for result in subject.results]
