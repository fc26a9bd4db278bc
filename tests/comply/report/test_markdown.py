"""The Markdown report (acpcomply, Sample Report)."""

from comply.report.markdown import markdown
from tests.comply.results import subjects


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
    assert "\n[2] suite/init: no sandbox\n[3] suite/modes: no release (optional)\n" in text
    assert (
        "## agent-one Summary\n\n- Tests: 1 PASS, 1 FAIL, 1 NA\n- Time: 3 tests in 0.0 s\n" in text
    )
    assert "- Lines on stdout that are no messages, in: cancel\n- Modes: not advertised" in text
    assert "- Not applicable: modes is not offered\n- Links: https://example.com/cancel" in text


def test_what_a_subject_says_is_no_markup() -> None:
    text = markdown(subjects())
    assert "<script>" not in text
    assert "\x00" not in text
    assert "[1] suite/cancel: no response &lt;script>alert(\"x\")&lt;/script> | 'a' b\n" in text
