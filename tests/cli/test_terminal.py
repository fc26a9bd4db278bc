"""Text from agents is data: nothing in it moves, hides or colours what a terminal shows (§7)."""

import doctest
import json
import unicodedata

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from cli import terminal
from cli.terminal import clean, dump, fail, one_line


def test_the_examples_hold() -> None:
    assert doctest.testmod(terminal).failed == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08c\x9b31m", "abc31m"),
        ("user\u202egnp.exe", "usergnp.exe"),
        ("é 漢 😀\ttab\nline", "é 漢 😀\ttab\nline"),
    ],
)
def test_clean(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    assert not {unicodedata.category(each) for each in clean(text)} & {"Cs"}
    assert all(each in "\t\n" or unicodedata.category(each) != "Cc" for each in clean(text))
    assert "\n" not in one_line(text)
    assert len(one_line(text, 10)) <= 10


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists, max_leaves=5))
def test_json_says_the_same_and_steers_nothing(value: object) -> None:
    text = dump(value)
    assert json.loads(text) == value
    assert clean(text) == text


def test_fail_prints_one_line_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        fail(3, "two\nlines \x1b[1m")
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == "cacp: two lines\n"
