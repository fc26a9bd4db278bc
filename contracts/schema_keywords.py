"""The keywords of a schema that constrain a value on their own, as a normal form takes them."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from contracts.model import Draft
from contracts.schema_atoms import NOTHING, TYPES, Atom, Edge, SchemaNode, View, below

ANNOTATIONS = frozenset(
    {
        "title", "description", "summary", "$comment", "example", "examples", "deprecated",
        "default", "xml", "externalDocs", "tags", "operationId", "termsOfService", "contact",
        "license", "info",
    }
)  # fmt: skip
"""Words for readers, which no validator checks."""

_COUNTS = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_OPAQUE = {
    "string": ("contentEncoding", "contentMediaType", "contentSchema"),
    "array": ("contains", "minContains", "maxContains", "unevaluatedItems"),
    "object": ("dependentRequired", "dependentSchemas", "dependencies"),
}
_OPAQUE_ANYWHERE = ("not", "if", "then", "else", "$dynamicRef", "$recursiveRef", "discriminator")
_TYPE_NAMES = frozenset({*TYPES, "integer"})
_IDLE = {"minLength": 0, "minItems": 0, "minProperties": 0}
_INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


Asked = dict[str, Any]
"""What is asked of a type: members of an `Atom`."""


class KeywordReader:
    """Reads one schema's own keywords, for each type that it allows."""

    def __init__(
        self, node: SchemaNode, draft: Draft, hidden: str, text: Callable[[Any], str]
    ) -> None:
        """`hidden` marks the members that don't belong to this direction. `text` writes a value
        with all that it refers to."""
        self.node, self.raw, self.draft, self.hidden = node, node.raw, draft, hidden
        self._text = text
        self.opaque: set[tuple[str, str]] = set()
        for key in _OPAQUE_ANYWHERE:
            if key in self.raw:
                self._keep(key)

    def kinds(self) -> dict[str, bool]:
        """The types that are allowed; for number, whether fractions are."""
        kind = self.raw.get("type")
        names = [kind] if isinstance(kind, str) else kind
        if names is None:
            return dict.fromkeys(TYPES, True)
        if not isinstance(names, list) or not all(
            isinstance(name, str) and name in _TYPE_NAMES for name in names
        ):
            self._keep("type")
            return dict.fromkeys(TYPES, True)
        kinds = {name: True for name in names if name != "integer"}
        if "integer" in names:
            kinds.setdefault("number", False)
        return kinds

    def atom(self, kind: str, values: Mapping[str, Any] | None, whole: bool) -> Atom:
        """What the schema asks of values of a type. `whole`: of numbers only those are allowed."""
        before = set(self.opaque)
        read = _READERS.get(kind)
        asked = {} if read is None else read(self)
        for key in _OPAQUE.get(kind, ()):
            if key in self.raw:
                self._keep(key)
        if whole:
            asked["integer"] = True
        atom = Atom(kind, self.node, values, opaque=frozenset(self.opaque), **asked)
        self.opaque = before
        return atom

    # --- keywords ---------------------------------------------------------------------------------

    def _keep(self, key: str) -> None:
        value = self.raw[key]
        if key == "discriminator" and isinstance(value, dict):
            # The alternatives that it tells apart are compared as such.
            value = value.get("propertyName")
        self.opaque.add((key, self._text(value)))

    def _counts(self, kind: str) -> Mapping[str, int]:
        counts = {}
        for key in _COUNTS[kind]:
            value = self.raw.get(key)
            if value is None or value == _IDLE.get(key):
                continue
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and value == value // 1
            ):
                counts[key] = int(value)
            else:
                self._keep(key)
        return counts

    def _number(self, key: str) -> float | None:
        value = self.raw.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            # Beyond what a number of 64 bits holds, nothing can be counted with it.
            or not abs(value) <= sys.float_info.max
        ):
            self._keep(key)
            return None
        return value

    def _numbers(self) -> Asked:
        low = self._edge("minimum", "exclusiveMinimum")
        high = self._edge("maximum", "exclusiveMaximum")
        multiple = self._number("multipleOf")
        texts: set[tuple[str, Any]] = set()
        if multiple is not None and multiple > 0:
            texts.add(("multipleOf", multiple))
        form = self.raw.get("format")
        if isinstance(form, str):
            texts |= (
                {("format", form)} if form not in _INTEGERS and form not in _UNSIGNED else set()
            )
            low, high = _within_format(form, low, high)
        integer = form in _INTEGERS or form in _UNSIGNED
        return {"low": low, "high": high, "texts": frozenset(texts), "integer": integer}

    def _edge(self, key: str, exclusive: str) -> Edge | None:
        value = self._number(key)
        if self.draft == "openapi-3.0":
            is_open = self.raw.get(exclusive) is True
            return None if value is None else Edge(value, is_open, key)
        beyond = self._number(exclusive)
        if beyond is None:
            return None if value is None else Edge(value, False, key)
        outside = value is None or (beyond >= value if key == "minimum" else beyond <= value)
        return (
            Edge(beyond, True, exclusive) if outside or value is None else Edge(value, False, key)
        )

    def _strings(self) -> Asked:
        texts = {
            (key, self.raw[key])
            for key in ("pattern", "format")
            if isinstance(self.raw.get(key), str)
        }
        return {
            "bounds": self._counts("string"),
            "texts": frozenset(texts - {("pattern", "")}),
        }

    def _arrays(self) -> Asked:
        tuples = "items" if isinstance(self.raw.get("items"), list) else "prefixItems"
        after = "additionalItems" if tuples == "items" else "items"
        listed = self.raw.get(tuples)
        if listed is not None and not isinstance(listed, list):
            self._keep(tuples)
        prefix = tuple(
            self._view(schema, tuples, place)
            for place, schema in enumerate(listed if isinstance(listed, list) else ())
        )
        bounds = dict(self._counts("array"))
        if after in self.raw and self.raw[after] is False:
            bounds["maxItems"] = min(bounds.get("maxItems", len(prefix)), len(prefix))
        return {
            "bounds": bounds,
            "unique": self.raw.get("uniqueItems") is True,
            "prefix": prefix,
            "items": self._view(self.raw[after], after) if after in self.raw else (),
        }

    def _objects(self) -> Asked:
        required = self.raw.get("required")
        names = required if isinstance(required, list) else ()
        members, absent = {}, set()
        for name, schema in self._named("properties"):
            if isinstance(schema, dict) and schema.get(self.hidden) is True:
                absent.add(name)
            else:
                members[name] = self._view(schema, "properties", name)
        if "additionalProperties" not in self.raw and "unevaluatedProperties" not in self.raw:
            # What is required is sent, though nothing is said of its value.
            for name in names:
                if isinstance(name, str) and name not in absent:
                    members.setdefault(name, ())
        patterns = {
            pattern: self._view(schema, "patternProperties", pattern)
            for pattern, schema in self._named("patternProperties")
        }
        return {
            "bounds": self._counts("object"),
            "required": frozenset(
                name for name in names if isinstance(name, str) and name not in absent
            ),
            "members": members,
            "patterns": patterns,
            "rest": self._view_of("additionalProperties"),
            "names": self._view_of("propertyNames") or (),
        }

    def _view_of(self, key: str) -> View | None:
        return self._view(self.raw[key], key) if key in self.raw else None

    def _named(self, key: str) -> list[tuple[str, Any]]:
        value = self.raw.get(key)
        if isinstance(value, dict):
            return list(value.items())
        if value is not None:
            self._keep(key)
        return []

    def _view(self, schema: Any, *steps: str | int) -> View:
        return self.view_of(self.node, schema, *steps)

    @staticmethod
    def view_of(node: SchemaNode, schema: Any, *steps: str | int) -> View:
        """The view of a schema within another one."""
        if schema is False:
            return NOTHING
        if schema is True or schema == {}:
            return ()
        return (SchemaNode(schema, below(node, steps), node.file),)


_READERS: Mapping[str, Callable[[KeywordReader], Asked]] = {
    "number": KeywordReader._numbers,
    "string": KeywordReader._strings,
    "array": KeywordReader._arrays,
    "object": KeywordReader._objects,
}


def _within_format(
    form: str, low: Edge | None, high: Edge | None
) -> tuple[Edge | None, Edge | None]:
    """The bounds of a number beside those of its format."""
    if form in _INTEGERS:
        least, most = -(2 ** _INTEGERS[form]), 2 ** _INTEGERS[form] - 1
    elif form in _UNSIGNED:
        least, most = 0, 2 ** _UNSIGNED[form] - 1
    else:
        return low, high
    if low is None or low.value < least:
        low = Edge(least, False, "format")
    if high is None or high.value > most:
        high = Edge(most, False, "format")
    return low, high
