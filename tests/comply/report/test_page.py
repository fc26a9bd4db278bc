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


def test_a_message_that_breaks_the_protocol_is_marked() -> None:
    made = subjects()
    made[0].results[1].frames[1].breach = "params.x is missing <b>"
    assert '<p class="FAIL">params.x is missing &lt;b&gt;</p>' in page(made)


def test_it_says_how_much_was_tested() -> None:
    one, other = subjects()
    other.problem = "it is <gone>"
    text = page([one, other])
    assert '<span class="FAIL">1 of 2 pass, 1 fail</span>' in text
    assert '<span class="PARTIAL">1 of 2 pass, 1 not tested</span>' in text
    assert "Not tested to the end: it is &lt;gone&gt;" in text
    assert "<li>1 not tested: modes is not offered</li>" in text


def test_why_a_test_is_na_stands_beside_it_where_there_is_room() -> None:
    one, other = subjects()
    assert '<span class="reason">modes is not offered</span>' in page([one])
    assert 'class="reason"' not in page([one, other])
