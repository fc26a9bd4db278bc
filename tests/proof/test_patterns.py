import re

import pytest

from proof.patterns import LENGTH_MAX, of_length, python_pattern, sized


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[a-z]+$", "abc", "1"),
        (r"^\p{Lu}\p{Ll}+$", "Ab", "ab"),
        (r"^[\p{L}\p{N}_.-]+$", "aé_9", "!"),
        (r"^\p{Script=Han}$", "\u4e00", "a"),
        (r"^(?<year>\d{4})$", "2026", "26"),
        (r"^\[\\p{$", "[\\p{", "p"),
        (r"^(?<!x)a$", "a", "b"),
    ],
)
def test_a_pattern_is_read_as_python_does(pattern: str, good: str, bad: str) -> None:
    plain = python_pattern(pattern)
    assert plain is not None
    assert re.search(plain, good)
    assert not re.search(plain, bad)


@pytest.mark.parametrize("pattern", ["[", r"\p{Unknown}", "(", "a" * (LENGTH_MAX + 1)])
def test_what_python_cannot_read_is_none(pattern: str) -> None:
    assert python_pattern(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "least", "most", "sized"),
    [
        ("^[a-z]+$", 3, 5, "[a-z]{3,5}"),
        (r"\d*", 0, None, r"\d{1,}"),
        (r"[^\]]+", 2, 2, r"[^\]]{2,2}"),
        ("^ab+$", 3, 5, "^ab+$"),
    ],
)
def test_one_repeated_class_takes_a_length(
    pattern: str, least: int, most: int | None, sized: str
) -> None:
    assert of_length(pattern, least, most) == sized


@pytest.mark.parametrize(
    ("text", "patterns", "least", "most", "expected"),
    [
        ("x", ["^x"], 3, None, "xxx"),
        ("xyz", ["^x"], 0, 2, "xy"),
        ("b-1", ["^b-1"], 5, 9, "b-111"),
        ("ab", ["b$"], 4, None, "abbb"),
        ("a.", [r"^a\.[a-z]*$"], 4, None, "a.aa"),
        ("", [], 2, None, "aa"),
        ("ab", ["^ab$"], 3, None, None),
    ],
)
def test_a_text_is_made_as_long_as_it_must_be(
    text: str, patterns: list[str], least: int, most: int | None, expected: str | None
) -> None:
    assert sized(text, patterns, least, most) == expected
