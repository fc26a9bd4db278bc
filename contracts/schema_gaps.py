"""Gaps between a sender's alternative and a receiver's of one type: keywords by which something may
be sent that isn't accepted. Numbers, strings and arrays."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from contracts.schema_atoms import LOWER, Atom, Edge, View


class SchemaGap(NamedTuple):
    """Something that is not accepted, at `steps` from the schema. `sub` and `sup` are what sender
    and receiver say there. `doubt`: it is not certain that such a value is sent."""

    steps: tuple[str | int, ...]
    rule: str
    sub: Any = None
    sup: Any = None
    doubt: bool = False
    why: str | None = None


class Nested(NamedTuple):
    """Two views of which the sender's must be within the receiver's."""

    steps: tuple[str | int, ...]
    sub: View
    sup: View


_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_WIDER_FORMATS = {
    "email": {"idn-email"},
    "hostname": {"idn-hostname"},
    "uri": {"iri", "uri-reference", "iri-reference"},
    "uri-reference": {"iri-reference"},
    "iri": {"iri-reference"},
    "float": {"double"},
}
_KNOWN_FORMATS = frozenset(
    {
        "date", "date-time", "time", "duration", "uuid", "email", "idn-email", "hostname",
        "idn-hostname", "uri", "uri-reference", "uri-template", "iri", "iri-reference", "ipv4",
        "ipv6", "json-pointer", "relative-json-pointer", "regex", "byte", "binary", "float",
        "double",
    }
)  # fmt: skip
_EVERY_TEXT = frozenset({"", ".*", "^.*$", "(?s).*", "^"})


def plain_gaps(sub: Atom, sup: Atom) -> Iterator[SchemaGap]:
    """Gaps of everything that describes no value within the value."""
    if sup.type == "number":
        yield from _number(sub, sup)
    for key in _COUNTS:
        wanted = sup.bounds.get(key)
        if wanted is not None and _looser(sub, key, wanted):
            # A pattern may say as much.
            doubt = key not in sub.bounds and any(name == "pattern" for name, _ in sub.texts)
            yield SchemaGap((key,), "bound_changed", sub.bounds.get(key), wanted, doubt)
    if sup.unique and not sub.unique and sub.bounds.get("maxItems", 2) > 1:
        yield SchemaGap(("uniqueItems",), "uniqueness_changed", False, True)
    for key, text in sorted(sup.texts - sub.texts, key=str):
        yield from _text(sub, key, text)


def _looser(sub: Atom, key: str, wanted: int) -> bool:
    has = sub.bounds.get(key)
    if key == "minProperties":
        return max(has or 0, len(sub.required)) < wanted
    if key == "maxProperties" and has is None and sub.members and not sub.patterns:
        closed = sub.rest is None or any(node.raw is False for node in sub.rest)
        return not closed or len(sub.members) > wanted
    if has is None:
        return True
    return has < wanted if key in LOWER else has > wanted


def _number(sub: Atom, sup: Atom) -> Iterator[SchemaGap]:
    if sup.integer and not sub.integer:
        whole = any(key == "multipleOf" and float(text).is_integer() for key, text in sub.texts)
        if not whole:
            yield SchemaGap(("type",), "type_changed", "number", "integer")
    beyond_format = False
    for has, wanted, sign in ((sub.low, sup.low, 1), (sub.high, sup.high, -1)):
        if wanted is None or _inside(has, wanted, sign, sub.integer):
            continue
        if wanted.key == "format":
            beyond_format = True
        else:
            yield SchemaGap((wanted.key,), "bound_changed", _edge(has), _edge(wanted))
    if beyond_format:
        yield SchemaGap(("format",), "format_changed", _format(sub), _format(sup))


def _format(atom: Atom) -> Any:
    return atom.at.raw.get("format") if isinstance(atom.at.raw, dict) else None


def _inside(has: Edge | None, wanted: Edge, sign: int, whole: bool) -> bool:
    """Whether one bound is at least as strict as the other."""
    if has is None:
        return False
    first, second = _reached(has, sign, whole), _reached(wanted, sign, whole)
    return first[0] > second[0] or (first[0] == second[0] and first[1] >= second[1])


def _reached(edge: Edge, sign: int, whole: bool) -> tuple[float, bool]:
    """A bound so that larger is stricter; of whole numbers the last one inside."""
    if whole and edge.open and float(edge.value).is_integer():
        return sign * edge.value + 1, False
    return sign * edge.value, edge.open


def is_empty_range(low: Edge, high: Edge, whole: bool) -> bool:
    """Whether no number is within two bounds."""
    (least, low_open), (most, high_open) = _reached(low, 1, whole), _reached(high, -1, whole)
    if whole:
        least, most = math.ceil(least), -math.ceil(most)
    else:
        most = -most
    return least > most or (least == most and (low_open or high_open))


def _edge(edge: Edge | None) -> Any:
    return None if edge is None else f"{edge.value:g}, excluded" if edge.open else edge.value


def _text(sub: Atom, key: str, text: Any) -> Iterator[SchemaGap]:
    has = sorted((value for other, value in sub.texts if other == key), key=str)
    shown = (has or [None])[0]
    if key == "pattern":
        if text not in _EVERY_TEXT:
            why = "Whether one pattern allows what the other does isn't worked out."
            doubt = bool(has) or bool(sub.texts)
            yield SchemaGap((key,), "pattern_changed", shown, text, doubt, why if doubt else None)
    elif key == "multipleOf":
        if not any(_divides(text, value) for value in has) and not (
            sub.integer and _divides(text, 1)
        ):
            yield SchemaGap((key,), "multiple_changed", shown, text)
    elif not any(text in _WIDER_FORMATS.get(value, ()) for value in has):
        # Of a format that no specification knows, nobody knows who checks it.
        doubt = text not in _KNOWN_FORMATS
        yield SchemaGap((key,), "format_changed", shown, text, doubt)


def _divides(divisor: float, value: float) -> bool:
    if isinstance(divisor, int) and isinstance(value, int):
        return value % divisor == 0
    quotient = value / divisor
    return quotient == round(quotient)


def array_gaps(sub: Atom, sup: Atom) -> Iterator[SchemaGap | Nested]:
    """What is nested in arrays, by place."""
    most = sub.bounds.get("maxItems", 2**60)
    for place in range(min(most, max(len(sub.prefix), len(sup.prefix)))):
        key = "prefixItems"
        yield Nested((key, place), _at(sub, place), _at(sup, place))
    if most > max(len(sub.prefix), len(sup.prefix)):
        yield Nested(("items",), sub.items, sup.items)


def _at(atom: Atom, place: int) -> View:
    return atom.prefix[place] if place < len(atom.prefix) else atom.items
