"""Values that a sender may send: to show that something is refused, not to test with.

They are few, and each is held against the sender's own schema before it is given.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from contracts.schema_atoms import Atom, View
from contracts.schema_reader import SchemaReader
from contracts.schema_values import accepts_atom

DEPTH_MAX = 6
EACH_MAX = 6
"""Values that are tried for a member or an element."""
ALL_MAX = 60
_TEXTS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "time": "12:00:00Z",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "byte": "YQ==",
}


def examples(reader: SchemaReader, atom: Atom, depth: int = 0) -> Iterator[Any]:
    """Values that fit an alternative for certain. Raises TooMuchWork."""
    for value in islice(_tries(reader, atom, depth), ALL_MAX):
        reader.work.spend()
        if accepts_atom(reader, atom, value, depth) is True:
            yield value


def _tries(reader: SchemaReader, atom: Atom, depth: int) -> Iterator[Any]:
    if atom.values is not None:
        yield from atom.values.values()
    elif atom.type == "null":
        yield None
    elif atom.type == "boolean":
        yield from (False, True)
    elif atom.type == "number":
        yield from _numbers(atom)
    elif atom.type == "string":
        yield from _strings(atom)
    elif depth < DEPTH_MAX:
        yield from (_arrays if atom.type == "array" else _objects)(reader, atom, depth + 1)


def _numbers(atom: Atom) -> Iterator[float]:
    for edge, inward in ((atom.low, 1), (atom.high, -1)):
        if edge is not None:
            yield edge.value + inward if edge.open else edge.value
            yield edge.value + inward / 2
    yield from (0, 1, -1)
    if not atom.integer:
        yield 0.5
    for key, of in atom.texts:
        if key == "multipleOf":
            yield of


def _strings(atom: Atom) -> Iterator[str]:
    for key, text in atom.texts:
        if key == "format" and text in _TEXTS:
            yield _TEXTS[text]
    least, most = atom.bounds.get("minLength", 0), atom.bounds.get("maxLength")
    for letter in ("a", "A", "0"):
        for length in (
            max(least, 1),
            least,
            most if most is not None and most < 100 else least + 1,
        ):
            yield letter * min(length, 1000)


def _some(reader: SchemaReader, view: View, depth: int) -> list[Any]:
    """A few values of a view, of each alternative one first."""
    if not view:
        return [None, 0, "a"]
    values = []
    for atom in reader.atoms(view):
        values += list(islice(examples(reader, atom, depth), EACH_MAX))
    return values


def _arrays(reader: SchemaReader, atom: Atom, depth: int) -> Iterator[list[Any]]:
    least = min(atom.bounds.get("minItems", 0), 10)
    values = _some(reader, atom.items, depth)
    first = [next(iter(_some(reader, view, depth)), None) for view in atom.prefix[: max(least, 1)]]
    missing = max(0, least - len(first))
    if values:
        yield first + [values[0]] * missing
    elif not missing:
        yield first
    yield [] if not least else first
    for value in values:
        yield [*first, *[value] * max(1, missing)]


def _objects(reader: SchemaReader, atom: Atom, depth: int) -> Iterator[dict[str, Any]]:
    known = {name: _some(reader, reader.member(atom, name), depth) for name in atom.required}
    if not all(known.values()):
        return
    base = {name: values[0] for name, values in sorted(known.items())}
    yield base
    for name in atom.members:
        values = known.get(name) or _some(reader, reader.member(atom, name), depth)
        for value in values[:EACH_MAX]:
            reader.work.spend(len(base))
            yield {**base, name: value}
    if atom.rest:
        for value in _some(reader, atom.rest, depth)[:EACH_MAX]:
            yield {**base, "other": value}
