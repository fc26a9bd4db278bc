"""What is called plain is read without a warning."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.plain_endpoint import is_plain_endpoint
from contracts.recognise import dialect_of, read
from tests.support.contents import CONTENTS, JSON
from tests.support.team import CONTENT

KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", "a"])
NAMES = st.sampled_from(["id", "type", "properties", "required", "items", "title", "$ref"])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({"type": KINDS}) | JSON,
    lambda inner: st.fixed_dictionaries(
        {"type": KINDS},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "items": inner,
            "title": st.text(max_size=2) | JSON,
        },
    ),
    max_leaves=8,
)
ENDPOINTS = st.fixed_dictionaries(
    {"method": st.sampled_from(["GET", "POST", "get", "FETCH"])},
    optional={
        "path": st.sampled_from(["/a", "/a/{b}", "/a/:b", "a", "", "/"]) | JSON,
        "headers": st.dictionaries(
            st.sampled_from(["Authorization", "x-id", "", "a b"]),
            st.sampled_from(["string", "Bearer {token}", "integer?", ""]) | JSON,
            max_size=2,
        )
        | JSON,
        "requestBody": SCHEMAS,
        "responseBody": SCHEMAS,
        "description": st.text(max_size=3) | JSON,
    },
)


@given(ENDPOINTS | CONTENTS)
def test_a_plain_endpoint_has_nothing_odd(content: dict[str, Any]) -> None:
    if is_plain_endpoint(content):
        interface = read(content)
        assert (interface.dialect, interface.warnings) == ("endpoint", ())
        assert dialect_of(content) == "endpoint"


@pytest.mark.parametrize(
    "content",
    [
        CONTENT,
        {
            "method": "POST",
            "path": "/a",
            "requestBody": {"type": "array", "items": {"type": "null"}},
        },
        {"method": "DELETE", "path": "/a/b"},
    ],
)
def test_usual_endpoints_are_plain(content: dict[str, Any]) -> None:
    assert is_plain_endpoint(content)
