"""What a test came to (acpcomply, Sample Report)."""

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

    def __init__(self, text: str, near: Nearest | None = None) -> None:
        super().__init__(text)
        self.near = near


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

    @property
    def key(self) -> str:
        """Names the test in baselines and reports."""
        return f"{self.case.suite}/{self.case.id}"

    @property
    def area(self) -> str:
        return self.case.test.area or self.case.test.title

    @property
    def required(self) -> bool:
        return self.case.test.severity == "required"

    @property
    def bad(self) -> bool:
        return self.verdict in (Verdict.FAIL, Verdict.ERROR, Verdict.PARTIAL)


@dataclass(slots=True)
class Subject:
    """An agent or node, what it says of itself, and how its tests ended."""

    name: str
    facts: dict[str, str]
    results: list[Result]
    seconds: float = 0.0
    """How long its tests took together, several at a time."""

    @property
    def stray(self) -> list[str]:
        """The tests in which it wrote lines to stdout that are no messages."""
        return [
            result.case.id
            for result in self.results
            if any(frame.kind == "other" and not frame.sent for frame in result.frames)
        ]

    def count(self, verdict: Verdict) -> int:
        return sum(result.verdict is verdict for result in self.results)


def results_of(subjects: Iterable[Subject]) -> list[tuple[Subject, Result]]:
    return [(subject, result) for subject in subjects for result in subject.results]
