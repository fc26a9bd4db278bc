"""The JSON report."""

import json

from comply.report.data import as_json
from tests.comply.results import HOSTILE, subjects


def test_programs_can_read_every_verdict_and_the_transcripts_of_the_bad() -> None:
    report = json.loads(as_json(subjects()))
    one = report["subjects"][0]
    assert one["counts"] == {"PASS": 1, "FAIL": 1, "PARTIAL": 0, "NA": 1, "ERROR": 0}
    passed, failed, absent = one["tests"]
    assert passed["verdict"] == "PASS"
    assert "transcript" not in passed
    assert failed["test"] == "suite/cancel"
    assert (failed["expected"], failed["nearest"]) == ({"id": 1}, {"id": 2})
    assert failed["mismatches"] == ["id: expected 1, got 2"]
    assert failed["transcript"][1] == {"at": 2.5, "sent": False, "message": HOSTILE}
    assert (absent["verdict"], absent["reason"]) == ("NA", "modes is not offered")


def test_a_subject_says_how_much_of_it_was_tested_and_a_failure_its_stderr() -> None:
    one, other = subjects()
    one.results[1].log, other.problem = "boom", "it is gone"
    first, second = json.loads(as_json([one, other]))["subjects"]
    assert first["required"] == {"tests": 2, "passed": 1, "failed": 1, "untested": 0, "breaking": 0}
    assert second["required"] == {
        "tests": 2,
        "passed": 1,
        "failed": 0,
        "untested": 1,
        "breaking": 0,
    }
    assert (first["tests"][1]["stderr"], "problem" in first) == ("boom", False)
    assert second["problem"] == "it is gone"


def test_a_message_that_breaks_the_protocol_is_marked() -> None:
    made = subjects()
    made[0].results[1].frames[1].breach = "params.x is missing"
    transcript = json.loads(as_json(made))["subjects"][0]["tests"][1]["transcript"]
    assert [frame.get("breach") for frame in transcript] == [None, "params.x is missing"]
