"""Fits arguments to a tool's JSON Schema: agents name the same argument in many ways."""

import re
from collections.abc import Mapping

from pydantic import JsonValue

from comply.template import Variables, fill
from schemas.jsont import JsonObject


def fitted(template: JsonValue, schema: JsonObject, values: Variables) -> JsonValue:
    """`template` in the shape that `schema` demands, with `values` filled in.

    An object's keys are regexes that must match a property's whole name, whatever the case; where
    the schema has no properties, the keys are the names. A required property that no key matches
    gets the least value that the schema allows.
    """
    kind = kind_of(schema)
    if isinstance(template, dict):
        return _object(template, schema, values)
    if isinstance(template, list):
        inner = _schema(schema.get("items"))
        return [fitted(element, inner, values) for element in template]
    text = fill(template, values)
    if kind == "array":
        return [text]
    if not allowed(text, schema):
        return least(schema)
    return text


def _object(template: Mapping[str, JsonValue], schema: JsonObject, values: Variables) -> JsonObject:
    properties, required = _schema(schema.get("properties")), schema.get("required")
    if not properties:
        return {name: fitted(value, {}, values) for name, value in template.items()}
    made: JsonObject = {}
    for name, inner in properties.items():
        for pattern, value in template.items():
            if re.fullmatch(pattern, name, re.IGNORECASE):
                made[name] = fitted(value, _schema(inner), values)
                break
        else:
            if isinstance(required, list) and name in required:
                made[name] = least(_schema(inner))
    return made


def least(schema: JsonObject) -> JsonValue:
    """A small value that the schema allows."""
    if "const" in schema:
        return schema["const"]
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    for name in ("anyOf", "oneOf", "allOf"):
        ways = schema.get(name)
        if isinstance(ways, list) and ways:
            return least(_schema(ways[0]))
    kind = kind_of(schema)
    if kind == "object":
        return _object({}, schema, {})
    if kind == "array":
        few = schema.get("minItems")
        return [least(_schema(schema.get("items")))] * (few if isinstance(few, int) else 0)
    if kind in ("integer", "number"):
        lowest = schema.get("minimum", 0)
        return lowest if isinstance(lowest, int | float) else 0
    return {"boolean": False, "null": None}.get(kind, "comply")


def kind_of(schema: JsonObject) -> str:
    """The type that a schema names, in lower case (Gemini writes STRING); of several, the first."""
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    if isinstance(kind, str):
        return kind.lower()
    return "object" if "properties" in schema else ""


def allowed(value: JsonValue, schema: JsonObject) -> bool:
    choices = schema.get("enum")
    return not isinstance(choices, list) or value in choices


def _schema(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}
