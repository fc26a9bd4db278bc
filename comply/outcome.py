"""The outcome of a run: its exit status and the lines that explain it."""

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from comply.baseline import excused, failures, gaps, stale
from comply.result import Coverage, Subject, Verdict, coverage, results_of, tally

PASSED, FAILED, HARNESS, UNTESTED, THIN = 0, 1, 3, 4, 5
SIGNALLED = 128
MIN_COVERAGE = 33
"""Percent: a run of which fewer tests applied proves little, and does not count as passed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is the exit status of `cacp comply run`; `errors` and `untested` are lines."""

    status: int
    failures: list[str]
    stale: dict[str, str]
    errors: list[str]
    untested: str = ""
    coverage: str = ""
    """How many tests applied, and whether these are too few; empty if none did."""


def judge(
    subjects: Sequence[Subject],
    known: frozenset[str],
    tests: Collection[str] = (),
    signalled: signal.Signals | None = None,
    min_coverage: int = MIN_COVERAGE,
) -> Outcome:
    """A run fails for a required test that fails and is not in the baseline, or for a stale entry.

    Without a failure, it passes only if every required test was tested or is a known gap. `tests`
    are the keys of all existing tests, run or not. It does not pass either if less than
    `min_coverage` percent of its tests applied, not counting the known gaps.
    """
    failed, old = failures(known, subjects), stale(known, subjects, tests)
    errors = [f"{subject.name}: {subject.problem}" for subject in subjects if subject.problem]
    errors += [
        f"{subject.name}: {result.key}: {result.reason}"
        for subject, result in results_of(subjects)
        if result.verdict is Verdict.ERROR
    ]
    untested = _untested(subjects, known)
    status = HARNESS if errors else FAILED if failed or old else UNTESTED if untested else PASSED
    covered = coverage(subjects)
    line = f"coverage: {covered}" if covered.applied else ""
    if line and not _is_enough(subjects, known, covered, min_coverage):
        status = status or THIN
        line += f", which proves little: --min-coverage is {min_coverage} %"
    status = SIGNALLED + signalled if signalled else status
    return Outcome(status, failed, old, errors, untested, line)


def _is_enough(
    subjects: Sequence[Subject], known: frozenset[str], covered: Coverage, percent: int
) -> bool:
    """Whether enough tests applied, without the gaps that the baseline names."""
    named = sum(
        result.verdict is Verdict.NA and excused(known, result)
        for _, result in results_of(subjects)
    )
    return Coverage(covered.applied, covered.total - named).percent >= percent


def _untested(subjects: Sequence[Subject], known: frozenset[str]) -> str:
    """What was not tested, in a line; empty when nothing is missing, or when every subject has a
    problem that explains it."""
    results = results_of(subjects)
    if subjects and all(subject.problem for subject in subjects):
        return ""
    if all(result.verdict in (Verdict.NA, Verdict.ERROR) for _, result in results):
        return "nothing was tested"
    missing = gaps(known, subjects)
    return f"{len(missing)} of {tally(subjects).required} required tests not tested" * bool(missing)
