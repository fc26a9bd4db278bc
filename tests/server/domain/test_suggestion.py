"""Suggested changes as content."""

import doctest
from typing import Any

import pytest
from hypothesis import given

from server.domain import suggestion
from server.domain.suggestion import suggested_content
from tests.support.contents import CONTENTS, JSON

CONTENT = {"path": "/a", "body": {"n": 1, "m": 2}}


def test_the_examples() -> None:
    assert doctest.testmod(suggestion).failed == 0


@pytest.mark.parametrize(
    ("suggested", "content"),
    [
        ({"path": "/b", "body": 1}, {"path": "/b", "body": 1}),
        ({"body": {"n": None}}, {"path": "/a", "body": {"m": 2}}),
        ({"path": "/b", "new": 1}, {"path": "/b", "body": {"n": 1, "m": 2}, "new": 1}),
        ({"note": "rename it"}, None),
        ("rename it", None),
        (["rename it"], None),
    ],
)
def test_what_is_asked_for(suggested: Any, content: Any) -> None:
    assert suggested_content(CONTENT, suggested) == content


@given(CONTENTS, JSON)
def test_it_takes_any_json_and_changes_nothing(content: dict[str, Any], suggested: Any) -> None:
    before = repr(content)
    suggested_content(content, suggested)
    assert repr(content) == before
