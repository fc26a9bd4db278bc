"""Shipped tests with shorter windows: a mutant is silent where a window waits for it."""

from dataclasses import replace

from comply.files import Case


def shortened(case: Case, longest: float, deciding: float | None = None) -> Case:
    """The same test with no expectation waiting longer than `longest` milliseconds.

    Windows that decide whether the test is NA may take `deciding`, if that is given: a message
    that is merely late must not make it NA.
    """
    test = case.test.model_copy(deep=True)
    for step in test.steps:
        if step.expect is not None:
            decides = step.expect.na_unless is not None or step.expect.na_if is not None
            bound = deciding if decides and deciding is not None else longest
            step.expect.timeout_ms = min(step.expect.timeout_ms, bound)
        elif step.forbid is not None and deciding is not None:
            step.forbid.timeout_ms = min(step.forbid.timeout_ms, deciding)
    return replace(case, test=test)
