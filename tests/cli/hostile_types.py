"""Contracts made to break generators of types: words of code where names and values stand."""

import random
from typing import Any

WORDS = (
    *("a", "b", "class", "self", "_id", "__class__", "int", "List", "Any", "TypedDict", "Name"),
    *('"""', "'''\nimport os\n", "\\", 'x"); import os; ("', "*/ evil(); /*", "${x}", "{{ 7*7 }}"),
    *("", " ", "🙂", "ü", "\u202e", "\ud800", "$ref", "1a", "None", "True", "a.b", "# x", "mro"),
)
KEYWORDS = (
    *("type", "properties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not"),
    *("additionalProperties", "title", "description", "default", "prefixItems", "required"),
    *("patternProperties", "format", "pattern", "x-enum-varnames", "customTypePath", "tsType"),
)
TYPES = ("string", "integer", "object", "array", "null", "number", ["string", "null"], ["array"])
DEFINITIONS = ("a", "Name", "Any", "TypedDict")


def hostile_schema(seed: int) -> dict[str, Any]:
    """A JSON Schema of hostile words, the same for the same seed."""
    draw = random.Random(seed)
    definitions = {name: _schema(draw, 3) for name in DEFINITIONS}
    members = {word: _schema(draw, 3) for word in draw.sample(WORDS, 4)}
    return {"type": "object", "properties": members, "$defs": definitions}


def _schema(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.1:
        reference = {"$ref": f"#/$defs/{draw.choice(DEFINITIONS)}"}
        return draw.choice([True, False, {}, {"type": "string"}, {"type": "object"}, reference])
    return {word: _value(draw, word, depth - 1) for word in draw.sample(KEYWORDS, 4)}


def _value(draw: random.Random, keyword: str, depth: int) -> Any:
    match keyword:
        case "type":
            return draw.choice(TYPES)
        case "properties" | "patternProperties":
            return {draw.choice(WORDS): _schema(draw, depth) for _ in range(3)}
        case "anyOf" | "oneOf" | "allOf" | "prefixItems":
            return [_schema(draw, depth) for _ in range(draw.randint(0, 2))]
        case "items" | "additionalProperties" | "not":
            return _schema(draw, depth)
        case "enum":
            return [draw.choice([*WORDS, 1, 2.5, None, True, {"$ref": "http://x"}])]
        case "required":
            return draw.sample(WORDS, 2)
        case "$ref":
            return f"#/$defs/{draw.choice(DEFINITIONS)}"
    return draw.choice(WORDS)
