"""Texts with NUL go into PostgreSQL and come back, and equal ones stay equal."""

from hypothesis import example, given
from hypothesis import strategies as st

from server.store.postgresql.text import ESCAPE, NUL, from_stored, to_stored

TEXTS = st.text(st.sampled_from(["\0", "\ue000", "\ue001", "\ue002", "a", "\ud800", "\U0001f600"]))


@given(TEXTS | st.text())
@example("\ue000\0")
@example("\ue000\ue001")
@example("\ue000\ue000\ue001\0\ue000")
def test_what_is_read_is_what_was_written(text: str) -> None:
    assert "\0" not in to_stored(text)
    assert from_stored(to_stored(text)) == text


@given(TEXTS, TEXTS)
def test_texts_are_equal_when_they_were(one: str, other: str) -> None:
    assert (to_stored(one) == to_stored(other)) == (one == other)


@given(TEXTS, TEXTS)
def test_a_text_of_two_parts_is_stored_as_the_two(one: str, other: str) -> None:
    """So what begins with another text, or contains it, still does."""
    assert to_stored(one + other) == to_stored(one) + to_stored(other)


@given(st.text(st.characters(exclude_characters="\0\ue000")))
def test_other_texts_are_stored_as_they_are(text: str) -> None:
    assert to_stored(text) is text
    assert from_stored(text) is text


def test_the_characters_that_stand_for_nul() -> None:
    assert to_stored("a\0b") == f"a{NUL}b" == "a\ue000\ue001b"
    assert to_stored("\ue000\ue001") == ESCAPE * 2 + "\ue001"
