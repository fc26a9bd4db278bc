"""The shorthand that agents write for the shape of JSON, made into JSON Schema.

`{"email": "string", "age": "integer?", "tags": ["string"], "kind": "string|null"}`
"""

from collections.abc import Callable, Mapping
from typing import Any

from contracts.model import Located, Path
from contracts.reading import at, shown

TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
SHORT = {"int": "integer", "float": "number", "bool": "boolean", "str": "string"}
FORMATS = {
    "uuid": "uuid", "email": "email", "uri": "uri", "url": "uri", "date": "date",
    "datetime": "date-time", "date-time": "date-time",
}  # fmt: skip
"""Names of formats that stand for a string of that format."""
DEPTH_MAX = 60
TEXT_MAX = 200
WORDS = frozenset(
    {"title", "description", "summary", "$comment", "example", "examples", "deprecated", "tags"}
)
_KEYWORDS = WORDS | frozenset(
    {
        "type", "nullable", "enum", "const", "required", "properties", "items", "format",
        "additionalProperties", "patternProperties", "pattern", "multipleOf", "uniqueItems",
        "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties",
        "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties",
        "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
        "default", "readOnly", "writeOnly", "$schema", "$id", "$defs", "definitions", "$anchor",
        "prefixItems", "contains", "minContains", "maxContains", "propertyNames",
        "dependentRequired", "dependentSchemas", "dependencies", "discriminator",
        "additionalItems", "unevaluatedItems", "unevaluatedProperties",
        "contentEncoding", "contentMediaType", "contentSchema", "$dynamicRef", "$dynamicAnchor",
        "x-files",
    }
)  # fmt: skip

Note = Callable[[Located, str], None]
"""Takes what can't be read, and what would be right."""


def is_schema(value: Any) -> bool:
    """Whether a value is a JSON Schema rather than shorthand, whose members may be named alike."""
    if not isinstance(value, Mapping) or not value.keys() <= _KEYWORDS:
        return False
    kind = value.get("type")
    named = kind in TYPES if isinstance(kind, str) else isinstance(kind, list)
    plain = isinstance(value.get("$ref"), str) or isinstance(value.get("enum"), list)
    joined = any(isinstance(value.get(name), list) for name in ("allOf", "anyOf", "oneOf"))
    is_clear = named or plain or joined or "const" in value or isinstance(value.get("$schema"), str)
    return is_clear or isinstance(value.get("properties"), dict)


def is_shorthand(value: Any, levels: int = DEPTH_MAX) -> bool:
    """Whether a value is shorthand throughout: each end of it names a type."""
    if isinstance(value, str):
        return type_of(value) is not None
    if is_schema(value):
        return True
    if not levels or not isinstance(value, dict | list) or not value:
        return False
    if isinstance(value, list):
        return len(value) == 1 and is_shorthand(value[0], levels - 1)
    return all(is_shorthand(part, levels - 1) for part in value.values())


def type_of(text: str) -> Any:
    """The schema that a text names, `string`, `integer[]` or `string|null`; None if it names none.

    A question mark at its end is not looked at: it is about the member.
    """
    if len(text) > TEXT_MAX:
        return None
    names = [name.strip() for name in text.strip().removesuffix("?").split("|")]
    named = [_named(name) for name in names]
    schemas = [schema for schema in named if schema is not None]
    if len(schemas) < len(named):
        return None
    if len(schemas) == 1:
        return schemas[0]
    if all(schema.keys() == {"type"} for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}
    return {"anyOf": schemas}


def _named(name: str) -> dict[str, Any] | None:
    if name.endswith("[]"):
        items = _named(name[:-2])
        return None if items is None else {"type": "array", "items": items}
    if name == "any":
        return {}
    if name in FORMATS:
        return {"type": "string", "format": FORMATS[name]}
    kind = SHORT.get(name, name)
    return {"type": kind} if kind in TYPES else None


class ShorthandSchema(dict[str, Any]):
    """A JSON Schema that was made of shorthand: what it says stands directly in the content,
    without the steps `properties` and `items`. `written` has the members' names there."""

    written: Mapping[str, str] = {}

    def below(self, steps: Path) -> Path:
        """The steps to a keyword or schema of it, as the content writes them."""
        if steps[0] == "properties":
            name, *rest = steps[1:]
            return (self.written.get(str(name), name), *rest)
        return (0,) if steps[0] == "items" else ()


class ShorthandReader:
    """Makes shorthand into JSON Schema. `schemas` are the JSON Schemas that stand in it."""

    def __init__(self, note: Note) -> None:
        self.schemas: list[Located] = []
        self._note = note

    def schema(self, place: Located) -> Any:
        """The JSON Schema of what stands at a place: a schema as it is, shorthand made into one.

        What names no type is noted and stands in it as it is, which is no schema.
        """
        if isinstance(place.schema, bool):
            return place.schema
        return self._converted(place, DEPTH_MAX)

    def member(self, place: Located) -> tuple[Any, bool]:
        """The schema of a member or parameter, and whether it is always there: unless a question
        mark ends it, or it is a schema that has a `default` or says `required: false`."""
        return self._member(place, DEPTH_MAX)

    def _converted(self, place: Located, levels: int) -> Any:
        value = place.schema
        if is_schema(value):
            self.schemas.append(place)
            return value
        if isinstance(value, str) and (schema := type_of(value)) is not None:
            return ShorthandSchema(schema)
        if isinstance(value, dict) and levels:
            return self._object(place, levels - 1)
        if isinstance(value, list) and len(value) == 1 and levels:
            items, _ = self._member(at(place, 0), levels - 1)
            return ShorthandSchema(type="array", items=items)
        self._note(place, _right(value, levels))
        return _kept(value)

    def _object(self, place: Located, levels: int) -> Any:
        properties, required, written = {}, [], {}
        for name in place.schema:
            plain = name.removesuffix("?")
            schema, is_needed = self._member(at(place, name), levels)
            if plain in place.schema:
                plain = name
            properties[plain] = schema
            written[plain] = name
            if is_needed and plain == name:
                required.append(plain)
        schema = ShorthandSchema(type="object", properties=properties, required=required)
        schema.written = written
        return schema

    def _member(self, place: Located, levels: int) -> tuple[Any, bool]:
        value = place.schema
        if is_schema(value):
            required = value.get("required")
            if isinstance(required, bool):
                value = {name: part for name, part in value.items() if name != "required"}
                place = Located(value, place.path, place.file)
            is_needed = required if isinstance(required, bool) else "default" not in value
            return self._converted(place, levels), is_needed
        schema = self._converted(place, levels)
        if isinstance(value, str):
            return schema, type_of(value) is not None and not value.rstrip().endswith("?")
        return schema, _says_something(schema)


def _says_something(schema: Any) -> bool:
    """Whether anything in shorthand names a type: if nothing does, it may be an example."""
    if not isinstance(schema, dict) or "properties" not in schema:
        return isinstance(schema, dict)
    return any(_says_something(part) for part in schema["properties"].values())


def _right(value: Any, levels: int) -> str:
    if not levels:
        return f"Shorthand is read {DEPTH_MAX} levels deep: write a JSON Schema with $defs."
    if isinstance(value, list) and len(value) != 1:
        return 'A list of shorthand has one element, the type of all: ["string"].'
    return (
        f"{shown(value)} names no type: write one such as "
        '"string", "integer?", "string|null" or ["string"], or a JSON Schema.'
    )


def _kept(value: Any) -> Any:
    """A value that is no schema, as itself or as a text: true would be one that allows anything."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return [value] if isinstance(value, dict) else value
