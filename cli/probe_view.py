"""How the outcome of a probe is told on a terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from schemas.plain import one_line

if TYPE_CHECKING:
    from proof.probe_outcome import ProbeOutcome

WORDS = {"passed": "passed", "failed": "FAILED", "not_run": "could not be tried"}


def outcome_lines(title: str, outcome: "ProbeOutcome") -> Iterator[str]:
    """The lines of an outcome: what was tried, what failed and how to repeat it, what is open."""
    for tally in outcome.tallies:
        cases = f"{tally.valid} valid, {tally.invalid} invalid, {tally.succeeded} with success"
        yield one_line(f"  {tally.key}: {cases}")
    for failure in outcome.failures:
        yield f"✗ {one_line(failure.operation)}: {failure.rule.replace('_', ' ')}"
        yield f"    {one_line(failure.why)}"
        if failure.reproduce:
            yield f"    {one_line(failure.reproduce)}"
    for line in outcome.unproven:
        yield f"? {one_line(line)}"
    for key in outcome.skipped:
        yield f"- {one_line(key)} can't be called, so it was not tried"
    for constraint in outcome.unbroken:
        yield f"- {one_line(constraint)} could not be broken, so nothing shows that it is checked"
    seed = "" if outcome.seed is None else f", seed {outcome.seed}"
    seconds = outcome.duration / 1000
    ended = f"{WORDS[outcome.result]}, {outcome.cases} cases in {seconds:.1f} s"
    yield f"{one_line(title)}: {ended}{seed}"
