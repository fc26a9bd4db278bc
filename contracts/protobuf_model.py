"""What `.proto` files define, each type by its full name."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

Kind = Literal["scalar", "message", "enum", "group", "map", "foreign"]
"""What a field holds. `foreign` is a type of a file that is not there."""
Label = Literal["required", "optional", "implicit", "repeated", "map"]
"""How often a field is there. `implicit` fields are not told from ones with the default value."""
Ranges = tuple[tuple[int, int], ...]
"""Numbers, each range with its first and last."""


def end_of(ranges: Ranges, number: int) -> int | None:
    """The last number of the range that holds a number, of ranges in order; None if none does."""
    place = bisect_right(ranges, number, key=itemgetter(0)) - 1
    if place < 0 or ranges[place][1] < number:
        return None
    return ranges[place][1]


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field. `type` is a scalar's or a full name; of a map it is that of its values, and `key` is
    that of its keys. `oneof` is the name of the oneof that the field is in."""

    number: int
    name: str
    kind: Kind
    type: str
    label: Label
    json_name: str
    key: str = ""
    oneof: str = ""
    default: str = ""


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message, or the extensions that a package has for one. Fields by number."""

    name: str
    fields: Mapping[int, ProtoField] = field(default_factory=dict)
    reserved: Ranges = ()
    reserved_names: frozenset[str] = frozenset()

    def oneof(self, name: str) -> frozenset[int]:
        """The numbers of the fields in a oneof."""
        return frozenset(number for number, field in self.fields.items() if field.oneof == name)


@dataclass(frozen=True, slots=True)
class ProtoEnum:
    """An enum, with the names that each number has."""

    name: str
    values: Mapping[int, frozenset[str]]
    reserved: Ranges = ()
    reserved_names: frozenset[str] = frozenset()

    def pairs(self) -> frozenset[tuple[int, str]]:
        return frozenset((number, name) for number, names in self.values.items() for name in names)


@dataclass(frozen=True, slots=True)
class ProtoMethod:
    """An RPC, with the full names of the messages that go either way."""

    name: str
    request: str
    response: str
    client_streams: bool
    server_streams: bool
    idempotency: str


@dataclass(frozen=True, slots=True)
class ProtoSchema:
    """All that the files of a content define, by full name; methods by `package.Service.Method`."""

    packages: frozenset[str]
    messages: Mapping[str, ProtoMessage]
    enums: Mapping[str, ProtoEnum]
    services: Mapping[str, frozenset[str]]
    methods: Mapping[str, ProtoMethod]
    features: Mapping[str, str] = field(default_factory=dict)
    """Options of editions, by where they stand, that are not worked out."""
