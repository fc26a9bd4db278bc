"""What a hostile member makes of a message, by a seeded chance: `Mutator(seed).mutated(message)`.

Each way of changing a message is a kind with a name. `LEFT_OUT` names those that are not used, and
the fault that each is waiting for.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.acceptance.shapes import LITERALS, STRINGS, Literal, nested
from tests.byzantine.seeds import SIGN

DAY = 86_400_000_000
Holder = dict[str, Any] | list[Any]
Place = tuple[Holder, Any]
"""What holds a value, and under which name or number."""

INTEGERS = [
    -1,
    0,
    2**31,
    2**53 - 1,
    2**53,
    -(2**53),
    2**63 - 1,
    2**63,
    2**64 - 1,
    Literal("18446744073709551616"),
    Literal("1" + "0" * 400),
    1e300,
    5e-324,
    -0.0,
]
VALUES_MAX = 50_000
"""To which a list is repeated, about: more is the tests' own cost."""
LEFT_OUT: dict[str, str] = {}
"""Kinds that are not used, each with the fault that it waits for."""


class Mutator:
    """Changes messages. `foreign` are values of others that may be put into them by the kind of
    member: `agents`, `projects`, `ids`, `signatures` and whole `subtrees`."""

    def __init__(
        self,
        seed: object,
        foreign: dict[str, list[Any]] | None = None,
        left_out: dict[str, str] = LEFT_OUT,
    ) -> None:
        self.chance = Random(str(seed))
        self.foreign = foreign or {}
        self.kinds = [kind for kind in KINDS if kind not in left_out]
        self.done: list[str] = []
        """The kinds of the last message."""

    def mutated(self, message: Any) -> Any:
        """A changed copy: at one place mostly, at up to four."""
        whole = {"": deepcopy(message)}
        self.done = []
        for _ in range(self.chance.choice([1, 1, 1, 2, 2, 4])):
            kind = self.chance.choice(self.kinds)
            places = [one for one in _places(whole) if _fits(kind, one)]
            if places:
                holder, name = self.chance.choice(places)
                KINDS[kind](self, holder, name)
                self.done.append(f"{kind}:{name}")
        return whole.get("", message)

    def of(self, what: str, otherwise: Any = "x") -> Any:
        found = self.foreign.get(what) or [otherwise]
        return deepcopy(self.chance.choice(found))


def _places(value: Any) -> Iterator[Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in list(items):
        yield value, name
        if isinstance(item, dict | list):
            yield from _places(item)


def _fits(kind: str, place: Place) -> bool:
    """Whether a kind of change is one of this place."""
    holder, name = place
    value = holder[name]
    if name == "":
        return False
    if kind in NAMED:
        return str(name).endswith(NAMED[kind])
    if kind in ("permuted", "repeated"):
        return isinstance(value, list) and len(value) > 0
    if kind == "signature":
        return bool(value == SIGN)
    if kind == "missing":
        return isinstance(holder, dict)
    return isinstance(value, dict) if kind == "extra" else True


NAMED: dict[str, tuple[str, ...]] = {
    "stamp": ("stamp", "_at", "At"),
    "ordinal": ("version", "number", "round", "hop", "size", "offset"),
    "author": ("agent_id", "agent", "agentId", "from", "node"),
    "project": ("projectId", "project_id"),
    "id": ("_id", "Id", "repo", "digest", "parent", "sha256"),
    "content": ("content", "details", "suggested_change", "payload"),
}
"""Kinds that are of members with such names, by the ends of them."""


def _type(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.chance.choice([None, True, 1, 1.5, "", "x", [], {}, [[]], {"a": None}])


def _missing(by: Mutator, holder: Holder, name: Any) -> None:
    del holder[name]


def _extra(by: Mutator, holder: Holder, name: Any) -> None:
    odd = by.chance.choice(["x", "__class__", "", "\x00", "kind", "x" * 300, "\U0010ffff"])
    holder[name][odd] = by.chance.choice([1, None, "x" * 5_000, {"a": [1]}])


def _deep(by: Mutator, holder: Holder, name: Any) -> None:
    depth = by.chance.choice([30, 60, 64, 65, 90, 101, 300, 1_000])
    if depth < 100 and by.chance.random() < 0.7:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        holder[name] = value
    else:
        holder[name] = nested(depth, by.chance.random() < 0.5)


def _integer(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.chance.choice(INTEGERS)


def _literal(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = Literal(by.chance.choice(LITERALS))


def _long(by: Mutator, holder: Holder, name: Any) -> None:
    value = [*STRINGS, "x" * 300_000, ["x"] * 5_001, {str(n): n for n in range(3_000)}]
    holder[name] = by.chance.choice(value)


def _stamp(by: Mutator, holder: Holder, name: Any) -> None:
    value = holder[name]
    if isinstance(value, str):
        times = ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999+00:00", "2255-06-05T00:00:00Z"]
        holder[name] = by.chance.choice(times)
        return
    known = value if isinstance(value, int) else 0
    moved = [0, 1, 2**53 - 1, known + DAY // 2, known + 3 * DAY, known - 3_000 * DAY, known]
    holder[name] = by.chance.choice(moved)


def _ordinal(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.chance.choice([2, 3, 500, 1_001, 65_536, 999_999, 1_000_000, 1_000_001])


def _author(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.of("agents")


def _project(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.of("projects")


def _id(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.of("ids")


def _signature(by: Mutator, holder: Holder, name: Any) -> None:
    garbage = {"node": by.of("agents"), "value": by.chance.choice(["AAAA", "é", "=", "A" * 200])}
    other = by.of("signatures", garbage)
    path = {"path": by.chance.choice(["AAAA", "A" * 43 + "=", "\x00", "A" * 1_400])}
    holder[name] = by.chance.choice(
        [other, garbage, garbage | path, other | path, other | {"unkeyed": True}]
    )


def _content(by: Mutator, holder: Holder, name: Any) -> None:
    """What is of the right type, and hard to keep, sign or send on."""
    deep: Any = 1
    for _ in range(by.chance.choice([10, 60, 62, 63, 64])):
        deep = {"a": deep}
    values = [
        {"deep": deep},
        {"text": "x" * 400_000},
        {"text": "\U0010ffff" * 50_000},
        {"numbers": [2**53 - 1, -(2**53) + 1, 0.1, 1e-7, -0.0, 1e15]},
        {"\ud7ff\ue000": 1, "\U00010000": 2},
        {"big": 2**53},
        {"": {"": {"": ""}}},
        {},
    ]
    holder[name] = by.chance.choice(values)


def _permuted(by: Mutator, holder: Holder, name: Any) -> None:
    by.chance.shuffle(holder[name])
    if by.chance.random() < 0.5:
        holder[name].pop()


def _repeated(by: Mutator, holder: Holder, name: Any) -> None:
    room = VALUES_MAX // sum(1 for _ in _places(holder[name]))
    times = min(by.chance.choice([2, 50, 400]), max(2, room))
    # Each a copy: what is changed in one next is changed in that alone.
    holder[name] = [deepcopy(one) for _ in range(times) for one in holder[name]]


def _grafted(by: Mutator, holder: Holder, name: Any) -> None:
    holder[name] = by.of("subtrees", {})


KINDS: dict[str, Callable[[Mutator, Any, Any], None]] = {
    "type": _type,
    "missing": _missing,
    "extra": _extra,
    "deep": _deep,
    "integer": _integer,
    "literal": _literal,
    "long": _long,
    "stamp": _stamp,
    "ordinal": _ordinal,
    "author": _author,
    "project": _project,
    "id": _id,
    "signature": _signature,
    "content": _content,
    "permuted": _permuted,
    "repeated": _repeated,
    "grafted": _grafted,
}
