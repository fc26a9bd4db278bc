"""JSON as text."""

import doctest

import pytest

from contracts import json_text
from contracts.json_text import (
    PATH_MAX,
    TEXT_MAX,
    path_text,
    same,
    short_text,
    shown,
    text_of,
    value_key,
)


def test_its_examples() -> None:
    assert doctest.testmod(json_text).failed == 0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, True, False),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (None, False, False),
        ("\ud800", "\ud800", True),
        (10**400, 10**400, True),
    ],
)
def test_what_is_the_same(before: object, after: object, expected: bool) -> None:
    assert same(before, after) is expected
    assert (text_of(before) == text_of(after)) is expected


def test_texts_are_cut_and_null_is_told_from_nothing() -> None:
    assert short_text(None) is None
    assert short_text(shown(None)) == "null"
    assert len(short_text("a" * 1_000_000) or "") == TEXT_MAX
    assert len(path_text(("a" * 500, "b"))) == PATH_MAX
    assert path_text(("a b", 0, "é")) == '$["a b"][0]["é"]'


def test_what_is_nested_too_deeply_has_a_text_too() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    assert text_of(deep) == "…"
    assert short_text(deep) == "…"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ("1", 1, False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (2**53 + 1, float(2**53), False),
        (10**20, 1e20, True),
        (0.0, -0.0, True),
        (None, "null", False),
    ],
)
def test_the_key_of_a_value_is_that_of_its_equals(
    first: object, second: object, expected: bool
) -> None:
    assert (value_key(first) == value_key(second)) is expected
