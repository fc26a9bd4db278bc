"""The JUnit report: what fails the run is a failure, all else is not."""

from xml.etree import ElementTree as ET

from comply.report.junit import junit
from tests.comply.results import subjects


def kinds(text: str) -> dict[str, list[str]]:
    root = ET.fromstring(text)
    return {
        suite.attrib["name"]: [case[0].tag if len(case) else "" for case in suite] for suite in root
    }


def test_each_verdict_has_its_element() -> None:
    text = junit(subjects())
    assert kinds(text) == {
        "agent-one": ["", "failure", "skipped"],
        "agent-two": ["error", "", "skipped"],
    }
    suite = ET.fromstring(text)[0]
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
    }


def test_a_known_failure_is_none() -> None:
    assert kinds(junit(subjects(), frozenset({"suite/cancel"})))["agent-one"][1] == "skipped"
