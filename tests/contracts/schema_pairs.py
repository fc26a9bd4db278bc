"""Pairs of schemas, and values that one of them allows: for the judge of `compare`.

Nothing here knows how `compare` decides. Schemas are made at random, and changed at random; values
are made of the numbers and names that both schemas hold, and are held against them by another
library.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

NAMES = ("id", "name", "kind", "tags", "next")
WORDS = ("a", "b", "ab", "abc", "2026-11-25", "zz9", "")
PATTERNS = ("^a", "^[a-z]+$", "b$", "")
KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")


class SchemaMaker:
    """Makes schemas at random, of any keywords that constrain."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def schema(self, depth: int = 3) -> Any:
        """A schema; `$ref`s in it lead to `#/$defs/D`."""
        pick = self.chance.random()
        if depth <= 0 or pick < 0.62:
            return self._plain(depth)
        if pick < 0.68:
            return {"enum": self.chance.sample([1, 2, "a", "b", None, True, "ab"], 3)}
        if pick < 0.72:
            return {"const": self.chance.choice([1, "a", None, False])}
        if pick < 0.80:
            return {"anyOf": [self.schema(depth - 1) for _ in range(2)]}
        if pick < 0.86:
            return {"oneOf": [self.schema(depth - 1) for _ in range(2)]}
        if pick < 0.92:
            return {"allOf": [self.schema(depth - 1) for _ in range(2)]}
        if pick < 0.95:
            return {"not": self._plain(0)}
        return {"$ref": "#/$defs/D"}

    def _plain(self, depth: int) -> dict[str, Any]:
        kinds = KINDS if depth > 0 else KINDS[:5]
        kind = self.chance.choice(kinds)
        schema: dict[str, Any] = {"type": kind}
        if self.chance.random() < 0.12:
            schema["type"] = sorted({kind, self.chance.choice(kinds)})
        for key in self.chance.sample(sorted(_KEYWORDS[kind]), min(2, len(_KEYWORDS[kind]))):
            if self.chance.random() < 0.6:
                schema[key] = self.keyword(key, depth)
        if kind == "object" and "properties" not in schema:
            schema["properties"] = self.keyword("properties", depth)
        return schema

    def keyword(self, key: str, depth: int) -> Any:
        """A value of a keyword."""
        chance = self.chance
        if key in ("properties", "patternProperties"):
            names = NAMES if key == "properties" else ("^n", "d$")
            return {
                name: self.schema(depth - 1) for name in chance.sample(names, chance.randint(1, 2))
            }
        if key == "propertyNames":
            return {"type": "string", "maxLength": chance.randint(2, 5)}
        if key in ("items", "additionalProperties", "contains"):
            return chance.choice([False, True]) if chance.random() < 0.4 else self.schema(depth - 1)
        if key == "prefixItems":
            return [self.schema(depth - 1) for _ in range(chance.randint(1, 2))]
        if key == "required":
            return chance.sample(NAMES, chance.randint(1, 2))
        if key == "pattern":
            return chance.choice(PATTERNS)
        if key == "multipleOf":
            return chance.choice([1, 2, 4, 0.5])
        if key == "uniqueItems":
            return True
        return chance.randint(0, 4)

    def changed(self, schema: Any, depth: int = 3) -> Any:
        """The schema with one place in it changed."""
        schema = copy.deepcopy(schema)
        if not isinstance(schema, dict) or self.chance.random() < 0.1:
            return self.schema(depth)
        inner = list(_places(schema))
        if inner and self.chance.random() < 0.6:
            holder, step = self.chance.choice(inner)
            holder[step] = self.changed(holder[step], depth - 1)
            return schema
        keys = [key for key in schema if key != "$defs"]
        pick = self.chance.random()
        if pick < 0.3 and keys:
            del schema[self.chance.choice(keys)]
        elif pick < 0.4:
            schema["type"] = self.chance.choice(KINDS)
        elif pick < 0.5 and isinstance(schema.get("type"), str):
            schema["type"] = sorted({schema["type"], self.chance.choice(KINDS)})
        else:
            kind = schema.get("type")
            known = _KEYWORDS.get(kind if isinstance(kind, str) else "string", ("minLength",))
            key = self.chance.choice(sorted(known) or ["minLength"])
            schema[key] = self.keyword(key, depth)
        return schema


_KEYWORDS: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "boolean": (),
    "null": (),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
    ),
}


def _places(schema: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Where schemas stand in a schema, as holder and step."""
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "$defs") and isinstance(value, dict):
            yield from ((value, name) for name in value)
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            yield from ((value, place) for place in range(len(value)))
        elif key in ("items", "additionalProperties", "contains", "not", "propertyNames"):
            yield schema, key


class ValueMaker:
    """Makes values that schemas may allow, of what stands in the schemas."""

    def __init__(self, chance: random.Random, *schemas: Any) -> None:
        self.chance = chance
        self._atoms: list[Any] = [None, True, False, *WORDS, 0, 1, -1, 1.5, 2, 3, 4, 5, 6, 8]
        self._names = [*NAMES, "other", "nd"]
        for schema in schemas:
            for value in _constants(schema):
                self._atoms.append(value)

    def value(self, schema: Any, root: Any, depth: int = 4) -> Any:
        """A value that fits at best, and does not always."""
        if not isinstance(schema, dict) or depth <= 0 or self.chance.random() < 0.08:
            return self._any(depth)
        if "$ref" in schema:
            return self.value(root.get("$defs", {}).get("D", {}), root, depth - 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema and (len(schema) < 3 or self.chance.random() < 0.6):
                return self.value(self.chance.choice(schema[key]), root, depth)
        kind = schema.get("type")
        kind = self.chance.choice(kind) if isinstance(kind, list) and kind else kind
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, root, depth)
        if kind == "array" or (kind is None and "items" in schema):
            return self._array(schema, root, depth)
        return self._of_kind(kind, schema)

    def _of_kind(self, kind: Any, schema: dict[str, Any]) -> Any:
        bounds = [
            value + step
            for key, value in schema.items()
            if key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
            and isinstance(value, int | float)
            for step in (0, 1, -1, 0.5)
        ]
        pool = {
            "string": [
                *WORDS,
                *(letter * count for letter in "abz" for count in range(7)),
                "aab",
                "aaab",
            ],
            "integer": [value for value in (*range(-8, 9), *bounds) if float(value).is_integer()],
            "number": [*range(-8, 9), -0.5, 0.5, 1.5, 2.5, *bounds],
            "boolean": [True, False],
            "null": [None],
        }.get(str(kind), self._atoms)
        return self.chance.choice(pool)

    def _object(self, schema: dict[str, Any], root: Any, depth: int) -> Any:
        members = schema.get("properties", {})
        required = [name for name in schema.get("required", []) if isinstance(name, str)]
        names = [*required, *(name for name in members if self.chance.random() < 0.6)]
        if self.chance.random() < 0.3:
            names += self.chance.sample(self._names, self.chance.randint(1, 5))
        rest = schema.get("additionalProperties", {})
        return {name: self.value(members.get(name, rest), root, depth - 1) for name in names}

    def _array(self, schema: dict[str, Any], root: Any, depth: int) -> Any:
        listed = schema.get("prefixItems", [])
        length = self.chance.choice([*range(7), len(listed), schema.get("minItems", 0)])
        rest = schema.get("items", {})
        return [
            self.value(listed[place] if place < len(listed) else rest, root, depth - 1)
            for place in range(length)
        ]

    def _any(self, depth: int) -> Any:
        pick = self.chance.random()
        if depth > 0 and pick < 0.15:
            return [self._any(depth - 1) for _ in range(self.chance.randint(0, 2))]
        if depth > 0 and pick < 0.3:
            names = self.chance.sample(self._names, self.chance.randint(0, 2))
            return {name: self._any(depth - 1) for name in names}
        return self.chance.choice(self._atoms)


def _constants(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "const":
                yield value
            elif key == "enum" and isinstance(value, list):
                yield from value
            else:
                yield from _constants(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _constants(value)


def as_sent(schema: Any, *, inside: bool = False) -> Any:
    """The schema of what a sender sends: of the members only those that it names, where it names
    any and doesn't say what others are. `inside`: it is part of an `allOf`, which names together.
    """
    if not isinstance(schema, dict):
        return schema
    closed = dict(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(closed.get(key), list):
            part = inside or key == "allOf" or "properties" in schema or "allOf" in schema
            closed[key] = [as_sent(branch, inside=part) for branch in closed[key]]
    for key in ("properties", "patternProperties", "$defs"):
        if isinstance(closed.get(key), dict):
            closed[key] = {name: as_sent(part) for name, part in closed[key].items()}
    for key in ("items", "additionalProperties"):
        if key in closed:
            closed[key] = as_sent(closed[key])
    if isinstance(closed.get("prefixItems"), list):
        closed["prefixItems"] = [as_sent(part) for part in closed["prefixItems"]]
    if "additionalProperties" not in closed and isinstance(closed.get("required"), list):
        members = closed.get("properties", {})
        closed["properties"] = {**{name: {} for name in closed["required"]}, **members}
    if not inside and "additionalProperties" not in closed and _names_any(closed):
        closed["unevaluatedProperties"] = False
    return closed


def _names_any(schema: Any) -> bool:
    """Whether a schema, or what it joins, names a member."""
    if not isinstance(schema, dict):
        return False
    if schema.get("properties") or schema.get("patternProperties"):
        return True
    return any(_names_any(part) for part in schema.get("allOf", []))
