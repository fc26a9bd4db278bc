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
    gap = frozenset({"suite/cancel NA"})
    assert kinds(junit(subjects(), gap))["agent-one"][1] == "failure"


def test_a_failure_has_its_stderr_and_a_subject_that_was_not_tested_its_error() -> None:
    one, other = subjects()
    one.results[1].log, other.problem = "boom\x00", "it is gone"
    root = ET.fromstring(junit([one, other]))
    assert [case.findtext("system-err") for case in root[0]] == [None, "boom", None]
    run = root[1][0]
    assert (run.attrib["name"], run[0].tag, run[0].attrib["message"]) == (
        *("run", "error"),
        "it is gone",
    )
    assert (root[1].attrib["tests"], root[1].attrib["errors"]) == ("4", "2")
