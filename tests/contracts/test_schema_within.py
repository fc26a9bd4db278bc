"""Each rule of schemas by name, in both directions of time and of sending."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from contracts.changes import ContractChange, ContractComparison
from contracts.compare import compare
from contracts.model import Interface
from contracts.recognise import read
from contracts.standalone import standalone

JsonObject = dict[str, Any]


def response(before: Any, after: Any) -> ContractComparison:
    """Two schemas of what a provider answers."""
    return _compared("response", before, after)


def request(before: Any, after: Any) -> ContractComparison:
    """Two schemas of what a consumer sends."""
    return _compared("request", before, after)


def _compared(part: str, before: Any, after: Any) -> ContractComparison:
    was, now = (read({"method": "POST", "path": "/a", part: one}) for one in (before, after))
    return compare(was, now)


def only(found: ContractComparison) -> ContractChange:
    assert len(found.changes) == 1, found.changes
    return found.changes[0]


def members(required: list[str] | None = None, /, **properties: Any) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
WHOLE: JsonObject = {"type": "integer"}
LIST: JsonObject = {"type": "array"}
ANY_OBJECT: JsonObject = {"type": "object"}

NARROWER: list[tuple[str, Any, Any]] = [
    ("type_changed", NUMBER, WHOLE),
    ("type_changed", {"type": ["string", "integer"]}, TEXT),
    ("null_removed", {"type": ["string", "null"]}, TEXT),
    ("bound_changed", TEXT, {**TEXT, "minLength": 1}),
    ("bound_changed", {**TEXT, "maxLength": 9}, {**TEXT, "maxLength": 8}),
    ("bound_changed", {**NUMBER, "minimum": 0}, {**NUMBER, "minimum": 1}),
    ("bound_changed", {**NUMBER, "minimum": 0}, {**NUMBER, "exclusiveMinimum": 0}),
    ("bound_changed", {**NUMBER, "exclusiveMaximum": 5}, {**NUMBER, "maximum": 4.5}),
    ("bound_changed", {**LIST, "maxItems": 3}, {**LIST, "maxItems": 2}),
    ("bound_changed", ANY_OBJECT, {**ANY_OBJECT, "minProperties": 1}),
    ("format_changed", {**WHOLE, "format": "int64"}, {**WHOLE, "format": "int32"}),
    ("uniqueness_changed", LIST, {**LIST, "uniqueItems": True}),
    ("multiple_changed", WHOLE, {**WHOLE, "multipleOf": 5}),
    ("multiple_changed", {**WHOLE, "multipleOf": 5}, {**WHOLE, "multipleOf": 10}),
    ("pattern_changed", TEXT, {**TEXT, "pattern": "^a"}),
    ("format_changed", TEXT, {**TEXT, "format": "uuid"}),
    ("format_changed", {**TEXT, "format": "uri-reference"}, {**TEXT, "format": "uri"}),
    ("enum_added", TEXT, {"enum": ["a", "b"]}),
    ("enum_value_removed", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    ("enum_value_removed", {"enum": ["a", "b"]}, {"const": "b"}),
    ("enum_value_removed", {"type": "boolean"}, {"const": True}),
    ("became_required", members(a=TEXT), members(["a"], a=TEXT)),
    ("closed", {**ANY_OBJECT}, {**ANY_OBJECT, "additionalProperties": False}),
    (
        "closed",
        {**members(a=TEXT), "additionalProperties": True},
        {**members(a=TEXT), "additionalProperties": False},
    ),
    ("type_changed", {**LIST, "items": NUMBER}, {**LIST, "items": WHOLE}),
    ("type_changed", members(a=members(b=NUMBER)), members(a=members(b=WHOLE))),
    (
        "type_changed",
        {**ANY_OBJECT, "additionalProperties": NUMBER},
        {**ANY_OBJECT, "additionalProperties": WHOLE},
    ),
    (
        "bound_changed",
        {"anyOf": [{**TEXT, "maxLength": 5}, NUMBER]},
        {"anyOf": [{**TEXT, "maxLength": 4}, NUMBER]},
    ),
    ("bound_changed", {**TEXT, "maxLength": 9}, {"allOf": [TEXT, {"maxLength": 4}]}),
    (
        "alternative_removed",
        {"oneOf": [members(["k"], k={"const": value}) for value in "abc"]},
        {"oneOf": [members(["k"], k={"const": value}) for value in "ab"]},
    ),
    (
        "bound_changed",
        {"type": "array", "prefixItems": [NUMBER, TEXT]},
        {"type": "array", "prefixItems": [NUMBER, {**TEXT, "minLength": 2}]},
    ),
]
"""Pairs of which the second allows less: by the rule's name when it is the newer one."""

OPPOSITE = {
    "null_removed": "null_added",
    "enum_added": "enum_removed",
    "enum_value_removed": "enum_value_added",
    "became_required": "became_optional",
    "closed": "opened",
    "alternative_removed": "alternative_added",
}


@pytest.mark.parametrize(("rule", "wide", "narrow"), NARROWER)
def test_what_is_sent_may_only_become_narrower_and_what_is_accepted_only_wider(
    rule: str, wide: Any, narrow: Any
) -> None:
    opposite = OPPOSITE.get(rule, rule)
    for compared, before, after, name, consumer, provider in (
        (response, wide, narrow, rule, "compatible", "breaking"),
        (response, narrow, wide, opposite, "breaking", "compatible"),
        (request, wide, narrow, rule, "breaking", "compatible"),
        (request, narrow, wide, opposite, "compatible", "breaking"),
    ):
        found = compared(before, after)
        change = only(found)
        effects = change.consumer, change.provider
        assert (change.rule, *effects) == (name, consumer, provider), found
        assert (found.verdict, found.provider) == (consumer, provider)
        assert change.side == compared.__name__


EQUAL: list[tuple[Any, Any]] = [
    ({"type": ["string", "null"]}, {"anyOf": [{"type": "null"}, TEXT]}),
    ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}),
    ({"const": 1}, {"enum": [1]}),
    ({"const": 1}, {"const": 1.0}),
    ({**WHOLE, "minimum": 1}, {**WHOLE, "exclusiveMinimum": 0}),
    ({**TEXT, "minLength": 0}, TEXT),
    (members(["a", "b"], a=TEXT), members(["b", "a"], a=TEXT)),
    ({"allOf": [members(a=TEXT), members(b=TEXT)]}, members(a=TEXT, b=TEXT)),
    (
        {"allOf": [{"minLength": 1}, {**TEXT, "maxLength": 2}]},
        {**TEXT, "maxLength": 2, "minLength": 1},
    ),
    ({"oneOf": [TEXT, NUMBER]}, {"type": ["string", "number"]}),
    (
        {**members(a=TEXT), "unevaluatedProperties": False},
        {**members(a=TEXT), "additionalProperties": False},
    ),
    ({"type": "array", "items": {}}, {"type": "array"}),
    (members(a={}), members(a=True)),
    ({**TEXT, "pattern": ".*"}, TEXT),
    ({**TEXT, "title": "A"}, {**TEXT, "title": "B", "description": "C", "examples": ["d"]}),
]


@pytest.mark.parametrize(("before", "after"), EQUAL)
def test_what_says_the_same_breaks_nobody(before: Any, after: Any) -> None:
    for compared in (request, response):
        for one, two in ((before, after), (after, before)):
            found = compared(one, two)
            assert (found.verdict, found.provider) == ("compatible", "compatible"), found
        assert compared(before, before).verdict == "same"


def test_a_member_that_is_new_is_sent_to_whom_does_not_know_it() -> None:
    before, after = members(a=TEXT), members(a=TEXT, b=TEXT)
    assert response(before, after).verdict == "compatible"
    assert response(before, after).provider == "compatible"
    new = only(request(before, after))
    assert (new.rule, new.consumer, new.provider) == ("member_added", "compatible", "unknown")


def test_a_member_that_is_gone_is_read_no_longer_or_not_sent_any_more() -> None:
    before, after = members(a=TEXT, b=TEXT), members(a=TEXT)
    lost = only(response(before, after))
    assert (lost.rule, lost.consumer, lost.provider) == ("member_removed", "breaking", "compatible")
    ignored = only(request(before, after))
    assert (ignored.rule, ignored.consumer) == ("member_removed", "unknown")


def test_a_closed_object_refuses_members_that_are_new() -> None:
    before = {**members(a=TEXT), "additionalProperties": False}
    after = {**members(a=TEXT, b=TEXT), "additionalProperties": False}
    assert only(response(before, after)).rule == "member_added"
    assert response(before, after).verdict == "breaking"
    assert request(before, after).verdict == "compatible"
    assert request(after, before).verdict == "breaking"


def test_members_that_only_one_side_sends_do_not_count_for_the_other() -> None:
    plain = members(["id", "name"], id=TEXT, name=TEXT)
    read_only = members(["id", "name"], id={**TEXT, "readOnly": True}, name=TEXT)
    assert request(plain, read_only).provider == "breaking"
    assert response(plain, read_only).verdict == "compatible"
    write_only = members(["id", "name"], id=TEXT, name={**TEXT, "writeOnly": True})
    assert response(plain, write_only).verdict == "breaking"
    assert request(plain, write_only).verdict == "compatible"


UNDECIDED: list[tuple[Any, Any]] = [
    ({**TEXT, "pattern": "^a+$"}, {**TEXT, "pattern": "^aa*$"}),
    ({"not": {"type": "string"}}, {"not": {"type": "number"}}),
    ({**LIST, "contains": TEXT}, {**LIST, "contains": NUMBER}),
    ({"oneOf": [{**NUMBER, "maximum": 5}, {**NUMBER, "minimum": 3}]}, NUMBER),
    ({**TEXT, "format": "order-number"}, {**TEXT, "format": "order-id"}),
    ({**WHOLE, "if": {"minimum": 3}, "then": {"multipleOf": 2}}, {**WHOLE, "if": {"minimum": 4}}),
    ({"$ref": "#/$defs/none"}, TEXT),
    ({"type": "text"}, TEXT),
]


@pytest.mark.parametrize(("before", "after"), UNDECIDED)
def test_what_cannot_be_decided_is_unknown_and_says_where(before: Any, after: Any) -> None:
    found = compare(read(before, "json-schema"), read(after, "json-schema"))
    assert "unknown" in (found.verdict, found.provider), found
    assert all(change.path.startswith("$") and change.why for change in found.changes)


def test_alternatives_together_accept_what_none_does_alone() -> None:
    """Only a value that none accepts makes it breaking: here every value fits one of them."""
    before = {**WHOLE, "minimum": 0, "maximum": 9}
    after = {"anyOf": [{**WHOLE, "maximum": 5}, {**WHOLE, "minimum": 5}]}
    assert request(before, after).verdict == "unknown"
    gap = {"anyOf": [{**WHOLE, "maximum": 2}, {**WHOLE, "minimum": 9}]}
    assert request({**WHOLE, "minimum": 0, "maximum": 8}, gap).verdict == "breaking"


def test_a_schema_that_holds_itself_is_compared_once() -> None:
    def tree(value: JsonObject) -> JsonObject:
        node = members(["value"], value=value, next={"$ref": "#/$defs/Node"})
        return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    found = compare(read(tree(WHOLE), "json-schema"), read(tree(NUMBER), "json-schema"))
    assert only(found).path == '$["$defs"].Node.properties.value.type'
    assert found.verdict == "breaking"


def test_a_change_of_a_shared_schema_is_told_once_with_those_it_concerns() -> None:
    def document(kind: str) -> JsonObject:
        user = {"$ref": "#/components/schemas/User"}
        body = {"content": {"application/json": {"schema": user}}}
        operation = {"responses": {"200": {"description": "ok", **body}}}
        return {
            "openapi": "3.1.0",
            "info": {"title": "t", "version": "1"},
            "paths": {f"/{name}": {"get": operation} for name in "abcd"},
            "components": {"schemas": {"User": members(id={"type": kind})}},
        }

    change = only(compare(read(document("integer")), read(document("string"))))
    assert change.path == "$.components.schemas.User.properties.id.type"
    assert change.why.endswith("Concerns GET /a, GET /b, GET /c and 1 more.")


@pytest.mark.parametrize("more", [{"additionalProperties": False}, {"additionalProperties": TEXT}])
def test_an_object_is_closed_or_opened_where_nothing_was_said(more: JsonObject) -> None:
    """A sender sends what its schema names. Whether it sends more can't be told."""
    was, now = members(a=TEXT), {**members(a=TEXT), **more}
    for compared, before, after, rule, consumer, provider in (
        (request, was, now, "closed", "unknown", "compatible"),
        (request, now, was, "opened", "compatible", "unknown"),
        (response, was, now, "closed", "compatible", "unknown"),
        (response, now, was, "opened", "unknown", "compatible"),
    ):
        change = only(compared(before, after))
        assert (change.rule, change.consumer, change.provider) == (rule, consumer, provider)


NULLABLE: list[JsonObject] = [
    {"type": "string"},
    {"type": "string", "enum": ["a"]},
    {"enum": ["a"]},
    {"type": "string", "const": "a"},
    {"allOf": [{"$ref": "#/components/schemas/A"}]},
    {"type": "string", "allOf": [{"$ref": "#/components/schemas/A"}]},
    {"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "integer"}]},
    {"type": "string", "not": {"type": "null"}},
]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize("schema", NULLABLE)
def test_nullable_adds_null_for_comparisons_and_for_validators(
    schema: JsonObject, version: str
) -> None:
    def document(schema: JsonObject) -> Interface:
        body = {"content": {"application/json": {"schema": members(a=schema)}}}
        document = {
            "openapi": version,
            "info": {"title": "t", "version": "1"},
            "paths": {"/a": {"get": {"responses": {"200": {"description": "ok", **body}}}}},
            "components": {"schemas": {"A": TEXT}},
        }
        return read(document)

    was, now = document(schema), document({**schema, "nullable": True})
    assert only(compare(was, now)).rule == "null_added"
    assert (compare(was, now).consumer, compare(was, now).provider) == ("breaking", "compatible")
    assert (compare(now, was).consumer, compare(now, was).provider) == ("compatible", "breaking")
    for interface, takes in ((was, False), (now, True)):
        sent = interface.operations[0].responses["200"].bodies["application/json"]
        validator = Draft202012Validator(standalone(interface, sent, "response"))
        assert validator.is_valid({"a": None}) is takes
        assert validator.is_valid({"a": "a"})


def test_openapi_3_0_reads_nullable_and_exclusive_bounds_its_own_way() -> None:
    def document(schema: JsonObject) -> JsonObject:
        body = {"content": {"application/json": {"schema": schema}}}
        return {
            "openapi": "3.0.3",
            "info": {"title": "t", "version": "1"},
            "paths": {"/a": {"get": {"responses": {"200": {"description": "ok", **body}}}}},
        }

    def verdict(before: JsonObject, after: JsonObject) -> str:
        return compare(read(document(before)), read(document(after))).verdict

    assert verdict(TEXT, {**TEXT, "nullable": True}) == "breaking"
    assert verdict({**TEXT, "nullable": True}, TEXT) == "compatible"
    exclusive = {**NUMBER, "minimum": 0, "exclusiveMinimum": True}
    assert verdict({**NUMBER, "minimum": 0}, exclusive) == "compatible"
    assert verdict(exclusive, {**NUMBER, "minimum": 0}) == "breaking"
