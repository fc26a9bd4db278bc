"""Canonical JSON and its digest (RFC 8785; design §5)."""

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from server.domain.canonical import MAX_DEPTH, MAX_SAFE_INTEGER, canonical, digest
from server.domain.errors import InvalidInput

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_it_is_what_rfc_8785_says(content: Any) -> None:
    assert canonical(content) == rfc8785.dumps(content)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXT, JSON, max_size=5), st.randoms())
def test_the_digest_is_the_same_in_any_order_of_members(content: dict[str, Any], dice: Any) -> None:
    members = list(content.items())
    dice.shuffle(members)
    assert digest(dict(members)) == digest(content)
    assert digest(json.loads(json.dumps(content))) == digest(content)


def test_the_digest_is_stable() -> None:
    content = {"path": "/users", "method": "GET"}
    assert canonical(content) == b'{"method":"GET","path":"/users"}'
    assert digest(content) == hashlib.sha256(canonical(content)).hexdigest()
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"n": 1.0}, '{"n":1}'),
        ({"n": 1e-7}, '{"n":1e-7}'),
        ({"n": -0.0}, '{"n":0}'),
        ({"😀": 1, "\ufb33": 2}, '{"😀":1,"\ufb33":2}'),
    ],
)
def test_numbers_and_names_that_other_writers_put_differently(content: Any, text: str) -> None:
    """RFC 8785 §3.2.2.3 (as ECMAScript prints numbers) and §3.2.3 (sorted by UTF-16)."""
    assert canonical(content).decode() == text


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**80])
def test_an_integer_beyond_2_to_the_53_is_refused_with_its_path(number: int) -> None:
    with pytest.raises(InvalidInput) as refused:
        canonical({"a": [0, {"max id": number}]})
    assert refused.value.data["path"] == "content.a[1].max id"
    assert refused.value.message == (
        f"content.a[1].max id is {number}: an integer that exceeds 2^53 - 1; send it as a string"
    )


@pytest.mark.parametrize("number", [2.0**53, -1e21, json.loads("1e300")])
def test_a_number_that_may_have_been_a_larger_integer_is_refused(number: float) -> None:
    """The parser turns integers of more than 64 bits into floats."""
    with pytest.raises(InvalidInput, match=r"content\.a is .* may have lost digits; send it"):
        canonical({"a": number})


def test_nesting_beyond_the_limit_is_refused_with_its_path() -> None:
    assert canonical(nested(MAX_DEPTH))
    with pytest.raises(InvalidInput, match=r"^suggestedChange(\[0\]){64} is nested deeper than 64"):
        canonical(nested(MAX_DEPTH + 1), "suggestedChange")


def test_very_deep_content_is_refused_before_it_costs_anything() -> None:
    with pytest.raises(InvalidInput):
        canonical(nested(100_000))
