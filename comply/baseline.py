"""Known failures: a file of `suite/test` lines, `#` starts a comment.

What stands in it may fail without failing the run. An entry whose test passes, or that names no
test, is stale and fails the run, so that the file never says more than is true.
"""

from collections.abc import Collection, Sequence

from comply.result import Subject, Verdict, results_of


def entries(text: str) -> frozenset[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


def stale(
    known: frozenset[str], subjects: Sequence[Subject], tests: Collection[str]
) -> dict[str, str]:
    """The entries that are no longer true, and why. `tests` are all that there are, run or not."""
    results = [result for _, result in results_of(subjects)]
    passed = {result.key for result in results if result.verdict is Verdict.PASS}
    bad = {result.key for result in results if result.bad}
    gone = known.difference(tests, (result.key for result in results))
    why = dict.fromkeys(known & passed - bad, "passes")
    return dict(sorted((why | dict.fromkeys(gone, "names no test")).items()))


def failures(known: frozenset[str], subjects: Sequence[Subject]) -> list[str]:
    """What makes the run fail: required tests that fail and are not known to."""
    return [
        f"{subject.name}: {result.key}"
        for subject, result in results_of(subjects)
        if result.required and result.verdict is Verdict.FAIL and result.key not in known
    ]


def as_text(subjects: Sequence[Subject]) -> str:
    """A baseline of what fails now."""
    failing = {
        result.key: result.reason
        for _, result in results_of(subjects)
        if result.required and result.verdict is Verdict.FAIL
    }
    return "".join(f"{key}  # {' '.join(why.split())}\n" for key, why in sorted(failing.items()))
