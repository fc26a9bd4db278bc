"""What tells of a failure, and what only speaks of one."""

import pytest

from schemas.wire_doubt import Passed, fails, reports_failure, says_failed, still_fails, topic

FIELDS = ["TESTS: fail", "it works; TESTS:fail", "BUILD → ❌", "**TESTS** fail", "Test: failed"]
FIELDS += ["TESTS_FAILED: 3", "FAILED_TESTS: test_a", "failed: 3", "3 failed, 9 passed"]
FIELDS += ["TESTS_FAIL: yes", "BUILD ERROR: x", "TESTSUITE: fail", "1 failed in 2s", "CI: red"]
FIELDS += [
    "Not all of the tests pass.",
    "INFO: STATUS: fail",
    "T\u200bESTS: fail",
    "ＴＥＳＴＳ： fail",
    "TESTS: 3 of 40 failed",
]
PROSE = ["The build is broken.", "2 of the tests are red", "Failing unit tests remain"]
PROSE += ["Tests did not pass.", "It doesn't compile."]
PROSE += ["I could not fix the failing tests.", "tests were failing and still are not green"]
HARMLESS = ["0 failed", "no failures", "fixed the failing test", "Failed: 0", "FAILED_TESTS: none"]
HARMLESS += ["no tests failed", "none of the tests fail", "the build is no longer broken"]
HARMLESS += ["The tests cover failure modes.", "I added error handling to the build."]
HARMLESS += ["If the tests fail, tell me.", "TESTS: pass|fail|skip", "the failing tests pass now"]
HARMLESS += ["TESTS and BUILD are one of pass, fail, skip", "", "error handling", "failing logins"]


@pytest.mark.parametrize("text", FIELDS)
def test_said_as_a_field_it_counts_everywhere(text: str) -> None:
    assert says_failed(text)
    assert reports_failure(Passed(1, text))


@pytest.mark.parametrize("text", PROSE)
def test_prose_counts_where_no_field_has_it(text: str) -> None:
    assert not says_failed(text)
    assert reports_failure(Passed(1, text))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_over_or_none_or_may_never_be(text: str) -> None:
    assert not says_failed(text)
    assert not reports_failure(Passed(1, text))


def test_what_stands_under_a_field_is_of_it() -> None:
    assert reports_failure(Passed(1, "frontend: fail", "BUILD"))
    assert reports_failure(Passed(1, "only on Linux", "TESTS"))
    assert not reports_failure(Passed(1, "frontend: fail"))
    assert not reports_failure(Passed(1, "unit: 12", "TESTS"))


def test_before_a_report_counts_what_it_leaves_open_or_what_is_there_still() -> None:
    line = Passed(1, "The build fails.")
    assert still_fails(line, {"BUILD"})
    assert not still_fails(line, {"TESTS"})
    assert still_fails(Passed(1, "The build still fails."), ())
    assert still_fails(Passed(1, "3 failed", "TESTS"), {"TESTS"})


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("## TESTS", "TESTS"), ("**Test results**", "TESTS"), ("3. Build", "BUILD")),
        *(("# Status", "STATUS"), ("Summary", None), ("I ran all of the tests today", None)),
        ("Failed tests", None),
    ],
)
def test_a_heading(text: str, name: str | None) -> None:
    assert topic(text) == name


def test_words_of_failure() -> None:
    assert fails("two errors")
    assert not fails("no errors, and the reddish failover")
