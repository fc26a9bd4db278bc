"""The schemas that stand in a schema, by the keywords that hold them, in any of its drafts."""

from collections.abc import Iterator, Mapping
from typing import Any

from contracts.model import Path

ONE = frozenset(
    {
        "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if",
        "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
LISTS = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
HOLDERS = ONE | LISTS | NAMED


def adds_null(schema: Mapping[str, Any]) -> bool:
    """Whether null fits a schema whatever else it says.

    OpenAPI 3.0.3 gives `nullable` a meaning beside `type` alone, and none against `enum` or
    `allOf`. It is written beside a reference in `allOf` all the same, generators take it as null
    added, and so does everything here: comparison, mock, probe and types. It is read in every
    draft.
    """
    return schema.get("nullable") is True


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The schemas directly in a schema, and where: `(("properties", "name"), {…})`.

    What stands in the place of a schema and is none is among them.
    """
    for keyword in [keyword for keyword in schema if keyword in HOLDERS]:
        value = schema[keyword]
        if isinstance(value, list):
            if keyword in LISTS:
                yield from (((keyword, number), part) for number, part in enumerate(value))
        elif keyword in ONE:
            yield (keyword,), value
        elif keyword in NAMED and isinstance(value, dict):
            for name, part in value.items():
                if not (keyword == "dependencies" and isinstance(part, list)):
                    yield (keyword, name), part
