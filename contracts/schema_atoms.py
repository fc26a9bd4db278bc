"""The normal form of a schema: alternatives of one JSON type each, with what they ask of a value.

`{"type": ["string", "null"], "maxLength": 5}` has two: strings of at most five characters, and
null. Keywords that join schemas are worked out (`allOf` as intersection, `anyOf` as union); what
can't be is kept as text in `opaque`, and is equal or unknown.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from contracts.model import Path
from contracts.shorthand import ShorthandSchema

TYPES = ("null", "boolean", "number", "string", "array", "object")
LOWER = frozenset({"minLength", "minItems", "minProperties"})


class SchemaNode(NamedTuple):
    """A schema as it is written, and where."""

    raw: Any
    path: Path
    file: str


def below(node: SchemaNode, steps: Path) -> Path:
    """The path of a keyword of a schema, or of a schema in it, as the content writes it."""
    if isinstance(node.raw, ShorthandSchema):
        return (*node.path, *node.raw.below(steps))
    return (*node.path, *steps)


View = tuple[SchemaNode, ...]
"""Schemas that hold together of one value. None at all: any value."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A bound of a number: the value itself is outside if it is `open`."""

    value: float
    open: bool
    key: str
    """The keyword that says so."""


@dataclass(frozen=True, slots=True)
class Atom:
    """Values of one type. `at` is the node that says what the type is, for paths.

    `values` are the only ones, by their `value_key`, if it is not None. `bounds` has counts by
    keyword, `texts` the values of keywords that are compared as they are (pattern, format,
    multipleOf). `rest` describes members that are named nowhere: None if nothing is said of them.
    `opaque` are keywords that are not worked out, with their text. A value that fits one of
    `excludes` too is refused, as `oneOf` says; that is among the opaque ones all the same, and
    known of single values.
    """

    type: str
    at: SchemaNode
    values: Mapping[str, Any] | None = None
    integer: bool = False
    low: Edge | None = None
    high: Edge | None = None
    bounds: Mapping[str, int] = field(default_factory=dict)
    texts: frozenset[tuple[str, Any]] = frozenset()
    unique: bool = False
    prefix: tuple[View, ...] = ()
    items: View = ()
    required: frozenset[str] = frozenset()
    members: Mapping[str, View] = field(default_factory=dict)
    patterns: Mapping[str, View] = field(default_factory=dict)
    rest: View | None = None
    names: View = ()
    opaque: frozenset[tuple[str, str]] = frozenset()
    excludes: tuple["Atom", ...] = ()

    @property
    def size(self) -> int:
        """How much is asked, for the work that it makes to look at it."""
        return (
            len(self.values or ())
            + len(self.required)
            + len(self.texts)
            + len(self.opaque)
            + len(self.prefix)
            + len(self.items)
            + sum(map(len, self.members.values()))
            + sum(map(len, self.patterns.values()))
            + len(self.members)
            + len(self.excludes)
        )


NOTHING: View = (SchemaNode(False, (), ""),)
"""The view that no value fits."""


def is_nothing(view: View | None) -> bool:
    # Asked more often than anything else: to make a generator costs more than the answer.
    for node in view or ():  # noqa: SIM110
        if node.raw is False:
            return True
    return False


def value_type(value: Any) -> str:
    """The JSON type of a value, with every number as `number`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def is_integer(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def meet(first: Atom, second: Atom, member: Callable[[Atom, str], View]) -> Atom | None:
    """The values that fit both; None if that can be none, for their types.

    `member` tells what an atom says of a member by name.
    """
    if first.type != second.type:
        return None
    if first is second:
        return first
    values = _common(first.values, second.values)
    names = (*first.members, *(name for name in second.members if name not in first.members))
    return replace(
        first,
        values=values,
        integer=first.integer or second.integer,
        low=_tighter(first.low, second.low, 1),
        high=_tighter(first.high, second.high, -1),
        bounds=_bounds(first.bounds, second.bounds),
        texts=first.texts | second.texts,
        unique=first.unique or second.unique,
        prefix=_prefix(first, second),
        items=_both(first.items, second.items),
        required=first.required | second.required,
        members={name: _both(member(first, name), member(second, name)) for name in names},
        patterns=_patterns(first.patterns, second.patterns),
        rest=_rest(first.rest, second.rest),
        names=_both(first.names, second.names),
        opaque=first.opaque | second.opaque,
        excludes=tuple({id(each): each for each in (*first.excludes, *second.excludes)}.values()),
    )


def _common(
    first: Mapping[str, Any] | None, second: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    if first is None or second is None:
        return first if second is None else second
    return {key: value for key, value in first.items() if key in second}


def _tighter(first: Edge | None, second: Edge | None, sign: int) -> Edge | None:
    if first is None or second is None:
        return first if second is None else second
    return max(first, second, key=lambda edge: (sign * edge.value, edge.open))


def _bounds(first: Mapping[str, int], second: Mapping[str, int]) -> Mapping[str, int]:
    if not first or not second:
        return first or second
    joined = dict(first)
    for key, value in second.items():
        known = joined.get(key)
        pick = max if key in LOWER else min
        joined[key] = value if known is None else pick(known, value)
    return joined


def _both(first: View, second: View) -> View:
    if not first or first == second:
        return second
    known = {id(node.raw) for node in first}
    return (*first, *(node for node in second if id(node.raw) not in known))


def _prefix(first: Atom, second: Atom) -> tuple[View, ...]:
    length = max(len(first.prefix), len(second.prefix))
    return tuple(_both(_place(first, at), _place(second, at)) for at in range(length))


def _place(atom: Atom, at: int) -> View:
    return atom.prefix[at] if at < len(atom.prefix) else atom.items


def _patterns(first: Mapping[str, View], second: Mapping[str, View]) -> Mapping[str, View]:
    if not first or not second:
        return first or second
    joined = dict(first)
    for pattern, view in second.items():
        joined[pattern] = _both(joined.get(pattern, ()), view)
    return joined


def _rest(first: View | None, second: View | None) -> View | None:
    if first is None or second is None:
        return first if second is None else second
    return _both(first, second)
