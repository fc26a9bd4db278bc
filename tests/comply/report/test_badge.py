"""The badge counts the required tests, and says how many nobody tested."""

from xml.etree import ElementTree as ET

from comply.report.badge import badge
from comply.result import Subject, Verdict
from tests.comply.results import result, subjects


def test_it_is_red_when_a_required_test_fails() -> None:
    red = badge(subjects())
    assert "compliance: 2/4, 1 not tested" in red
    assert "#b3261e" in red


def test_it_is_green_when_every_required_test_passes() -> None:
    passing = [result("a", Verdict.PASS), result("b", Verdict.FAIL, "optional")]
    green = badge([Subject("x", {}, [*passing, result("c", Verdict.NA, "optional")])], "<acp>")
    assert "#2f7d32" in green
    assert ET.fromstring(green).attrib["aria-label"] == "<acp>: 1/1"


def test_what_was_not_tested_is_not_green() -> None:
    """36 of 39 NA was a green 3/3."""
    tests = [
        result(str(number), Verdict.PASS if number < 3 else Verdict.NA) for number in range(39)
    ]
    partly = badge([Subject("x", {}, tests)])
    assert "compliance: 3/39, 36 not tested" in partly
    assert "#8a5a00" in partly


def test_nothing_that_ran_is_nothing_that_passed() -> None:
    for none in ([], [Subject("x", {}, [result("a", Verdict.NA), result("b", Verdict.ERROR)])]):
        assert "compliance: not tested" in badge(none)
        assert "#555" in badge(none)
