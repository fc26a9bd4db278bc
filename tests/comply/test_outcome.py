"""What a run comes to: its exit status."""

import signal

import pytest

from comply.outcome import judge
from comply.result import Subject, Verdict
from tests.comply.results import result


@pytest.mark.parametrize(
    ("verdict", "severity", "known", "status"),
    [
        (Verdict.PASS, "required", [], 0),
        (Verdict.NA, "required", [], 4),
        (Verdict.NA, "optional", [], 0),
        (Verdict.FAIL, "required", [], 1),
        (Verdict.FAIL, "optional", [], 0),
        (Verdict.PARTIAL, "optional", [], 0),
        (Verdict.ERROR, "optional", [], 3),
        (Verdict.FAIL, "required", ["suite/x"], 0),
        (Verdict.PASS, "required", ["suite/x"], 1),
        (Verdict.NA, "required", ["suite/x"], 0),
        (Verdict.NA, "required", ["suite/x NA"], 0),
        (Verdict.FAIL, "required", ["suite/x NA"], 1),
        (Verdict.PASS, "required", ["suite/x NA"], 1),
    ],
)
def test_exit_status(verdict: Verdict, severity: str, known: list[str], status: int) -> None:
    done = Subject("agent", {}, [result("x", verdict, severity), result("y", Verdict.PASS)])
    assert judge([done], frozenset(known)).status == status


def test_what_was_not_tested_is_said() -> None:
    tests = [
        result(str(number), Verdict.PASS if number < 3 else Verdict.NA) for number in range(39)
    ]
    assert judge([Subject("x", {}, tests)], frozenset()).untested == (
        "36 of 39 required tests not tested"
    )


def test_where_nothing_was_tested_nothing_is_known() -> None:
    none = judge([Subject("x", {}, [result("x", Verdict.NA, "optional")])], frozenset())
    assert (none.status, none.untested) == (4, "nothing was tested")


def test_a_subject_that_was_not_tested_and_a_signal_have_a_status_of_their_own() -> None:
    gone = Subject("x", {}, [result("x", Verdict.FAIL)], problem="it is gone")
    assert judge([gone], frozenset()).status == 3
    assert judge([gone], frozenset()).errors == ["x: it is gone"]
    assert judge([gone], frozenset(), (), signal.SIGTERM).status == 143


def test_a_run_of_which_little_applied_proves_little() -> None:
    """Unless the user says that so little is enough."""
    tests = [
        result(str(number), Verdict.PASS if number < 41 else Verdict.NA, "optional")
        for number in range(130)
    ]
    thin = judge([Subject("x", {}, tests)], frozenset())
    assert (thin.status, thin.coverage) == (
        5,
        "coverage: 41 of 130 tests applied (31 %), which proves little: --min-coverage is 33 %",
    )
    enough = judge([Subject("x", {}, tests)], frozenset(), min_coverage=31)
    assert (enough.status, enough.coverage) == (0, "coverage: 41 of 130 tests applied (31 %)")
    assert judge([Subject("x", {}, tests)], frozenset(), min_coverage=32).status == 5
    gaps = frozenset(f"suite/{number} NA" for number in range(41, 130))
    assert judge([Subject("x", {}, tests)], gaps).status == 0, "the baseline names the gaps"
    failed = [*tests, result("f", Verdict.FAIL)]
    assert judge([Subject("x", {}, failed)], frozenset()).status == 1
    third = [result("a", Verdict.PASS), *(result(n, Verdict.NA, "optional") for n in "bc")]
    assert judge([Subject("x", {}, third)], frozenset()).status == 0
