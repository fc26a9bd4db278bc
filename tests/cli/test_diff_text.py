"""What a person sees of a change has its lines, and no secret."""

import doctest

import pytest

from cli import diff_text
from cli.diff_text import diff_lines, masked


def test_the_examples_hold() -> None:
    assert doctest.testmod(diff_text).failed == 0


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('"GITHUB_TOKEN": "abc"', '"GITHUB_TOKEN": "…"'),
        ("password = 'p w'", "password = '…'"),
        ('"Authorization": "Bearer x\\"y"', '"Authorization": "…"'),
        ("url = 'https://x/?t=ghp_0123456789abcdefghij'", "url = 'https://x/?t=…'"),
        ('"key": "${CACP_KEY}"', '"key": "${CACP_KEY}"'),
        ('"key_file": "~/.config/cacp/a.key"', '"key_file": "~/.config/cacp/a.key"'),
        ("see /home/ann/project-2024-final/readme1", "see /home/ann/project-2024-final/readme1"),
    ],
)
def test_secrets_are_masked(line: str, shown: str) -> None:
    assert masked(line) == shown


@pytest.mark.parametrize("part", ["a", "key", "a+", "key ", "key='", "key=\\", "- "])
def test_a_long_line_is_no_burden(part: str) -> None:
    """A repository may hold a settings file of one line. In quadratic time this takes an hour."""
    line = part * (200_000 // len(part))
    assert masked(line)


def test_places_that_are_apart_have_a_gap_between_them() -> None:
    before = "".join(f"{number}\n" for number in range(9))
    after = before.replace("1\n", "x\n").replace("7\n", "")
    assert list(diff_lines(before, after)) == [" 0", "-1", "+x", " 2", "…", " 6", "-7", " 8"]
    assert list(diff_lines(None, "a\n")) == ["+a"]
    assert list(diff_lines("a\n", None)) == ["-a"]
    assert list(diff_lines(None, None)) == []
