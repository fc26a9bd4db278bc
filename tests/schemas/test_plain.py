"""Text that may be shown: nothing in it moves, hides or colours what stands beside it (§7)."""

import doctest
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import plain
from schemas.plain import clean, escaped, one_line


def test_the_examples_hold() -> None:
    assert doctest.testmod(plain).failed == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08c\x9b31m", "abc31m"),
        ("user\u202egnp.exe", "usergnp.exe"),
        ("seen\U000e0068\U000e0069\ufe0f\u00ad\u3164", "seen"),
        ("\x1b\x1b[31m[31m", "[31m"),
        ("é 漢 😀\ttab\nline", "é 漢 😀\ttab\nline"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    shown = clean(text)
    assert not {unicodedata.category(each) for each in shown} & {"Cs", "Zl", "Zp"}
    assert all(each in "\t\n" or unicodedata.category(each) != "Cc" for each in shown)
    assert clean(shown) == shown
    assert "\n" not in one_line(text)
    assert len(one_line(text, 10)) <= 10


@given(st.text(st.sampled_from("\x1b[]P;m\\\x07\u200b\n1")))
def test_what_is_clean_stays_clean(text: str) -> None:
    assert "\x1b" not in clean(text)
    assert clean(clean(text)) == clean(text)


@given(st.text() | st.text(st.characters(min_codepoint=0xE0000, max_codepoint=0xE01FF)))
def test_escaped_json_says_the_same(text: str) -> None:
    shown = escaped(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == text
    assert clean(shown) == shown
