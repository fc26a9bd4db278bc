"""Whether two alternatives of a schema are certainly apart, from what stands nearby.

It decides whether the branches of a `oneOf` exclude each other, so that it says the same as
`anyOf`. No reference is followed: branches are told apart by their types, by numbers, or by a
member whose `const` or `enum` is written in them.
"""

from collections.abc import Callable
from typing import Any

from contracts.json_text import text_of, value_key
from contracts.schema_atoms import Atom, View, is_nothing
from contracts.work import Work

Member = Callable[[Atom, str], View]


def apart(
    first: Atom, second: Atom, member: Member, work: Work, other: Member | None = None
) -> bool:
    """Whether it is certain that no value fits both. `member` and `other` tell what each says of a
    member; `other` is needed if they are of two readers. Raises TooMuchWork."""
    if first.type != second.type:
        return True
    if first.values is not None and second.values is not None:
        work.spend(len(second.values))
        return first.values.keys().isdisjoint(second.values)
    if first.type == "number":
        return _below(first, second) or _below(second, first)
    return any(
        _never_both(member(first, name), (other or member)(second, name), work)
        for name in first.required | second.required
    )


def _below(first: Atom, second: Atom) -> bool:
    """Whether the numbers of one end before those of the other begin."""
    if first.high is None or second.low is None:
        return False
    end, start = first.high, second.low
    return end.value < start.value or (end.value == start.value and (end.open or start.open))


def _never_both(first: View, second: View, work: Work) -> bool:
    if is_nothing(first) or is_nothing(second):
        return True
    work.spend()
    values = _values(first, work), _values(second, work)
    if values[0] is not None and values[1] is not None:
        return values[0].isdisjoint(values[1])
    types = _types(first), _types(second)
    return types[0] is not None and types[1] is not None and types[0].isdisjoint(types[1])


def _values(view: View, work: Work) -> set[str] | None:
    """The only values that are written for a view, as text."""
    for node in view:
        if isinstance(node.raw, dict) and "nullable" not in node.raw:
            if "const" in node.raw:
                return {value_key(node.raw["const"])}
            if isinstance(node.raw.get("enum"), list):
                work.spend(2 * len(node.raw["enum"]))
                return {value_key(value) for value in node.raw["enum"]}
    return None


def _types(view: View) -> set[Any] | None:
    """The types that are written for a view; integers are numbers."""
    for node in view:
        if isinstance(node.raw, dict) and "type" in node.raw and "nullable" not in node.raw:
            names = node.raw["type"]
            listed = names if isinstance(names, list) else [names]
            return {"number" if name == "integer" else text_of(name) for name in listed} | (
                {"number"} if "number" in listed else set()
            )
    return None
