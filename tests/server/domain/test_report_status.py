"""What a result text means for an implementation (wire format; design §5)."""

from typing import Any

import pytest

from schemas.wire import parse_report
from server.domain.report_status import ReportStep, step_for


def step(*lines: str) -> ReportStep:
    found = parse_report("\n".join(lines))
    assert found is not None
    return step_for(found.message)


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        ("ok", "complete"),
        ("no_changes", "complete"),
        ("partial", "in_progress"),
        ("retry", "in_progress"),
        ("decomposed", "in_progress"),
        ("needs_decision", "in_progress"),
        ("fail", "needs_revision"),
        ("rejected", "needs_revision"),
        ("fixture_gap", "needs_revision"),
    ],
)
def test_each_status_has_a_meaning(status: str, meaning: str) -> None:
    assert step(f"STATUS:{status}").status == meaning


@pytest.mark.parametrize("failed", ["TESTS:fail", "TESTS:fail:3", "BUILD:fail"])
def test_what_fails_its_tests_or_build_is_not_complete(failed: str) -> None:
    for done in ("STATUS:ok", "STATUS:no_changes"):
        assert step(done, failed).status == "needs_revision"
    assert (step("STATUS:ok", failed).notes or "").startswith("status: ok\n")
    assert step("STATUS:partial", failed).status == "in_progress"


@pytest.mark.parametrize("fine", ["TESTS:pass:12", "TESTS:skip", "BUILD:pass", "BUILD:skip"])
def test_what_passes_or_is_skipped_is_complete(fine: str) -> None:
    assert step("STATUS:ok", fine).status == "complete"


def test_the_files_are_all_that_were_touched_once_each() -> None:
    found = step(
        "STATUS:ok", "FILES_CREATED:a.py,b.py", "FILES_MODIFIED:b.py,c.py", "FILES_DELETED:d.py"
    )
    assert found.files == ("a.py", "b.py", "c.py", "d.py")
    assert step("STATUS:ok").files is None


def test_the_notes_say_what_is_not_said_elsewhere() -> None:
    assert step("STATUS:ok").notes is None
    assert step(
        "STATUS:fail", "ERROR:no database", "TESTS:fail:3", "BUILD:pass", "LEARNED:ask first"
    ).notes == (
        "status: fail\nerror: no database\ntests: fail (3)\nbuild: pass\nlearned: ask first"
    )


@pytest.mark.parametrize(
    ("lines", "question"),
    [
        (["QUESTION:JWT?"], "JWT?"),
        (["ERROR:two ways"], "two ways"),
        ([], "A decision is needed"),
    ],
)
def test_a_decision_that_is_needed_becomes_a_question(lines: list[Any], question: str) -> None:
    assert step("STATUS:needs_decision", *lines).question == question


def test_only_a_needed_decision_is_asked() -> None:
    assert step("STATUS:ok", "QUESTION:JWT?").question is None
