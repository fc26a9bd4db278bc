"""The outcome of a run: its exit status and the lines that explain it."""

import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from comply.baseline import failures, gaps, stale
from comply.result import Subject, Verdict, results_of, tally

PASSED, FAILED, HARNESS, UNTESTED = 0, 1, 3, 4
SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is the exit status of `cacp comply run`; `errors` and `untested` are lines."""

    status: int
    failures: list[str]
    stale: dict[str, str]
    errors: list[str]
    untested: str = ""


def judge(
    subjects: Sequence[Subject],
    known: frozenset[str],
    tests: Collection[str] = (),
    signalled: signal.Signals | None = None,
) -> Outcome:
    """A run fails for a required test that fails and is not in the baseline, or for a stale entry.

    Without a failure, it passes only if every required test was tested or is a known gap. `tests`
    are the keys of all existing tests, run or not.
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
    return Outcome(SIGNALLED + signalled if signalled else status, failed, old, errors, untested)


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
