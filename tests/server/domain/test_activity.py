"""Changes by time."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.activity import WIDTHS, counts_by_time

SECOND = 1_000_000
STAMPS = st.integers(0, 2**53 - 1)


@given(st.lists(STAMPS, min_size=1, max_size=30), st.integers(2, 60))
def test_all_changes_are_in_as_many_spans_as_fit(times: list[int], most: int) -> None:
    times.sort(reverse=True)
    width, spans = counts_by_time(times, most)
    assert len(spans) <= most
    assert sum(span.changes for span in spans) == len(times)
    assert all(span.start % width == 0 for span in spans)
    assert [span.start for span in spans] == [
        spans[0].start + place * width for place in range(len(spans))
    ]


def test_the_width_is_the_smallest_that_fits() -> None:
    minutes = [minute * 60 * SECOND for minute in (9, 5, 0)]
    width, spans = counts_by_time(minutes, 10)
    assert width == 60 * SECOND
    assert [span.changes for span in spans] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_a_clock_that_was_wrong_stretches_nothing() -> None:
    width, spans = counts_by_time([10 * SECOND, 10**15, 9 * SECOND], 10)
    assert (width, [span.changes for span in spans]) == (SECOND, [1, 1])


def test_nothing_has_changed() -> None:
    assert counts_by_time([], 10) == (WIDTHS[0], [])
