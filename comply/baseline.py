"""A baseline: tests that are known not to pass, as lines `suite/test`; `#` starts a comment.

A listed test may fail without failing the run; one listed with `NA` may go untested, but not fail.
An entry is stale when its test passes, is tested after all, or does not exist. A stale entry fails
the run, so that the file stays true.
"""

from collections.abc import Collection, Sequence

from comply.result import CaseResult, Subject, Verdict, results_of

UNTESTED = " NA"
"""The suffix of an entry that excuses a gap but no failure."""


def entries(text: str) -> frozenset[str]:
    lines = (" ".join(line.partition("#")[0].split()) for line in text.splitlines())
    return frozenset(line for line in lines if line)


def excused(known: frozenset[str], result: CaseResult) -> bool:
    """Whether the baseline has this test with this kind of verdict."""
    gap = result.verdict is Verdict.NA and result.key + UNTESTED in known
    return gap or result.key in known


def stale(
    known: frozenset[str], subjects: Sequence[Subject], tests: Collection[str]
) -> dict[str, str]:
    """The stale entries, and why. `tests` are the keys of all existing tests, run or not."""
    results = [result for _, result in results_of(subjects)]
    passed = {result.key for result in results if result.verdict is Verdict.PASS}
    bad = {result.key for result in results if result.bad}
    gaps = {result.key for result in results if result.verdict is Verdict.NA}
    every = {*tests, *(result.key for result in results)}
    why: dict[str, str] = {}
    for entry in sorted(known):
        key = entry.removesuffix(UNTESTED)
        if key not in every:
            why[entry] = "names no test"
        elif entry != key and key in (passed | bad) - gaps:
            why[entry] = "is tested"
        elif entry == key and key in passed - bad:
            why[entry] = "passes"
    return why


def failures(known: frozenset[str], subjects: Sequence[Subject]) -> list[str]:
    """Required tests that fail and are not in the baseline."""
    return [
        f"{subject.name}: {result.key}"
        for subject, result in results_of(subjects)
        if _fails(result) and not excused(known, result)
    ]


def gaps(known: frozenset[str], subjects: Sequence[Subject]) -> list[str]:
    """Required tests that were not tested and are not in the baseline."""
    return [
        f"{subject.name}: {result.key}"
        for subject, result in results_of(subjects)
        if _is_gap(result) and not excused(known, result)
    ]


def as_text(subjects: Sequence[Subject]) -> str:
    """A baseline of the current failures and gaps."""
    results = [result for _, result in results_of(subjects)]
    failing = {result.key: result.reason for result in results if _fails(result)}
    untested = {
        result.key + UNTESTED: result.reason
        for result in results
        if _is_gap(result) and result.key not in failing
    }
    lines = {**failing, **untested}
    return "".join(f"{key}  # {' '.join(why.split())}\n" for key, why in sorted(lines.items()))


def _fails(result: CaseResult) -> bool:
    return result.required and result.verdict is Verdict.FAIL


def _is_gap(result: CaseResult) -> bool:
    return result.required and result.verdict is Verdict.NA
