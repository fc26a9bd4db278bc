import json
from typing import Any

import pytest

from contracts.recognise import read
from proof.cases import Requests
from proof.endpoint_subject import EndpointSubject
from proof.exchange import operation_checks
from proof.learned import Learned
from proof.messages import WireAnswer, WireRequest
from proof.places import Steps
from proof.trial import ProbePlan, Trial
from proof.validators import SchemaValidator
from proof.violations import shown, violations, without

TEXT = {"type": "string"}
PAIR = {
    "oneOf": [
        {"type": "object", "required": ["t", "u"], "properties": {"t": {"const": "p"}, "u": TEXT}},
        {"type": "object", "required": ["t", "v"], "properties": {"t": {"const": "q"}, "v": TEXT}},
    ]
}
MEMBERS = {"type": "object", "properties": {"b": TEXT, "c": TEXT}}
TABLE: list[tuple[Any, Steps]] = [
    (TEXT, ("type",)),
    ({"type": ["string", "null"]}, ("type",)),
    ({"$ref": "#/$defs/part"}, ("$defs", "part", "maxLength")),
    ({"enum": ["s", "m"]}, ("enum",)),
    ({"const": "fixed"}, ("const",)),
    ({"type": "integer", "minimum": 3}, ("minimum",)),
    ({"type": "integer", "maximum": 30000}, ("maximum",)),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, ("exclusiveMinimum",)),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10}, ("exclusiveMaximum",)),
    ({"type": "integer", "multipleOf": 5, "minimum": 5, "maximum": 20}, ("multipleOf",)),
    ({"type": "number", "multipleOf": 0.01, "minimum": 0}, ("multipleOf",)),
    ({"type": "string", "minLength": 3, "maxLength": 8}, ("minLength",)),
    ({"type": "string", "minLength": 3, "maxLength": 60}, ("maxLength",)),
    ({"type": "string", "maxLength": 5000}, ("maxLength",)),
    ({"type": "string", "pattern": "^[A-Z]{2}[0-9]+$", "maxLength": 9}, ("maxLength",)),
    ({"type": "string", "pattern": "^[0-9]{5}$"}, ("pattern",)),
    ({"type": "string", "pattern": "^[a-z]+$", "minLength": 2}, ("pattern",)),
    *(
        ({"type": "string", "format": name}, ("format",))
        for name in ("date-time", "date", "time", "uuid", "email", "ipv4", "ipv6", "uri")
    ),
    ({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 4}, ("minItems",)),
    ({"type": "array", "items": TEXT, "minItems": 2, "maxItems": 4}, ("maxItems",)),
    ({"type": "array", "items": TEXT, "uniqueItems": True, "maxItems": 3}, ("maxItems",)),
    ({"type": "array", "items": TEXT, "uniqueItems": True, "maxItems": 3}, ("uniqueItems",)),
    ({"type": "array", "items": {"enum": ["x", "y"]}}, ("items", "enum")),
    ({"type": "array", "items": MEMBERS | {"required": ["b"]}}, ("items", "required", 0)),
    ({"type": "array", "prefixItems": [TEXT, TEXT], "items": False}, ("items",)),
    ({"type": "array", "prefixItems": [TEXT, {"type": "integer"}]}, ("prefixItems", 1, "type")),
    ({"type": "array", "contains": {"const": "x"}}, ("contains",)),
    (MEMBERS | {"required": ["b", "c"]}, ("required", 0)),
    (MEMBERS | {"required": ["b", "c"]}, ("required", 1)),
    (MEMBERS | {"additionalProperties": False}, ("additionalProperties",)),
    (MEMBERS | {"unevaluatedProperties": False}, ("unevaluatedProperties",)),
    (MEMBERS | {"minProperties": 1}, ("minProperties",)),
    (MEMBERS | {"maxProperties": 3}, ("maxProperties",)),
    (MEMBERS | {"maxProperties": 1, "additionalProperties": False}, ("maxProperties",)),
    (MEMBERS | {"dependentRequired": {"b": ["c"]}}, ("dependentRequired", "b", 0)),
    (MEMBERS | {"dependentSchemas": {"b": {"required": ["c"]}}}, ("dependentSchemas", "b")),
    ({"type": "object", "additionalProperties": TEXT}, ("additionalProperties", "type")),
    ({"type": "object", "patternProperties": {"^x": TEXT}}, ("patternProperties", "^x", "type")),
    ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, ("propertyNames",)),
    (PAIR, ("oneOf",)),
    (PAIR, ("oneOf", 0, "required", 1)),
    (PAIR, ("oneOf", 1, "required", 1)),
    (PAIR, ("oneOf", 1, "properties", "v", "type")),
    ({"anyOf": [TEXT, {"type": "null"}]}, ("anyOf",)),
    ({"anyOf": [TEXT | {"maxLength": 4}, {"type": "integer"}]}, ("anyOf", 0, "maxLength")),
    ({"allOf": [MEMBERS, {"type": "object", "required": ["c"]}]}, ("allOf", 1, "required", 0)),
    ({"type": "string", "not": {"const": "root"}}, ("not",)),
    (
        {"if": {"required": ["b"]}, "then": {"required": ["c"]}, "type": "object"},
        ("then", "required", 0),
    ),
]
IDS = [f"{number}-{'/'.join(map(str, pointer))}" for number, (_, pointer) in enumerate(TABLE)]


def whole(schema: Any) -> dict[str, Any]:
    """The schema as that of an optional member beside a required one."""
    part = {"type": "string", "maxLength": 7}
    return {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "it": schema},
        "required": ["id"],
        "$defs": {"part": part},
    }


def lax_of(pointer: Steps) -> Steps:
    return pointer if pointer[0] == "$defs" else ("properties", "it", *pointer)


@pytest.mark.parametrize(("schema", "pointer"), TABLE, ids=IDS)
def test_each_constraint_is_broken_alone(schema: Any, pointer: Steps) -> None:
    given = whole(schema)
    lax = SchemaValidator(without(given, lax_of(pointer)))
    broken = violations(given, lambda value: [value])
    assert broken.values != []
    assert not any(map(SchemaValidator(given).accepts, broken.values))
    assert any(map(lax.accepts, broken.values))
    assert broken == violations(given, lambda value: [value])


@pytest.mark.parametrize(("schema", "pointer"), TABLE, ids=IDS)
def test_a_provider_that_does_not_check_a_constraint_fails(schema: Any, pointer: Steps) -> None:
    """With each seed, and with few cases."""
    given = whole(schema)
    lax = SchemaValidator(without(given, lax_of(pointer)))

    class Lax:
        headers = ()

        def whole(self, request: WireRequest) -> WireRequest:
            return request

        def send(self, request: WireRequest) -> WireAnswer:
            try:
                value = json.loads(request.body or b"")
            except ValueError:
                return WireAnswer(400)
            return WireAnswer(200 if lax.accepts(value) else 400)

    content = {
        "method": "POST",
        "path": "/a",
        "request": given,
        "responses": {"200": {}, "4XX": {}},
        "$defs": given["$defs"],
    }
    for seed in range(1, 6):
        (check,) = operation_checks(read(content))
        requests = Requests(check, "", {}, {})
        sender: Any = Lax()
        subject = EndpointSubject(check, requests, Learned([check]))
        trial = Trial(subject, sender, ProbePlan(4, seed), lambda *_: None)
        trial.run()
        rules = {failure.rule for failure in trial.failures("http://h")}
        assert "accepts_body_schema" in rules


def test_each_other_type_is_tried() -> None:
    broken = violations({"type": "integer"}, lambda value: [value])
    kinds = {type(value) for value in broken.values}
    assert kinds == {str, type(None), bool, list, dict, float}


def test_a_place_in_a_definition_that_refers_to_itself_is_reached() -> None:
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 3}, "child": {"$ref": "#/$defs/t"}},
    }
    schema = {"$ref": "#/$defs/t", "$defs": {"t": tree}}
    values = violations(schema, lambda value: [value]).values
    assert {"name": "texx"} in values
    assert {"child": {"name": "texx"}} in values
    assert {"child": 7} in values


def test_what_cannot_be_broken_is_named() -> None:
    schema = {
        "type": "object",
        "properties": {"any": {"type": "string", "pattern": "^.*", "minLength": 0}},
    }
    broken = violations(schema, lambda value: [value])
    assert shown(broken.unbroken, "body") == ["body/any: pattern", "body/any: minLength"]


def test_nothing_is_broken_that_cannot_be_sent() -> None:
    assert violations({"type": "integer"}, lambda value: []).values == []


def test_a_part_of_a_schema_is_left_out() -> None:
    schema = {"required": ["a", "b"], "properties": {"a": {"type": "string", "minLength": 1}}}
    assert without(schema, ("required", 0))["required"] == ["b"]
    assert without(schema, ("properties", "a", "type"))["properties"] == {"a": {"minLength": 1}}
