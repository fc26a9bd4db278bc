"""A block between markers comes and goes; the person's text stays."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import marked_block
from cli.marked_block import BEGIN, END, with_block, without_block

TEXTS = st.text().filter(lambda text: "cacp:" not in text)


def test_the_examples_hold() -> None:
    assert doctest.testmod(marked_block).failed == 0


@given(TEXTS, TEXTS)
def test_what_was_added_is_taken_away(text: str, later: str) -> None:
    added = with_block(text, "a\n")
    assert with_block(added, "a\n") == added
    assert with_block(with_block(text, "b\n"), "a\n") == added
    end = "" if text.endswith("\n") or not text else "\n"
    assert without_block(added) == text + end
    assert without_block(added + later) == text + end + later


@pytest.mark.parametrize("text", [BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"])
def test_markers_that_are_no_pair_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        with_block(text, "a\n")
    with pytest.raises(ValueError, match="once each"):
        without_block(text)
