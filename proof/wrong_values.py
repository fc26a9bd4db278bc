"""Values that may break one constraint of a schema, made of a valid one."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proof.places import SchemaPlaces, Steps

UNKNOWN = "not_agreed"
PLAIN: tuple[Any, ...] = (None, True, -1, 0, 1.5, 10**12, "", "text", [], {}, ["text"])
"""Values of each type, one of which most schemas don't take."""
LENGTH_MAX = 100_000
COUNT_MAX = 200
WRONG_FORMATS: Mapping[str, tuple[str, ...]] = {
    "date": ("2026-02-30", "15.01.2026"),
    "date-time": ("2026-01-15", "2026-02-30T10:30:00Z", "2026-01-15T10:30:00"),
    "time": ("10:30", "25:00:00Z"),
    "email": ("ana@", "ana.example.com", "@example.com"),
    "uuid": ("0198c0df-0000-4000-8000-00000000000", "0198c0df-0000-4000-8000-00000000000g"),
    "ipv4": ("192.0.2.256", "192.0.2"),
    "ipv6": ("2001:db8::1::1", "192.0.2.1"),
    "hostname": ("-www.example.com", "www..example.com"),
}


def is_broken_by_each(keyword: str) -> bool:
    """Whether each value that breaks a constraint shows something else: another type."""
    return keyword == "type"


def wrong_values(
    places: SchemaPlaces, schema: Mapping[str, Any], pointer: Steps, value: Any
) -> Iterator[Any]:
    """Values in place of a valid one that may break the constraint at a pointer in its schema, the
    likeliest first."""
    keyword = str(pointer[0])
    if keyword in _SIMPLE:
        yield from _SIMPLE[keyword](schema[keyword], value)
    elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        yield from _numbers(schema, keyword, value)
    elif keyword in ("required", "dependentRequired", "properties", "minProperties"):
        yield from _members(places, schema, pointer, value)
    elif keyword in ("maxProperties", "propertyNames"):
        yield from _more_members(places, schema, keyword, value)
    elif keyword in ("minItems", "maxItems", "uniqueItems", "items", "unevaluatedItems"):
        yield from _items(places, schema, keyword, value)
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        if isinstance(value, dict):
            yield {**value, UNKNOWN: 1}
            for gone in value:
                yield {**{name: part for name, part in value.items() if name != gone}, UNKNOWN: 1}
    else:
        yield from _joined(places, schema, keyword, value)


def _types(kind: Any, value: Any) -> Iterator[Any]:
    """A value of each other type; first what looks the same in a text."""
    if isinstance(value, bool | int | float):
        yield str(value).lower()
    yield from (7, "text", None, True, [], {}, 1.5)


def _choices(choices: list[Any], value: Any) -> Iterator[Any]:
    for choice in choices:
        if isinstance(choice, str):
            yield from (f"{choice}x", choice.swapcase())
        elif isinstance(choice, bool):
            yield not choice
        elif isinstance(choice, int | float):
            yield from (choice + 1, choice - 1)
    yield from PLAIN


def _shorter(least: int, value: Any) -> Iterator[Any]:
    if isinstance(value, str) and 0 < least < LENGTH_MAX:
        yield from (value[: least - 1], "x" * (least - 1), "0" * (least - 1))


def _longer(most: int, value: Any) -> Iterator[Any]:
    if isinstance(value, str) and most < LENGTH_MAX:
        for letter in (value[-1:] or "x", "x", "0", "A"):
            yield value + letter * (most + 1 - len(value))
        yield ("x" * (most + 1))[: most + 1]


def _unlike(pattern: str, value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        length = max(len(value), 1)
        yield from (f"{value}!", f"!{value}", value.swapcase(), "!" * length, " " * length)
        yield from ("0" * length, "a" * length, "A" * length, "é" * length, value[:-1], "")
        yield from (value[:-1] + "!", "!" + value[1:], f"{value}\n")


def _unformatted(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield from WRONG_FORMATS.get(name, ())
        length = max(len(value), 1)
        yield from (
            "text",
            f"{value} x",
            value[:-1],
            "!" * length,
            "%" * length,
            "\\",
            "[",
            "{",
            "",
        )


def _without_match(_: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from ([], [None], ["text"], [{}], [-1], value * 2, value + value[-1:] * COUNT_MAX)


_SIMPLE: Mapping[str, Callable[[Any, Any], Iterator[Any]]] = {
    "type": _types,
    "enum": _choices,
    "const": lambda known, value: _choices([known], value),
    "minLength": _shorter,
    "maxLength": _longer,
    "pattern": _unlike,
    "format": _unformatted,
    "contains": _without_match,
    "minContains": _without_match,
    "maxContains": _without_match,
}


def _numbers(schema: Mapping[str, Any], keyword: str, value: Any) -> Iterator[Any]:
    bound = schema[keyword]
    if keyword == "multipleOf":
        bounds = [schema[b] for b in ("minimum", "maximum", "exclusiveMinimum") if b in schema]
        for near in (value, 0, *bounds):
            if isinstance(near, int | float) and not isinstance(near, bool):
                yield from (near + 1, near - 1, near + bound / 2, near - bound / 2)
        return
    steps = [1, 0.5, 0.001]
    if "multipleOf" in schema:
        steps = [schema["multipleOf"], *steps]
    sign = -1 if keyword in ("minimum", "exclusiveMinimum") else 1
    if keyword.startswith("exclusive"):
        yield bound
    yield from (bound + sign * step for step in steps)


def _members(
    places: SchemaPlaces, schema: Mapping[str, Any], pointer: Steps, value: Any
) -> Iterator[Any]:
    """Objects without a member that they need, or with one that they may not have."""
    if not isinstance(value, dict):
        return
    if pointer[0] == "properties":
        yield {**value, str(pointer[1]): 1}
    elif pointer[0] == "minProperties":
        least = schema["minProperties"]
        needed = [name for name in schema.get("required", ()) if name in value]
        names = [*needed, *(name for name in value if name not in needed)][: least - 1]
        yield {name: value[name] for name in names}
    elif pointer[0] == "required":
        gone = schema["required"][int(pointer[1])]
        yield {name: part for name, part in value.items() if name != gone}
    else:
        trigger, needed = str(pointer[1]), schema["dependentRequired"][pointer[1]]
        whole = dict(value)
        for name in (trigger, *needed):
            if name not in whole:
                member = schema.get("properties", {}).get(name, {})
                whole[name] = next(places.values(member), None) if member else "text"
        gone = needed[int(pointer[2])]
        yield {name: part for name, part in whole.items() if name != gone}


def _more_members(
    places: SchemaPlaces, schema: Mapping[str, Any], keyword: str, value: Any
) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    described = schema.get("additionalProperties", {})
    plain = places.values(described) if isinstance(described, Mapping) and described else ()
    parts = [*plain, "text", 1, {}, *list(value.values())[:1]]
    if keyword == "propertyNames":
        names = ("not agreed!", "", "A", "a", "0", "_", "x" * 300)
        yield from ({**value, name: part} for name in names for part in parts)
        return
    lacking = schema["maxProperties"] + 1 - len(value)
    if lacking <= COUNT_MAX:
        members = {
            name: next(places.values(part), None)
            for name, part in schema.get("properties", {}).items()
            if name not in value and isinstance(part, Mapping)
        }
        yield {**value, **dict(list(members.items())[:lacking])}
        for part in parts:
            yield {**value, **{f"more{number}": part for number in range(lacking)}}


def _items(
    places: SchemaPlaces, schema: Mapping[str, Any], keyword: str, value: Any
) -> Iterator[Any]:
    """Arrays with too few, too many or equal items."""
    if not isinstance(value, list):
        return
    described = schema.get("items", {})
    one_more = value[-1:] or list(places.values(described if described else {"type": "string"}))[:1]
    if keyword == "minItems":
        yield value[: schema["minItems"] - 1]
    elif keyword == "maxItems":
        lacking = schema["maxItems"] + 1 - len(value)
        if lacking <= COUNT_MAX:
            yield value + one_more * lacking
            names = [f"{number}" for number in range(lacking)]
            yield from (value + names, [*value, *range(lacking)])
    elif keyword == "uniqueItems":
        yield from (value + value[:1], value[:1] * 2, one_more * 2)
    else:
        first = schema.get("prefixItems", [])[len(value) :]
        filled = value + [next(places.values(part), None) for part in first]
        yield from ([*filled, "text"], [*filled, 1])


def _joined(
    places: SchemaPlaces, schema: Mapping[str, Any], keyword: str, value: Any
) -> Iterator[Any]:
    """Values of several branches at once, of none, or of what may not be."""
    parts = schema[keyword] if isinstance(schema[keyword], list) else [schema[keyword]]
    values = [v for part in parts if isinstance(part, Mapping) for v in places.values(part)]
    if keyword == "not":
        yield from values
    objects = [part for part in (value, *values) if isinstance(part, dict)]
    yield {name: part for each in objects for name, part in each.items()}
    yield from values if keyword == "oneOf" else ()
    if isinstance(value, dict):
        yield from ({**value, name: None} for name in value)
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
    yield from PLAIN
