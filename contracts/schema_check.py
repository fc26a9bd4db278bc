"""What is wrong with the schemas of a document: keywords of no sense, references to nothing."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from contracts.model import Draft, Located
from contracts.reading import ContentReading, shown
from contracts.refs import Unresolved
from contracts.subschemas import subschemas

TYPES = frozenset({"string", "integer", "number", "boolean", "object", "array", "null"})
SCHEMAS_MAX = 500_000
DEPTH_MAX = 500


def check_schemas(reading: ContentReading, roots: Iterable[Located], draft: Draft) -> None:
    """Note what is wrong with some schemas and those that they refer to, each once."""
    seen: set[int] = set()
    # A stack of iterators, not of schemas: many of them deep inside have long paths.
    stack = [iter(roots)]
    while stack:
        place = next(stack[-1], None)
        if place is None:
            stack.pop()
        elif isinstance(place.schema, dict):
            if id(place.schema) in seen:
                continue
            if len(stack) > DEPTH_MAX or len(seen) > SCHEMAS_MAX:
                reading.warn(
                    place, "The schemas from here on were not checked: there are too many."
                )
                return
            seen.add(id(place.schema))
            _check_keywords(reading, place, draft)
            stack.append(_inner(reading, place, draft))
        elif not isinstance(place.schema, bool):
            reading.misfit(
                place, f"A schema is an object or a boolean; this is {shown(place.schema)}."
            )


def _inner(reading: ContentReading, place: Located, draft: Draft) -> Iterator[Located]:
    """The schemas in a schema, and the one that it refers to."""
    if "$ref" in place.schema and _is_text(place.schema["$ref"]):
        target = reading.resolver.resolve(place)
        if isinstance(target, Unresolved):
            reading.misfit(place, target.why)
        else:
            yield target
        if draft != "2020-12":
            return
    for path, schema in subschemas(place.schema):
        yield Located(schema, (*place.path, *path), place.file)


def _check_keywords(reading: ContentReading, place: Located, draft: Draft) -> None:
    schema = place.schema
    if "$ref" in schema and draft != "2020-12" and _is_text(schema["$ref"]):
        return
    for keyword, value in schema.items():
        form = FORMS.get(keyword)
        if form is None or form[0](value):
            continue
        if draft == "openapi-3.0" and keyword.startswith("exclusive") and isinstance(value, bool):
            continue
        where = Located(value, (*place.path, keyword), place.file)
        reading.misfit(where, f'"{keyword}" is {form[1]}; this is {shown(value)}.')


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == value // 1


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(name, str) and name in TYPES for name in value)
    return isinstance(value, str) and value in TYPES


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


Form = tuple[Callable[[Any], bool], str]

_NAMES: Form = (_is_names, "a list of names of members, beside the properties")
_NUMBER: Form = (_is_number, "a number")
_COUNT: Form = (_is_count, "a whole number from 0")
_SCHEMAS: Form = (_is_schemas, "a list of schemas, at least one")
_BY_NAME: Form = (_is_object, "an object of schemas by name")

FORMS: dict[str, Form] = {
    "type": (_is_type, f"one of {', '.join(sorted(TYPES))}, or a list of them"),
    "required": _NAMES,
    "enum": (lambda value: isinstance(value, list), "a list of values"),
    "pattern": (_is_text, "a regular expression"),
    "$ref": (_is_text, 'a reference such as "#/$defs/User"'),
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), _BY_NAME),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SCHEMAS),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        _COUNT,
    ),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
}
"""How the value of a keyword must look, and how that is said."""
