"""The Markdown report (acpcomply, Sample Report)."""

from dataclasses import replace

from comply.report.markdown import markdown
from comply.result import Subject, Verdict, not_run
from tests.comply.results import result, subjects


def test_it_is_as_in_the_sample() -> None:
    text = markdown(subjects())
    assert text.startswith("# ACP Compliance Report\n\nMethodology: ")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table == [
        "| Compliance Area | agent-one | agent-two   |",
        "|-----------------|-----------|-------------|",
        "| Title of init   | PASS      | ERROR [2]   |",
        "| Title of cancel | FAIL [1]  | PASS        |",
        "| Title of modes  | NA        | PARTIAL [3] |",
    ]
    assert (
        "\n[2] suite/init: no sandbox\n"
        "[3] suite/modes: no release (optional). The rule: What modes verifies.\n" in text
    )
    assert (
        "## agent-one Summary\n\n- Required: 1 of 2 pass, 1 fail\n"
        "- Tests: 1 PASS, 1 FAIL, 1 NA\n"
        "- Coverage: 2 of 3 tests applied (66 %)\n- Time: 3 tests in 0.0 s\n" in text
    )
    assert "- Lines on stdout that are not messages, in: cancel\n- Modes: not advertised" in text
    assert "- Not tested: modes is not offered (1)\n- Links: https://example.com/cancel" in text


def test_what_a_subject_says_is_no_markup() -> None:
    text = markdown(subjects())
    assert "<script>" not in text
    assert "\x00" not in text
    said = "[1] suite/cancel: no response &lt;script>alert(\"x\")&lt;/script> | 'a' b. The rule: "
    assert said in text


def test_what_is_said_of_many_tests_is_said_once_with_the_last_words_of_stderr() -> None:
    failed = [result(name, Verdict.FAIL, reason="it ended") for name in ("a", "b", "c")]
    for one in failed[:2]:
        one.log = "loading\nTraceback\n\nValueError: <no model>\n"
    text = markdown([Subject("x", {}, failed)])
    said = "its stderr ended: loading / Traceback / ValueError: &lt;no model>"
    assert f"[1] suite/a and 1 more: it ended; {said}\n[2] suite/c: it ended. The rule:" in text


def test_a_subject_that_was_not_tested_says_why() -> None:
    waiting = Subject("x", {}, [not_run(result(name, Verdict.NA).case) for name in ("a", "b")])
    waiting.stop("can't start x")
    text = markdown([waiting])
    assert "- Not tested to the end: can't start x\n- Required: 0 of 2 pass, 2 not tested" in text
    assert "- Time: 0 tests in" in text


def test_tests_of_two_suites_are_told_apart_and_what_is_not_put_to_one_is_marked() -> None:
    old, new = result("init", Verdict.PASS), result("init", Verdict.PASS)
    new.case = replace(new.case, suite="newer")
    text = markdown([Subject("a", {}, [old]), Subject("b", {}, [new])])
    assert "| Title of init (suite) | PASS | -    |" in text
    assert "| Title of init (newer) | -    | PASS |" in text
    assert " -: of a version that the subject does not speak.\n" in text
