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
