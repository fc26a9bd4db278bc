"""Whether a schema accepts a value: for values that are listed, and for examples.

A third answer is None: something in the schema isn't worked out, or the value is too deep.
"""

from collections.abc import Iterator
from typing import Any

import regex

from contracts.json_text import text_of, value_key
from contracts.schema_atoms import Atom, View, is_integer, is_nothing, value_type
from contracts.schema_reader import SchemaReader

DEPTH_MAX = 30
FORMATS = {
    "date": regex.compile(r"\d{4}-\d\d-\d\d"),
    "date-time": regex.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
    "time": regex.compile(r"\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"),
    "uuid": regex.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "email": regex.compile(r"\S+@\S+"),
    "uri": regex.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*"),
    "ipv4": regex.compile(r"\d{1,3}(\.\d{1,3}){3}"),
    "ipv6": regex.compile(r"[0-9a-fA-F:.]{2,45}"),
    "hostname": regex.compile(r"[A-Za-z0-9.-]{1,253}"),
    "byte": regex.compile(r"[A-Za-z0-9+/\s]*={0,2}"),
}
"""How texts of a format look, roughly: what doesn't look so has another format."""


def accepts(reader: SchemaReader, view: View, value: Any, depth: int = 0) -> bool | None:
    """Whether a value fits a view. Raises TooMuchWork."""
    if not view:
        return True
    if is_nothing(view):
        return False
    if depth > DEPTH_MAX:
        return None
    kind = value_type(value)
    answer: bool | None = False
    for atom in reader.atoms(view):
        if atom.type == kind:
            fits = accepts_atom(reader, atom, value, depth)
            if fits:
                return True
            answer = answer if fits is False else None
    return answer


def accepts_atom(reader: SchemaReader, atom: Atom, value: Any, depth: int = 0) -> bool | None:
    """Whether a value of the atom's type fits it. Raises TooMuchWork."""
    reader.work.spend(3 + (len(value) // 16 if isinstance(value, str | list | dict) else 0))
    if atom.values is not None and value_key(value) not in atom.values:
        return False
    answer: bool | None = None if has_doubt(atom) else True
    for part in _answers(reader, atom, value, depth):
        if part is False:
            return False
        if part is None:
            answer = None
    return answer


def _answers(reader: SchemaReader, atom: Atom, value: Any, depth: int) -> Iterator[bool | None]:
    """What each keyword says of a value."""
    if atom.type == "number":
        yield from _number(atom, value)
    elif atom.type == "string":
        yield from _string(reader, atom, value)
    elif atom.type == "array":
        yield from _array(reader, atom, value, depth)
    elif atom.type == "object":
        yield from _object(reader, atom, value, depth)
    if depth <= DEPTH_MAX:
        for other in atom.excludes:
            yield _not(accepts_atom(reader, other, value, depth + 1))


def has_doubt(atom: Atom) -> bool:
    """Whether something narrows an alternative that isn't worked out for a single value either."""
    return any(keyword not in ("discriminator", "oneOf") for keyword, _ in atom.opaque)


def _not(answer: bool | None) -> bool | None:
    return None if answer is None else not answer


def _number(atom: Atom, value: float) -> Iterator[bool | None]:
    yield not atom.integer or is_integer(value)
    if atom.low is not None:
        yield value > atom.low.value or (value == atom.low.value and not atom.low.open)
    if atom.high is not None:
        yield value < atom.high.value or (value == atom.high.value and not atom.high.open)
    for key, text in atom.texts:
        if key == "multipleOf":
            yield _is_multiple(value, text)


def _is_multiple(value: float, of: float) -> bool | None:
    if isinstance(value, int) and isinstance(of, int):
        return value % of == 0
    try:
        quotient = value / of
    except OverflowError:
        return None
    off = abs(quotient - round(quotient))
    # Beyond that, the remainder may be the rounding's.
    return True if off == 0 else None if abs(quotient) > 1e6 else off < 1e-9


def _string(reader: SchemaReader, atom: Atom, value: str) -> Iterator[bool | None]:
    yield from _between(len(value), atom, "minLength", "maxLength")
    for key, text in atom.texts:
        yield reader.matches(text, value) if key == "pattern" else _has_format(text, value)


def _has_format(form: str, value: str) -> bool | None:
    """Whether a text has a format; None for formats of which nothing is known here."""
    expression = FORMATS.get(form)
    if expression is None:
        return None
    return expression.fullmatch(value) is not None


def _between(count: int, atom: Atom, least: str, most: str) -> Iterator[bool | None]:
    if atom.bounds:
        yield count >= atom.bounds.get(least, 0)
        yield count <= atom.bounds.get(most, count)


def _array(reader: SchemaReader, atom: Atom, value: list[Any], depth: int) -> Iterator[bool | None]:
    yield from _between(len(value), atom, "minItems", "maxItems")
    if atom.unique:
        yield len({text_of(part) for part in value}) == len(value)
    for place, part in enumerate(value):
        view = atom.prefix[place] if place < len(atom.prefix) else atom.items
        yield accepts(reader, view, part, depth + 1)


def _object(
    reader: SchemaReader, atom: Atom, value: dict[str, Any], depth: int
) -> Iterator[bool | None]:
    yield from _between(len(value), atom, "minProperties", "maxProperties")
    yield atom.required <= value.keys()
    for name, part in value.items():
        if atom.names:
            yield accepts(reader, atom.names, name, depth + 1)
        yield accepts(reader, reader.member(atom, name), part, depth + 1)
