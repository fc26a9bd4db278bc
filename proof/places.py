"""The places of a schema, each with valid values that reach it."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from proof.plain_values import drawn_values, made_value, plausible_value
from proof.strategies import NoSuchValue, SchemaValues
from proof.validators import SchemaValidator

Steps = tuple[str | int, ...]
PLACES_MAX = 400
HOSTS_MAX = 2
DRAWN = 12
MADE_MAX = 20
"""Values that hypothesis makes for one schema, where the plain ones don't fit."""
EXTRA = "more"
"""The name of a member that no property describes."""


class SchemaPlace(NamedTuple):
    """A schema within another: where it is, and where in values it applies.

    `hosts` are valid values of the whole in which it applies, the smaller first; none if none could
    be made.
    """

    path: Steps
    pointer: Steps
    schema: Mapping[str, Any]
    hosts: tuple[Any, ...]


class SchemaPlaces:
    """The places of a schema that stands alone. `accepts` tells whether a whole value is valid."""

    def __init__(self, schema: Mapping[str, Any], accepts: Callable[[Any], bool]) -> None:
        self.schema, self._accepts = schema, accepts
        self.definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._made_count = 0
        self._drawn: list[Any] | None = None

    def __iter__(self) -> Iterator[SchemaPlace]:
        """The places, the outer ones first. A definition within itself is looked into once more."""
        roots = [value for value in self.values(self.schema) if self._accepts(value)]
        root = SchemaPlace((), (), self.schema, _distinct(roots or self._drawn_values()))
        waiting: deque[tuple[SchemaPlace, tuple[str, ...]]] = deque([(root, ())])
        count = 0
        while waiting and count < PLACES_MAX:
            place, passed = waiting.popleft()
            count += 1
            yield place
            ref = place.schema.get("$ref")
            if isinstance(ref, str) and passed.count(ref) < 2:
                name = ref.removeprefix("#/$defs/")
                target = self.definitions.get(name)
                if isinstance(target, Mapping):
                    inner = SchemaPlace(place.path, ("$defs", name), target, place.hosts)
                    waiting.append((inner, (*passed, ref)))
            waiting += [(inner, passed) for inner in self._inner(place)]

    def values(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """Plausible values of a schema within the whole, the smallest first, which need not fit."""
        for depth in (0, None):
            try:
                yield plausible_value({**schema, "$defs": self.definitions}, depth)
            except NoSuchValue:
                return

    def made(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        """A value that hypothesis makes of a schema within the whole, as long as that is cheap."""
        self._made_count += 1
        if self._made_count <= MADE_MAX:
            try:
                yield made_value({**schema, "$defs": self.definitions}, 0)
            except NoSuchValue:
                return

    def _inner(self, place: SchemaPlace) -> Iterator[SchemaPlace]:
        for steps, pointer, schema in _members(place.schema):
            if isinstance(schema, Mapping):
                path = (*place.path, *steps)
                hosts = self._reaching(place.hosts, path, schema)
                yield SchemaPlace(path, (*place.pointer, *pointer), schema, hosts)
        for pointer, schema, whole in _branches(place.schema):
            if isinstance(schema, Mapping):
                hosts = place.hosts
                if whole is not None:
                    hosts = self._in_branch(place, schema, whole)
                yield SchemaPlace(place.path, (*place.pointer, *pointer), schema, hosts)

    def _reaching(
        self, hosts: tuple[Any, ...], path: Steps, schema: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Valid values that have something at a path."""
        reaching = [host for host in hosts if has(host, path)]
        missing = [host for host in hosts if not has(host, path)]
        values = [*self.values(schema)] if missing else []
        reaching = [*self._put(missing, path, values), *reaching]
        if not reaching and missing:
            reaching = self._put(missing, path, [*self.made(schema)])
        if not reaching:
            reaching = [value for value in self._drawn_values() if has(value, path)]
        return _distinct(reaching)

    def _in_branch(
        self, place: SchemaPlace, branch: Mapping[str, Any], whole: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Valid values of which that at the place is one of a branch; `whole` has both."""
        fits = SchemaValidator({**branch, "$defs": self.definitions}).accepts
        in_it = [host for host in place.hosts if fits(at(host, place.path))]
        if not in_it:
            values = [value for value in self.values(whole) if fits(value)]
            in_it = self._put([*place.hosts], place.path, values)
        if not in_it:
            in_it = self._put([*place.hosts], place.path, [*self.made(whole)])
        return _distinct(in_it)

    def _put(self, hosts: list[Any], path: Steps, values: list[Any]) -> list[Any]:
        candidates = [put(host, path, value) for host in hosts for value in values]
        return [value for value in candidates if value is not NOWHERE and self._accepts(value)]

    def _drawn_values(self) -> list[Any]:
        if self._drawn is None:
            try:
                drawn = drawn_values(SchemaValues(self.schema).strategy(), 0, DRAWN)
            except NoSuchValue:
                drawn = []
            self._drawn = [value for value in drawn if self._accepts(value)]
        return self._drawn


NOWHERE = object()
"""Of a value that has no such place."""


def has(value: Any, path: Steps) -> bool:
    return at(value, path) is not NOWHERE


def at(value: Any, path: Steps) -> Any:
    """What a value has at a path, or `NOWHERE`."""
    for step in path:
        is_there = (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        )
        if not is_there:
            return NOWHERE
        value = value[step]
    return value


def put(value: Any, path: Steps, new: Any) -> Any:
    """A value with another one at a path, or `NOWHERE` if nothing can be there."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and isinstance(step, str):
        inner = put(value.get(step, NOWHERE), rest, new)
        return NOWHERE if inner is NOWHERE else {**value, step: inner}
    if isinstance(value, list) and isinstance(step, int) and step <= len(value):
        inner = put(value[step] if step < len(value) else NOWHERE, rest, new)
        return NOWHERE if inner is NOWHERE else [*value[:step], inner, *value[step + 1 :]]
    return NOWHERE


def _members(schema: Mapping[str, Any]) -> Iterator[tuple[Steps, Steps, Any]]:
    """The schemas of parts of a value: the way to them in the value, and in the schema."""
    for name, part in schema.get("properties", {}).items():
        yield (name,), ("properties", name), part
    for pattern, part in schema.get("patternProperties", {}).items():
        name = _name_of({"pattern": pattern})
        if name is not None:
            yield (name,), ("patternProperties", pattern), part
    for word in ("additionalProperties", "unevaluatedProperties"):
        name = _name_of(schema.get("propertyNames", {"const": EXTRA}))
        if word in schema and name is not None:
            yield (name,), (word,), schema[word]
    first = schema.get("prefixItems", [])
    for place, part in enumerate(first):
        yield (place,), ("prefixItems", place), part
    if "items" in schema:
        yield (len(first),), ("items",), schema["items"]


def _name_of(schema: Any) -> str | None:
    if not isinstance(schema, Mapping):
        return EXTRA if schema else None
    try:
        name = plausible_value({"type": "string", **schema}, None)
    except NoSuchValue:
        return None
    return name if isinstance(name, str) else None


def _branches(schema: Mapping[str, Any]) -> Iterator[tuple[Steps, Any, dict[str, Any] | None]]:
    """The schemas of the same value: the way to them, and for those that need not hold, a schema of
    the values for which they do."""
    for number, part in enumerate(schema.get("allOf", ())):
        yield ("allOf", number), part, None
    for word in ("anyOf", "oneOf"):
        rest = {name: value for name, value in schema.items() if name != word}
        for number, part in enumerate(schema.get(word, ())):
            yield (word, number), part, {"allOf": [rest, part]}
    words = ("if", "then", "else")
    rest = {name: value for name, value in schema.items() if name not in words}
    if "if" in schema and "then" in schema:
        yield ("then",), schema["then"], {"allOf": [rest, schema["if"], schema["then"]]}
    if "if" in schema and "else" in schema:
        yield ("else",), schema["else"], {"allOf": [rest, schema["else"]]}
    rest = {name: value for name, value in schema.items() if name != "dependentSchemas"}
    for name, part in schema.get("dependentSchemas", {}).items():
        yield ("dependentSchemas", name), part, {"allOf": [rest, {"required": [name]}, part]}


def _distinct(values: list[Any]) -> tuple[Any, ...]:
    """The smallest of some values."""
    by_text = {json.dumps(value): value for value in values}
    return tuple(by_text[text] for text in sorted(by_text, key=len)[:HOSTS_MAX])
