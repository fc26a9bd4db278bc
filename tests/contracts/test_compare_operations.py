"""Operations: what came and went, statuses, security, placeholders."""

from typing import Any

import pytest

from contracts.changes import ContractComparison
from contracts.compare import compare
from contracts.recognise import read

JsonObject = dict[str, Any]


def document(**paths: JsonObject) -> JsonObject:
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {f"/{name}": item for name, item in paths.items()},
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def answers(*statuses: str) -> JsonObject:
    return {"responses": {status: {"description": "it"} for status in statuses}}


def compared(before: JsonObject, after: JsonObject) -> ContractComparison:
    return compare(read(before), read(after))


def only(before: JsonObject, after: JsonObject) -> tuple[str, str, str]:
    """The rule, and the effects on consumers and providers, of the only change."""
    found = compared(before, after)
    assert len(found.changes) == 1, found
    change = found.changes[0]
    return change.rule, change.consumer, change.provider


def test_an_operation_comes_or_goes() -> None:
    less, more = (
        document(a={"get": answers("200")}),
        document(a={"get": answers("200"), "put": answers("200")}),
    )
    assert only(less, more) == ("operation_added", "compatible", "breaking")
    assert only(more, less) == ("operation_removed", "breaking", "compatible")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (("200",), ("200", "404"), ("response_added", "compatible", "compatible")),
        (("200", "404"), ("200",), ("response_removed", "compatible", "compatible")),
        (("200",), ("200", "202"), ("response_added", "breaking", "compatible")),
        (("200", "202"), ("200",), ("response_removed", "compatible", "breaking")),
        (("200",), ("200", "default"), ("response_added", "compatible", "compatible")),
        # Of a default alone nobody knows which successes it is for.
        (("default",), ("200",), ("response_removed", "compatible", "unknown")),
        (("200",), ("default",), ("response_added", "unknown", "compatible")),
        (("200", "default"), ("200",), ("response_removed", "compatible", "compatible")),
    ],
)
def test_statuses(before: Any, after: Any, expected: tuple[str, str, str]) -> None:
    was, now = (document(a={"get": answers(*each)}) for each in (before, after))
    assert only(was, now) == expected


def test_another_status_of_success_breaks_both_sides() -> None:
    was, now = (document(a={"get": answers(status)}) for status in ("200", "201"))
    found = compared(was, now)
    assert {change.rule for change in found.changes} == {"response_added", "response_removed"}
    assert (found.verdict, found.provider) == ("breaking", "breaking")


def test_a_range_of_statuses_holds_each_of_them() -> None:
    was, now = (document(a={"get": answers(status)}) for status in ("2XX", "200"))
    assert compared(was, now).verdict == "compatible"


def test_security() -> None:
    def secured(*alternatives: JsonObject) -> JsonObject:
        return document(a={"get": {**answers("200"), "security": list(alternatives)}})

    assert only(secured(), secured({"key": []})) == ("security_changed", "breaking", "compatible")
    assert only(secured({"key": []}), secured()) == ("security_changed", "compatible", "breaking")
    assert only(secured({"key": []}), secured({"key": []}, {})) == (
        "security_changed",
        "compatible",
        "breaking",
    )
    assert only(secured({"key": ["a"]}), secured({"key": ["a", "b"]})) == (
        "security_changed",
        "breaking",
        "compatible",
    )


def test_a_placeholder_may_have_another_name_and_not_another_place() -> None:
    def endpoint(path: str) -> JsonObject:
        return {"method": "GET", "path": path, "response": {"a": "string"}}

    assert only(endpoint("/a/{id}"), endpoint("/a/{name}")) == (
        "placeholder_renamed",
        "compatible",
        "compatible",
    )
    swapped = compared(endpoint("/{a}/{b}"), endpoint("/{b}/{a}"))
    assert swapped.verdict == "unknown"
    moved = compared(endpoint("/a"), endpoint("/b"))
    assert [change.rule for change in moved.changes] == ["path_changed"]
    assert (moved.verdict, moved.provider) == ("breaking", "breaking")


def test_an_endpoint_with_another_method_is_still_compared() -> None:
    before = {"method": "GET", "path": "/a", "response": {"a": "string"}}
    after = {"method": "POST", "path": "/a", "response": {"a": "integer"}}
    rules = {change.rule for change in compared(before, after).changes}
    assert rules == {"method_changed", "type_changed"}


def test_a_webhook_is_sent_by_the_provider() -> None:
    """Its request is what consumers receive: a member that is new and required breaks nobody who
    ignores it, one that is gone breaks who reads it."""

    def hook(*names: str) -> JsonObject:
        members = {name: {"type": "string"} for name in names}
        schema = {"type": "object", "properties": members, "required": list(names)}
        body = {"content": {"application/json": {"schema": schema}}}
        whole = document()
        return whole | {"webhooks": {"paid": {"post": {"requestBody": body, **answers("200")}}}}

    assert compared(hook("a"), hook("a", "b")).verdict == "compatible"
    gone = compared(hook("a", "b"), hook("a"))
    assert gone.verdict == "breaking"
    assert gone.changes[0].side == "response"
