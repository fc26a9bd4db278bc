"""The HTML page."""

import re

from comply.report.page import page
from tests.comply.results import subjects


def test_a_failure_shows_what_was_expected_what_came_nearest_and_the_frames() -> None:
    text = page(subjects())
    failure = text[text.index('<h2 id="t1"') :]
    assert "suite/cancel on agent-one: FAIL" in failure
    for said in ("Expected", "What came nearest", "id: expected 1, got 2", "Transcript"):
        assert said in failure
    assert re.search(r'class="sent">\s+1 ms → ', failure)
    assert re.search(r'class="heard">\s+2 ms ← ', failure)
    assert text.count("<h2 ") == 3


def test_what_a_subject_says_is_no_markup_and_nothing_is_loaded() -> None:
    text = page(subjects())
    assert "<script" not in text
    assert "src=" not in text
