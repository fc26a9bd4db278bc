"""Results and verdicts of tests (acpcomply, Sample Report)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from comply.files import Case
from comply.record import Frame, Nearest


class Verdict(StrEnum):
    """PARTIAL: an optional test, some of whose expectations were met. ERROR: the runner or the test
    is at fault, not the subject."""

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
    """The subject or the operator does not provide what the test needs."""


@dataclass(slots=True)
class CaseResult:
    """The result of one test of one subject. `reason` says why the verdict is not PASS."""

    case: Case
    verdict: Verdict
    reason: str = ""
    near: Nearest | None = None
    frames: list[Frame] = field(default_factory=list)
    log: str = ""
    seconds: float = 0.0
    waiting: bool = False
    """The test has not been run (yet)."""
    breaches: list[str] = field(default_factory=list)
    """Protocol rules that messages of the subject broke, each once."""

    @property
    def key(self) -> str:
        """Names the test in baselines and reports."""
        return f"{self.case.suite}/{self.case.id}"

    @property
    def area(self) -> str:
        return self.case.test.area or self.case.test.title

    @property
    def required(self) -> bool:
        """An optional test counts as required once a message in it breaks the protocol."""
        return self.case.test.severity == "required" or bool(self.breaches)

    @property
    def bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.PARTIAL)


def not_run(case: Case) -> CaseResult:
    """The placeholder for a result that is not there yet."""
    return CaseResult(case, Verdict.NA, "not run", waiting=True)


@dataclass(slots=True)
class Subject:
    """An agent or node, its facts, and the results of its tests."""

    name: str
    facts: dict[str, str]
    results: list[CaseResult]
    seconds: float = 0.0
    """Wall-clock time of all its tests, several at a time."""
    problem: str = ""
    """Why it was not tested, or only in part."""
    cleanup: list[str] = field(default_factory=list)
    """What was removed of what the tests had made, and what stays; a line each."""

    def stop(self, problem: str) -> None:
        """Mark all tests that have not run as not run for this reason."""
        self.problem = problem
        for result in self.results:
            if result.waiting:
                result.reason = f"not run: {problem}"

    @property
    def stray(self) -> list[str]:
        """The tests in which it wrote lines to stdout that are not messages."""
        return [
            result.case.id
            for result in self.results
            if any(frame.kind == "other" and not frame.sent for frame in result.frames)
        ]

    @property
    def ran(self) -> int:
        return sum(not result.waiting for result in self.results)

    def untested(self) -> dict[str, int]:
        """The reasons why tests are NA, each with its number of tests."""
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
    """Counts of the required tests. NA and ERROR count as untested."""

    required: int
    passed: int
    failed: int
    breaking: int = 0
    """Optional tests in which a message breaks the protocol."""

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


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the tests applied to the subjects: those with a verdict other than NA and
    ERROR."""

    applied: int
    total: int

    @property
    def percent(self) -> int:
        """Rounded down."""
        return 100 * self.applied // self.total if self.total else 0

    def __str__(self) -> str:
        """
        >>> str(Coverage(41, 120))
        '41 of 120 tests applied (34 %)'
        """
        return f"{self.applied} of {self.total} tests applied ({self.percent} %)"


def coverage(subjects: Iterable[Subject]) -> Coverage:
    verdicts = [result.verdict for _, result in results_of(subjects)]
    missing = verdicts.count(Verdict.NA) + verdicts.count(Verdict.ERROR)
    return Coverage(len(verdicts) - missing, len(verdicts))


def tally(subjects: Iterable[Subject]) -> Tally:
    every = [result for _, result in results_of(subjects)]
    required = [result.verdict for result in every if result.case.test.severity == "required"]
    failed = len([verdict for verdict in required if verdict in (Verdict.FAIL, Verdict.PARTIAL)])
    breaking = sum(result.required and result.case.test.severity != "required" for result in every)
    return Tally(len(required), required.count(Verdict.PASS), failed, breaking)


def results_of(subjects: Iterable[Subject]) -> list[tuple[Subject, CaseResult]]:
    return [(subject, result) for subject in subjects for result in subject.results]
