"""What is read though it is oddly written, and what is left to its author."""

import pytest

from schemas.wire_values import FieldWord, Paths, field_word, names_field, paths


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("pass", "pass"),
        ("PASS:042", "pass:42"),
        ("pass (12 passed)", "pass:12"),
        ("pass (12 passed, 0 failed)", "pass:12"),
        ("pass (12/12)", "pass:12"),
        ("pass: 12 tests", "pass:12"),
        ("12 passed", "pass:12"),
        ("12/12 tests passed", "pass:12"),
        ("all tests pass", "pass"),
        ("✅ pass", "pass"),
        ("`pass` 🎉", "pass"),
        ('"pass",', "pass"),
        ("**fail**", "fail"),
        ("❌ failed", "fail"),
        ("fail (3 failed, 9 passed)", "fail:3"),
        ("fail:3 - but the build is fine", "fail:3"),
        ("n/a", "skip"),
        ("N/A (no suite)", "skip"),
        ("None", "skip"),
        ("-", "skip"),
        ("not run", "skip"),
        ("skip (not needed)", "skip"),
        ("no tests", "skip"),
        ("0 failed, 12 passed", "pass:12"),
        ("12/12", "pass:12"),
        ("✅", "pass"),
        ("✅ 12/12", "pass:12"),
        ("❌", "fail"),
        ("12 passed in 0.34s", "pass:12"),
        ("pass (12 tests in tests/test_a.py)", "pass:12"),
        ("pass (12 passed, 2 skipped)", "pass:12"),
        ("pass (pytest -q tests/unit)", "pass"),
        ("pass (`go test ./...`)", "pass"),
        ("pass:12 (unit and integration)", "pass:12"),
    ],
)
def test_tests(value: str, meant: str) -> None:
    assert str(field_word("TESTS", value)) == meant


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "perhaps",
            "pass|fail|skip",
            "pass/fail",
            "pass?",
            "passable",
            "not passing",
            "!pass",
        ),
        *("pass:", "pass:-1", "pass:12:3", "pass:" + "9" * 5_000, "0 passed", "0 failed"),
        *("11/12 passed", "pass (11 of 12)", "12 passed, 1 failed", "pass, 2 failing", "❌ pass"),
        *(
            "pass, but flaky",
            "pass (not on Windows)",
            "pass ⚠",
            "skip (they fail)",
            "1 skipped, 3 passed",
        ),
        *("pass then crashed", "pass, 2 timed out", "pass locally, CI red", "pass (none were run)"),
        *("pass (92%)", "pass. 2 regressions", "pass, 3 unsuccessful", "pass expected"),
        *("pass after I disabled 4 tests", "✖ pass:3", "🟥 pass", "👎 pass", "pass (not_run)"),
        *("pass (0 tests)", "pass (pytest; CI red)", "pass (pytest hangs)", "pass (make it so)"),
        *("skip (they crash)", "no tests pass", "0 failed, 0 passed", "11/12", "✅ 11/12"),
        *("pass BUILD:fail", "pass, **Build**: pass", 'pass", "build": "pass"}'),
    ],
)
def test_what_can_be_misread_is_not_read(value: str) -> None:
    assert field_word("TESTS", value) is None


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("ok (all good)", "ok"),
        ("OK.", "ok"),
        ("'ok'", "ok"),
        ("ok - no errors", "ok"),
        ("needs-decision", "needs_decision"),
        ("Needs Decision", "needs_decision"),
        ("no changes (nothing to do)", "no_changes"),
        ("failed: no database", "fail"),
        ("partial, 2 of 3 done", "partial"),
        ("rejected because it can't work", "rejected"),
    ],
)
def test_a_status(value: str, meant: str) -> None:
    assert field_word("STATUS", value) == FieldWord(meant)


@pytest.mark.parametrize(
    "value",
    [
        *(
            "okay",
            "splendid",
            "done",
            "n/a",
            "ok|fail",
            "ok or fail",
            "ok, TESTS:pass",
            "ok, mostly",
        ),
        *("ok (tests red)", "ok, needs review", "ok once CI is green", "ok (waiting for approval)"),
    ],
)
def test_what_is_no_status(value: str) -> None:
    assert field_word("STATUS", value) is None


def test_a_build_has_no_count() -> None:
    assert field_word("BUILD", "pass:3") == field_word("BUILD", "success") == FieldWord("pass")


@pytest.mark.parametrize(
    ("text", "listed", "found"),
    [
        ("a.py , b c.py,,", False, ("a.py", "b c.py")),
        ("`a.py`, `b.py`", False, ("a.py", "b.py")),
        ('["a.py", "b.py"],', False, ("a.py", "b.py")),
        ("app/[id].tsx", False, ("app/[id].tsx",)),
        ("[id].tsx,[slug]", False, ("[id].tsx", "[slug]")),
        ("app/(group)/page.tsx, Makefile", False, ("app/(group)/page.tsx", "Makefile")),
    ],
)
def test_paths(text: str, listed: bool, found: tuple[str, ...]) -> None:
    assert paths(text, listed=listed) == Paths(found)


def test_more_than_paths() -> None:
    assert paths("`a.py`: new, and tested", listed=True).paths == ("a.py",)
    for remarked in ("a.py (new)", "a.py (fixed, tested)", "a.py: refactor", "a.py - new"):
        assert paths(remarked, listed=True) == Paths(("a.py",), (remarked,))
    assert paths("[", listed=False) == Paths(())
    for nothing in ("none", "N/A", "(none)", "-", "None.", "no files", "0 files changed"):
        assert paths(nothing, listed=False) == Paths((), (nothing,))


@pytest.mark.parametrize(
    "text", ["a.py b.py", "a.py; b.py", "a.py and b.py", "a.py;b.py", "`a.py` and `b.py`"]
)
def test_many_paths_without_commas(text: str) -> None:
    found = paths(text, listed=False)
    assert (found.paths, found.odd) == (("a.py", "b.py"), (text,))


@pytest.mark.parametrize(
    "text",
    ["2 files", "several files", "a.py and 3 others", "a.py to b.py", "a;b", "My Docs/a b.txt"],
)
def test_what_may_be_one_path_or_many(text: str) -> None:
    assert paths(text, listed=False).unclear == text


def test_another_field_within_a_value() -> None:
    assert names_field("ok TESTS:fail")
    assert names_field("a.py | **Build**: fail")
    assert not names_field("src/tests: all of them")
