"""Values that break a schema, one for each of its constraints, in a value that is valid otherwise.

A value is best that breaks nothing else: one that the schema without the constraint takes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from proof.places import NOWHERE, SchemaPlace, SchemaPlaces, Steps, at, put
from proof.plain_values import drawn_values
from proof.strategies import FORMATS, NoSuchValue, SchemaValues
from proof.validators import SchemaValidator
from proof.wrong_values import is_broken_by_each, wrong_values

Readings = Callable[[Any], list[Any]]
"""What a receiver may read a value as; nothing if it can't be sent."""
CONSTRAINTS_MAX = 600
DRAWS_MAX = 25
"""Constraints of one schema for whose sake values are drawn."""
DRAWN = 15


class Violations(NamedTuple):
    """Values of a whole schema that break it, those first that every constraint has one of; and the
    constraints that none of them breaks, each as a path in a value and a keyword."""

    values: list[Any]
    unbroken: list[tuple[Steps, str]]


def violations(schema: Mapping[str, Any], readings: Readings) -> Violations:
    """The violations of a schema that stands alone."""
    return _Breaker(schema, readings).run()


class _Breaker:
    def __init__(self, schema: Mapping[str, Any], readings: Readings) -> None:
        self.validator = SchemaValidator(schema)
        # What no validator can read is no constraint.
        self.schema, self.readings = self.validator.schema, readings
        self.places = SchemaPlaces(self.schema, lambda value: self.takes(self.validator, value))
        self.draws = 0

    def run(self) -> Violations:
        ranked: list[tuple[int, Any]] = []
        unbroken: list[tuple[Steps, str]] = []
        count = 0
        for place in self.places:
            for keyword, pointer in _constraints(place.schema):
                count += 1
                if count > CONSTRAINTS_MAX:
                    break
                broken = self._broken(place, keyword, pointer)
                ranked += enumerate(broken)
                if not broken and (place.path, keyword) not in unbroken:
                    unbroken.append((place.path, keyword))
        ranked.sort(key=lambda pair: pair[0])
        return Violations([value for _, value in ranked], unbroken)

    def takes(self, validator: SchemaValidator, value: Any) -> bool:
        return any(validator.accepts(reading) for reading in self.readings(value))

    def refuses(self, value: Any) -> bool:
        readings = self.readings(value)
        return bool(readings) and not any(map(self.validator.accepts, readings))

    def _broken(self, place: SchemaPlace, keyword: str, pointer: Steps) -> list[Any]:
        """Values that break one constraint, and nothing else if there are such; more than one only
        where each shows something else."""
        lax = without(self.schema, (*place.pointer, *pointer))
        lax_validator = SchemaValidator(lax)
        alone: list[Any] = []
        refused: list[Any] = []
        for value in self._candidates(place, pointer):
            if self.refuses(value):
                (alone if self.takes(lax_validator, value) else refused).append(value)
                if alone and not is_broken_by_each(keyword):
                    return alone
        if not alone and keyword in _DRAWN_FOR and place.hosts and self.draws < DRAWS_MAX:
            self.draws += 1
            drawn = self._drawn(place, pointer)
            alone = [v for v in drawn if self.refuses(v) and self.takes(lax_validator, v)][:1]
        return alone or refused[:1]

    def _candidates(self, place: SchemaPlace, pointer: Steps) -> Iterator[Any]:
        for host in place.hosts[: 1 if is_broken_by_each(str(pointer[0])) else None]:
            value = at(host, place.path)
            if value is not NOWHERE:
                for wrong in wrong_values(self.places, place.schema, pointer, value):
                    yield put(host, place.path, wrong)

    def _drawn(self, place: SchemaPlace, pointer: Steps) -> Iterator[Any]:
        """Values of the schema without the constraint, or with the opposite of it."""
        rest = without(place.schema, pointer)
        opposite = _opposite(str(pointer[0]), place.schema[str(pointer[0])])
        try:
            lax = SchemaValues({**rest, **opposite, "$defs": self.places.definitions})
            drawn = drawn_values(lax.strategy(), 0, DRAWN)
        except NoSuchValue:
            return
        for value in drawn:
            yield put(place.hosts[0], place.path, value)


_DRAWN_FOR = frozenset(
    {
        "pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems",
        "contains", "minContains", "maxContains", "minProperties", "maxProperties",
        "propertyNames", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "oneOf", "anyOf", "not",
    }
)  # fmt: skip
_CONSTRAINTS = _DRAWN_FOR | {"type", "enum", "const"}
_CLOSING = ("additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems")


def _constraints(schema: Mapping[str, Any]) -> Iterator[tuple[str, Steps]]:
    """The constraints that a schema has itself: the keyword, and the way to what would be left out
    to be without it."""
    for keyword, value in schema.items():
        if keyword == "format":
            if value in FORMATS:
                yield keyword, (keyword,)
        elif keyword in _CONSTRAINTS or (keyword in _CLOSING and value is False):
            yield keyword, (keyword,)
        elif keyword == "required":
            yield from ((keyword, (keyword, number)) for number in range(len(value)))
        elif keyword == "dependentRequired":
            for name, needed in value.items():
                yield from ((keyword, (keyword, name, number)) for number in range(len(needed)))
        elif keyword == "properties":
            yield from ((keyword, (keyword, name)) for name, part in value.items() if part is False)


def _opposite(keyword: str, value: Any) -> dict[str, Any]:
    """What holds for values that break a constraint, as far as it is easily said."""
    if keyword in ("minLength", "minItems", "minProperties") and value > 0:
        return {keyword.replace("min", "max"): value - 1}
    if keyword in ("maxLength", "maxItems", "maxProperties"):
        return {keyword.replace("max", "min"): value + 1}
    bounds = {"minimum": "exclusiveMaximum", "maximum": "exclusiveMinimum"}
    bounds |= {"exclusiveMinimum": "maximum", "exclusiveMaximum": "minimum"}
    return {bounds[keyword]: value} if keyword in bounds else {}


def without(schema: Any, pointer: Steps) -> Any:
    """A schema without what a pointer leads to."""
    step, rest = pointer[0], pointer[1:]
    if isinstance(schema, list):
        place = int(step)
        middle = [without(schema[place], rest)] if rest else []
        return [*schema[:place], *middle, *schema[place + 1 :]]
    if not rest:
        return {name: part for name, part in schema.items() if name != step}
    return {**schema, step: without(schema[step], rest)}


def shown(unbroken: Iterable[tuple[Steps, str]], where: str) -> list[str]:
    """Constraints as they are told of, such as `body/size: multipleOf`."""
    return [f"{'/'.join([where, *map(str, path)])}: {keyword}" for path, keyword in unbroken]
