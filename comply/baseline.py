"""What is known not to pass: a file of `suite/test` lines, `#` starts a comment.

What stands in it may fail without failing the run; what stands in it with `NA` may go untested, but
not fail. An entry that is no longer true, because its test passes, or is tested, or names no test,
is stale and fails the run, so that the file never says more than is true.
"""

from collections.abc import Collection, Sequence

from comply.result import Result, Subject, Verdict, results_of

UNTESTED = " NA"
"""What follows the test's key in an entry that excuses no failure."""


def entries(text: str) -> frozenset[str]:
    lines = (" ".join(line.partition("#")[0].split()) for line in text.splitlines())
    return frozenset(line for line in lines if line)


def excused(known: frozenset[str], result: Result) -> bool:
    """Whether it is known that this test doesn't pass, and how."""
    gap = result.verdict is Verdict.NA and result.key + UNTESTED in known
    return gap or result.key in known


def stale(
    known: frozenset[str], subjects: Sequence[Subject], tests: Collection[str]
) -> dict[str, str]:
    """The entries that are no longer true, and why. `tests` are all that there are, run or not."""
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
    """What makes the run fail: required tests that fail and are not known to."""
    return [
        f"{subject.name}: {result.key}"
        for subject, result in results_of(subjects)
        if _fails(result) and not excused(known, result)
    ]


def gaps(known: frozenset[str], subjects: Sequence[Subject]) -> list[str]:
    """Required tests that were not tested and are not known to be left out."""
    return [
        f"{subject.name}: {result.key}"
        for subject, result in results_of(subjects)
        if _is_gap(result) and not excused(known, result)
    ]


def as_text(subjects: Sequence[Subject]) -> str:
    """A baseline of what fails now, and of what was not tested."""
    results = [result for _, result in results_of(subjects)]
    failing = {result.key: result.reason for result in results if _fails(result)}
    untested = {
        result.key + UNTESTED: result.reason
        for result in results
        if _is_gap(result) and result.key not in failing
    }
    lines = {**failing, **untested}
    return "".join(f"{key}  # {' '.join(why.split())}\n" for key, why in sorted(lines.items()))


def _fails(result: Result) -> bool:
    return result.required and result.verdict is Verdict.FAIL


def _is_gap(result: Result) -> bool:
    return result.required and result.verdict is Verdict.NA
