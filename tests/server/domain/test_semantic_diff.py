"""The semantic difference of two contents."""

import doctest
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain import semantic_diff as module
from server.domain.content_changes import CHANGES_MAX
from server.domain.semantic_diff import semantic_diff

WORDS = st.sampled_from(
    ["method", "path", "request", "requestBody", "response", "responses", "200", "content",
     "application/json", "schema", "type", "properties", "required", "enum", "items", "openapi",
     "paths", "/a", "get", "description", "additionalProperties", "minimum", "$ref", "anyOf", "a",
     "nullable"]
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["string", "integer?", "object", "array", "POST", "/a/{b}", "a|b", "\ud800"])
    | st.just(10**400)
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)
CONTENTS = st.dictionaries(WORDS, JSON, max_size=5)
MIRRORED = {
    "value_added": "value_removed",
    "member_added": "member_removed",
    "required_member_added": "required_member_removed",
    "became_required": "became_optional",
    "enum_added": "enum_removed",
    "enum_value_added": "enum_value_removed",
    "closed": "opened",
    "operation_added": "operation_removed",
}
MIRRORED |= {removed: added for added, removed in MIRRORED.items()}


def test_the_examples() -> None:
    assert doctest.testmod(module).failed == 0


@given(CONTENTS)
def test_the_same_content_has_no_change(content: dict[str, Any]) -> None:
    diff = semantic_diff(content, content)
    assert (diff.verdict, diff.changes, diff.more) == ("same", [], 0)


@given(CONTENTS, CONTENTS)
def test_the_reversed_diff_swaps_what_was_added_and_removed(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    forth, back = semantic_diff(before, after), semantic_diff(after, before)
    mirrored = Counter(
        (c.path, MIRRORED.get(c.rule, c.rule), c.after, c.before) for c in back.changes
    )
    assert Counter((c.path, c.rule, c.before, c.after) for c in forth.changes) == mirrored


@given(CONTENTS, CONTENTS)
def test_the_verdicts_follow_from_the_changes(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    diff = semantic_diff(before, after)
    sides = {diff.provider, diff.consumer}
    assert (diff.verdict == "breaking") == ("breaking" in sides)
    assert (diff.verdict == "same") == (not diff.changes)
    assert ("breaking" in {change.provider for change in diff.changes}) == (
        diff.provider == "breaking"
    )


def test_an_endpoint() -> None:
    before = {
        "method": "POST",
        "path": "/coupons/{id}",
        "description": "Apply",
        "request": {"code": "string"},
        "response": {"discount": "number"},
        "responses": {"404": {"error": "string"}},
        "headers": {"Authorization": "Bearer"},
    }
    after = {
        "method": "post",
        "path": "/coupons/{coupon}",
        "description": "Apply a coupon",
        "request": {"code": "string", "cart": "string"},
        "response": {"discount": "number", "note": "string?"},
        "responses": {"404": {"error": "string", "code": "integer"}, "409": {"error": "string"}},
        "headers": {"Authorization": "Basic"},
    }
    diff = semantic_diff(before, after)
    assert [(c.path, c.rule, c.provider, c.consumer) for c in diff.changes] == [
        ("$.path", "path_changed", "unknown", "unknown"),
        ("$.description", "annotation_changed", "compatible", "compatible"),
        ("$.request.cart", "required_member_added", "compatible", "breaking"),
        ("$.response.note", "member_added", "compatible", "compatible"),
        ('$.responses["404"].code', "required_member_added", "breaking", "compatible"),
        ('$.responses["409"]', "value_added", "unknown", "unknown"),
        ("$.headers.Authorization", "value_changed", "unknown", "unknown"),
    ]
    assert (diff.verdict, diff.provider, diff.consumer) == ("breaking", "breaking", "breaking")


@pytest.mark.parametrize("change", [{"method": "PUT"}, {"path": "/other"}])
def test_another_method_or_path_breaks_both_sides(change: dict[str, str]) -> None:
    before = {"method": "POST", "path": "/a"}
    diff = semantic_diff(before, before | change)
    assert (diff.provider, diff.consumer) == ("breaking", "breaking")


def test_openapi() -> None:
    def document(schema: Any, **more: Any) -> dict[str, Any]:
        body = {"description": "ok", "content": {"application/json": {"schema": schema}}}
        get = {"responses": {"200": body}, "requestBody": {"content": {}} | more}
        return {"openapi": "3.1.0", "paths": {"/a": {"get": get}}}

    total = {"type": "object", "properties": {"total": {"type": "number"}}}
    before = document(total | {"required": ["total"]})
    after = document(total, required=True)
    after["paths"]["/b"] = {"put": {}}
    at = '$.paths["/a"].get'
    diff = semantic_diff(before, after)
    assert [(c.path, c.rule, c.provider, c.consumer) for c in diff.changes] == [
        (
            at + '.responses["200"].content["application/json"].schema.properties.total',
            "became_optional",
            "compatible",
            "breaking",
        ),
        (at + ".requestBody", "became_required", "compatible", "breaking"),
        ('$.paths["/b"].put', "operation_added", "breaking", "compatible"),
    ]


def test_a_schema_whose_use_is_not_known_breaks_only_what_no_use_allows() -> None:
    before = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    after = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}}
    diff = semantic_diff(before, after)
    assert [(c.path, c.provider, c.consumer) for c in diff.changes] == [
        ("$.properties.a.type", "breaking", "breaking"),
        ("$.properties.b.type", "unknown", "unknown"),
    ]


def test_content_of_another_dialect_is_listed_and_not_judged() -> None:
    diff = semantic_diff({"proto": "message A {}"}, {"proto": "message B {}", "n": 1})
    assert [(c.path, c.rule) for c in diff.changes] == [
        ("$.proto", "value_changed"),
        ("$.n", "value_added"),
    ]
    assert diff.verdict == "unknown"


def test_large_contents_are_compared_in_part() -> None:
    before = {"response": {f"m{n}": "string" for n in range(30_000)}}
    after = {"response": {f"m{n}": "integer" for n in range(30_000)}}
    diff = semantic_diff(before, after)
    assert len(diff.changes) == CHANGES_MAX
    assert diff.more > CHANGES_MAX
