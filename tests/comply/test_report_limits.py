"""What a report keeps of a test is bounded, in each of its forms."""

import json
from typing import Any

from comply.matching import Mismatch
from comply.record import Nearest, Transcript
from comply.report.data import as_json
from comply.report.junit import junit
from comply.report.markdown import markdown
from comply.report.page import page
from comply.report_limits import FRAMES, MISMATCHES, REASON, TEXT, WHOLE, shorten, shortened
from comply.result import Subject, Verdict
from tests.comply.results import result


def said(*params: Any) -> Transcript:
    record = Transcript()
    for one in params:
        record.heard({"method": "x", "params": one})
    return record


def test_of_many_messages_the_first_and_the_last_are_kept_and_the_rest_counted() -> None:
    record = said(*range(FRAMES * 2))
    kept = shortened(record.frames)
    assert len(kept) == FRAMES + 1
    assert kept[FRAMES // 2].message == f"… {FRAMES} more messages"
    assert (kept[0], kept[-1]) == (record.frames[0], record.frames[-1])
    assert shortened(record.frames[:2]) == record.frames[:2]


def test_long_messages_are_cut_and_short_ones_leave_them_their_room() -> None:
    record = said("a", "b" * WHOLE * 2, "c")
    first, long, last = (frame.message for frame in shortened(record.frames))
    assert (first, last) == (record.frames[0].message, record.frames[2].message)
    assert str(long).endswith(" more characters")
    assert WHOLE * 0.9 < len(str(long)) < WHOLE


def test_every_form_of_report_is_bounded_whatever_a_subject_says() -> None:
    """A hundred kilobytes for a test, of megabytes in each place where an agent may put them."""
    much = "x" * 2_000_000
    made = result("much", Verdict.FAIL, reason=much)
    nested: Any = [{"a": {"b": ["x" * 50] * 5}} for _ in range(FRAMES * 300)]
    mismatches = tuple(Mismatch(much, much) for _ in range(MISMATCHES * 5))
    made.near = Nearest({"id": much}, {"id": nested}, mismatches)
    shorten(made, said(*nested).frames)
    assert made.near.mismatches[-1] == Mismatch("…", f"{MISMATCHES * 4} more")
    assert made.reason == f"{much[:REASON]}… {len(much) - REASON} more characters"
    subjects = [Subject("a", {}, [made])]
    bound = 3 * (WHOLE + 2 * TEXT + MISMATCHES * 2 * REASON)
    for report in (as_json(subjects), page(subjects), markdown(subjects), junit(subjects)):
        assert len(report) < bound
    for report in (as_json(subjects), page(subjects)):
        assert f"… {FRAMES * 299} more messages" in report
    assert json.loads(as_json(subjects))["subjects"][0]["tests"][0]["nearest"].endswith(
        " more characters"
    )
