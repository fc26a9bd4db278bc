"""Stamps and their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.stamps import iso, stamp_of

END_OF_9999 = 253_402_300_799_999_999


@given(st.integers(0, END_OF_9999))
def test_a_stamp_survives_as_iso_8601(stamp: int) -> None:
    assert stamp_of(iso(stamp)) == stamp


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000000+00:00"),
        (1_771_666_200_000_001, "2026-02-21T09:30:00.000001+00:00"),
    ],
)
def test_times_go_out_as_utc_with_six_digits(stamp: int, text: str) -> None:
    assert iso(stamp) == text


@pytest.mark.parametrize("text", ["2026-02-21T09:30:00", "2026-02-21T11:30:00+02:00"])
def test_a_time_without_an_offset_is_utc(text: str) -> None:
    assert stamp_of(text) == 1_771_666_200_000_000
