"""The badge counts the required tests that apply."""

from xml.etree import ElementTree as ET

from comply.report.badge import badge
from comply.result import Subject, Verdict
from tests.comply.results import result, subjects


def test_it_is_red_until_every_required_test_passes() -> None:
    red = badge(subjects())
    assert "compliance: 2/4" in red
    assert "#b3261e" in red
    passing = [result("a", Verdict.PASS), result("b", Verdict.FAIL, "optional")]
    green = badge([Subject("x", {}, [*passing, result("c", Verdict.NA)])], label="<acp>")
    assert "1/1" in green
    assert "#2f7d32" in green
    assert ET.fromstring(green).attrib["aria-label"] == "<acp>: 1/1"


def test_nothing_that_ran_is_nothing_that_passed() -> None:
    assert "#b3261e" in badge([])
