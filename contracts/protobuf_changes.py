"""What a change of `.proto` files breaks, after the rules of `buf breaking`.

Its category WIRE_JSON decides, with what its category PACKAGE says of messages, enums, services and
RPCs that are gone: a contract holds for the wire, for JSON, and for what is called. That generated
code changes is not a break. Beyond it, and other than it, this counts:

- A required field breaks by who sends the message: one added to a request breaks consumers, one
  added to a response breaks providers. Messages that no RPC has may be sent either way.
- That a field, a value or a reservation is gone for which nothing is reserved breaks consumers, as
  buf says: what comes in its place will be taken for it. A provider at the old files gets by.
- An RPC, a service or a message that nothing refers to, added, breaks a provider at the old files.
- A oneof that is only renamed breaks nobody.
- A value of an enum that has another number breaks providers too: on the wire it is its number.
- Whether a number without a sign takes the place of one with it depends on what is sent: unknown.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from contracts.changes import ContractChange, worse
from contracts.json_text import short_text
from contracts.model import Interface
from contracts.protobuf import read_proto
from contracts.protobuf_links import directions, referred, repackaged
from contracts.protobuf_model import (
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    ProtoMethod,
    ProtoSchema,
    end_of,
)
from schemas.dialect import Direction, Effect

_Key = TypeVar("_Key")

_GROUPS = (
    {"int32", "uint32"},
    {"int64", "uint64"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
"""Types that are the same on the wire and in JSON, but for the range of their values."""
_GOOGLE = "google.protobuf."
_ONE = {"optional": "one", "implicit": "one"}
"""Whether a field with its default value is told from one that is left out changes no value."""
_TIMES = {"one": "there once", "required": "there once", "repeated": "a list", "map": "a map"}


class _Effects(NamedTuple):
    provider: Effect
    consumer: Effect


_BREAKS = _Effects("breaking", "breaking")
_BREAKS_CONSUMER = _Effects("compatible", "breaking")
_BREAKS_PROVIDER = _Effects("breaking", "compatible")
_FITS = _Effects("compatible", "compatible")
_UNKNOWN = _Effects("unknown", "unknown")


def protobuf_changes(before: Interface, after: Interface) -> list[ContractChange]:
    """The changes from some `.proto` files to others; none if one can't be read, which is among the
    interface's `unread` then."""
    old, new = read_proto(before.document), read_proto(after.document)
    if old.schema is None or new.schema is None:
        return []
    return list(_Comparing(old.schema, new.schema).changes())


def _change(
    path: str,
    rule: str,
    effects: _Effects,
    why: str,
    before: Any = None,
    after: Any = None,
    side: Direction | None = None,
) -> ContractChange:
    was, now = short_text(before), short_text(after)
    return ContractChange(path, rule, side, effects.provider, effects.consumer, was, now, why)


class _ProtoFinding(NamedTuple):
    """A change of a field or value, before it is told where it stands."""

    rule: str
    effects: _Effects
    why: str


class _Comparing:
    """Two schemas while they are compared."""

    def __init__(self, old: ProtoSchema, new: ProtoSchema) -> None:
        self._package: tuple[str, str] | None = None
        if len(old.packages) == len(new.packages) == 1 and old.packages != new.packages:
            self._package = next(iter(old.packages)), next(iter(new.packages))
            old = repackaged(old, *self._package)
        self.old, self.new = old, new
        before, after = directions(old), directions(new)
        self._directions = {
            name: before.get(name, frozenset()) | after.get(name, frozenset())
            for name in (*old.messages, *new.messages)
        }

    def changes(self) -> Iterator[ContractChange]:
        if self._package is not None:
            was, now = self._package
            why = "Messages and services of another package are others."
            yield _change("package", "package_changed", _BREAKS, why, was, now)
        yield from self._of_messages()
        yield from self._of_enums()
        yield from self._of_services()
        yield from self._of_features()

    def _side(self, message: str) -> Direction | None:
        directions = self._directions.get(message, frozenset())
        return next(iter(directions)) if len(directions) == 1 else None

    def _required(self, message: str, is_added: bool) -> _Effects:
        """What it means that a field of a message must be sent now, or need not be any more."""
        side = self._side(message)
        if side is None:
            return _BREAKS
        return _BREAKS_CONSUMER if (side == "request") == is_added else _BREAKS_PROVIDER

    # Messages

    def _of_messages(self) -> Iterator[ContractChange]:
        held = referred(self.new)
        for name in _names(self.old.messages, self.new.messages):
            before, after = self.old.messages.get(name), self.new.messages.get(name)
            side = self._side(name)
            if after is None:
                why = "The message is gone."
                yield _change(name, "message_removed", _BREAKS_CONSUMER, why, name, side=side)
            elif before is None:
                is_own = name not in held
                effects = _BREAKS_PROVIDER if is_own else _FITS
                why = "A provider at the old files doesn't know it." if is_own else "It is new."
                yield _change(name, "message_added", effects, why, None, name, side)
            else:
                yield from self._of_message(before, after)

    def _of_message(self, before: ProtoMessage, after: ProtoMessage) -> Iterator[ContractChange]:
        side = self._side(before.name)
        names = {field.name: number for number, field in after.fields.items()}
        moved: set[int] = set()
        for number, was in before.fields.items():
            now = after.fields.get(number)
            if now is None and names.get(was.name, number) not in before.fields:
                now = after.fields[names[was.name]]
                moved.add(now.number)
            if now is None:
                changes = self._of_removed(was, after)
            else:
                changes = self._of_field(was, now, before.name)
            yield from _of_fields(before.name, side, was, now, changes)
        for number, now in after.fields.items():
            if number not in before.fields and number not in moved:
                yield from _of_fields(
                    before.name, side, None, now, self._of_added(now, before.name)
                )
        yield from _reservations(before, after)

    def _of_removed(self, was: ProtoField, after: ProtoMessage) -> Iterator[_ProtoFinding]:
        if was.label == "required":
            effects = self._required(after.name, is_added=False)
            yield _ProtoFinding("required_field_removed", effects, "It had to be there.")
        yield _removed("field", was.number, frozenset((was.name,)), after)

    def _of_added(self, now: ProtoField, message: str) -> Iterator[_ProtoFinding]:
        if now.label == "required":
            effects = self._required(message, is_added=True)
            yield _ProtoFinding("required_field_added", effects, "It has to be there.")
        else:
            yield _ProtoFinding("field_added", _FITS, "Who doesn't know it passes it over.")

    def _of_field(self, was: ProtoField, now: ProtoField, message: str) -> Iterator[_ProtoFinding]:
        if was.number != now.number:
            why = "On the wire, a field is known by its number."
            yield _ProtoFinding("field_number_changed", _BREAKS, why)
        if was.name != now.name:
            yield _ProtoFinding(
                "field_name_changed", _BREAKS, "In JSON, a field is known by its name."
            )
        elif was.json_name != now.json_name:
            why = f"In JSON, its name was {was.json_name} and is {now.json_name}."
            yield _ProtoFinding("json_name_changed", _BREAKS, why)
        yield from self._of_label(was, now, message)
        yield from self._of_type(was, now)
        if was.default != now.default:
            why = "A field that is left out is taken for another value."
            yield _ProtoFinding("default_changed", _BREAKS, why)
        if bool(was.oneof) != bool(now.oneof):
            why = "To set one field of a oneof clears the others."
            yield _ProtoFinding("oneof_changed", _BREAKS, why)
        elif was.oneof != now.oneof:
            yield self._other_oneof(was, now, message)

    def _other_oneof(self, was: ProtoField, now: ProtoField, message: str) -> _ProtoFinding:
        before, after = self.old.messages[message], self.new.messages[message]
        kept = before.fields.keys() & after.fields.keys()
        if before.oneof(was.oneof) & kept == after.oneof(now.oneof) & kept:
            return _ProtoFinding("oneof_renamed", _FITS, "The same fields exclude each other.")
        return _ProtoFinding("oneof_changed", _BREAKS, "Other fields exclude it.")

    def _of_label(self, was: ProtoField, now: ProtoField, message: str) -> Iterator[_ProtoFinding]:
        before, after = (_ONE.get(field.label, field.label) for field in (was, now))
        if before == after:
            return
        if {before, after} == {"required", "one"}:
            is_added = after == "required"
            why = "It has to be there now." if is_added else "It had to be there."
            effects = self._required(message, is_added)
            yield _ProtoFinding("required_changed", effects, why)
        else:
            why = f"It was {_TIMES[before]} and is {_TIMES[after]}."
            yield _ProtoFinding("cardinality_changed", _BREAKS, why)

    def _of_type(self, was: ProtoField, now: ProtoField) -> Iterator[_ProtoFinding]:
        if (was.kind, was.type, was.key) == (now.kind, now.type, now.key):
            return
        if "map" in (was.kind, now.kind) and was.kind != now.kind:
            return  # Its cardinality says so.
        effects = _worse(self._types(was, now), _scalars(was.key, now.key))
        why = "The values of either fit the other, on the wire and in JSON."
        if effects == _UNKNOWN:
            why = "It is a type of a file that is not given along."
            if "foreign" not in (was.kind, now.kind):
                why = "Only values in the range of both are the same; which are sent can't be told."
        elif effects != _FITS:
            why = "The values are others, on the wire or in JSON."
        yield _ProtoFinding("field_type_changed", effects, why)

    def _types(self, was: ProtoField, now: ProtoField) -> _Effects:
        if was.type == now.type and was.kind == now.kind:
            return _FITS
        before, after = self.old.enums.get(was.type), self.new.enums.get(now.type)
        if before is not None and after is not None:
            return _enums(before, after)
        if was.kind == now.kind == "foreign":
            known = was.type.startswith(_GOOGLE) and now.type.startswith(_GOOGLE)
            return _BREAKS if known else _UNKNOWN
        if "foreign" in (was.kind, now.kind) and "scalar" not in (was.kind, now.kind):
            return _UNKNOWN
        return _scalars(was.type, now.type) if was.kind == now.kind else _BREAKS

    # Enums

    def _of_enums(self) -> Iterator[ContractChange]:
        for name in _names(self.old.enums, self.new.enums):
            before, after = self.old.enums.get(name), self.new.enums.get(name)
            if after is None:
                yield _change(name, "enum_removed", _BREAKS_CONSUMER, "The enum is gone.", name)
            elif before is None:
                yield _change(name, "enum_added", _FITS, "It is new.", None, name)
            else:
                yield from _of_enum(before, after)
                yield from _reservations(before, after)

    # Services

    def _of_services(self) -> Iterator[ContractChange]:
        for name in _names(self.old.services, self.new.services):
            if name not in self.new.services:
                why = "The service is gone."
                yield _change(name, "service_removed", _BREAKS_CONSUMER, why, name)
            elif name not in self.old.services:
                why = "A provider at the old files doesn't serve it."
                yield _change(name, "service_added", _BREAKS_PROVIDER, why, None, name)
        for name in _names(self.old.methods, self.new.methods):
            before, after = self.old.methods.get(name), self.new.methods.get(name)
            if before is not None and after is not None:
                yield from _of_method(before, after)
            elif name.rpartition(".")[0] not in (self.old.services.keys() & self.new.services):
                continue  # Its service came or went.
            elif before is not None:
                shown, why = _signature(before), "The RPC is gone."
                yield _change(name, "method_removed", _BREAKS_CONSUMER, why, shown)
            elif after is not None:
                shown, why = _signature(after), "A provider at the old files doesn't serve it."
                yield _change(name, "method_added", _BREAKS_PROVIDER, why, None, shown)

    def _of_features(self) -> Iterator[ContractChange]:
        for place in _names(self.old.features, self.new.features):
            before, after = self.old.features.get(place), self.new.features.get(place)
            if before != after:
                why = "What it changes is not worked out."
                yield _change(place, "feature_changed", _UNKNOWN, why, before, after)


def _of_fields(
    message: str,
    side: Direction | None,
    was: ProtoField | None,
    now: ProtoField | None,
    findings: Iterable[_ProtoFinding],
) -> Iterator[ContractChange]:
    name = was.name if was else now.name if now else ""
    before, after = was and _declared(was), now and _declared(now)
    for rule, effects, why in findings:
        yield _change(f"{message}.{name}", rule, effects, why, before, after, side)


def _removed(
    what: str, number: int, names: frozenset[str], holder: ProtoMessage | ProtoEnum
) -> _ProtoFinding:
    """A field or an enum's value that is gone: whether another can take its place."""
    free = [] if end_of(holder.reserved, number) is not None else [f"the number {number}"]
    free += [f'the name "{name}"' for name in sorted(names - holder.reserved_names)]
    if free:
        why = f"Another may come in its place: {', '.join(free)} should be reserved."
        return _ProtoFinding(f"{what}_removed", _BREAKS_CONSUMER, why)
    why = "Its number and name are reserved, so nothing comes in its place."
    return _ProtoFinding(f"{what}_removed", _FITS, why)


def _reservations(
    before: ProtoMessage | ProtoEnum, after: ProtoMessage | ProtoEnum
) -> Iterator[ContractChange]:
    why = "What was once there may come back with another meaning."
    for low, high in before.reserved:
        # Both are in order and joined, so one range of the new must hold all of it.
        end = end_of(after.reserved, low)
        if end is None or end < high:
            shown = str(low) if low == high else f"{low} to {high}"
            yield _change(before.name, "reserved_removed", _BREAKS_CONSUMER, why, shown)
    for name in sorted(before.reserved_names - after.reserved_names):
        yield _change(before.name, "reserved_name_removed", _BREAKS_CONSUMER, why, name)


def _of_enum(before: ProtoEnum, after: ProtoEnum) -> Iterator[ContractChange]:
    moved = _renumbered(before, after)
    taken = set(moved.values())
    for number in _names(before.values, after.values):
        was, now = before.values.get(number), after.values.get(number)
        if number in taken:
            continue
        if number in moved:
            rule, effects = "enum_value_number_changed", _BREAKS
            why = "On the wire, a value is its number."
            path = f"{before.name}.{min(was or ('',))}"
            shown = _value(moved[number], after.values[moved[number]])
            yield _change(path, rule, effects, why, _value(number, was), shown)
            continue
        if now is None and was is not None:
            rule, effects, why = _removed("enum_value", number, was, after)
        elif was is None:
            rule, effects, why = "enum_value_added", _FITS, "Who doesn't know it keeps its number."
        elif was != now and now is not None:
            rule, why = "enum_value_name_changed", "In JSON, a value is its name."
            effects = _fits(was <= now, now <= was)
        else:
            continue
        path = f"{before.name}.{min(was or now or ('',))}"
        yield _change(path, rule, effects, why, _value(number, was), _value(number, now))


def _renumbered(before: ProtoEnum, after: ProtoEnum) -> dict[int, int]:
    """Numbers that are gone whose names all have one that is new, by the former."""
    numbers = {names: number for number, names in after.values.items()}
    return {
        number: numbers[names]
        for number, names in before.values.items()
        if number not in after.values and numbers.get(names, number) not in before.values
    }


def _value(number: int, names: frozenset[str] | None) -> str | None:
    return f"{' = '.join(sorted(names))} = {number}" if names else None


def _of_method(before: ProtoMethod, after: ProtoMethod) -> Iterator[ContractChange]:
    shown = _signature(before), _signature(after)
    if before.request != after.request:
        why = "Another message is sent."
        yield _change(before.name, "request_type_changed", _BREAKS, why, *shown, side="request")
    if before.response != after.response:
        why = "Another message is answered."
        yield _change(before.name, "response_type_changed", _BREAKS, why, *shown, side="response")
    if before.client_streams != after.client_streams:
        why = "One message and a stream of them are sent by other calls."
        yield _change(before.name, "client_streaming_changed", _BREAKS, why, *shown, side="request")
    if before.server_streams != after.server_streams:
        why = "One message and a stream of them are received by other calls."
        yield _change(
            before.name, "server_streaming_changed", _BREAKS, why, *shown, side="response"
        )
    if before.idempotency != after.idempotency:
        why = "It decides whether a call may be made again, and with GET."
        yield _change(
            before.name, "idempotency_changed", _BREAKS, why,
            before.idempotency, after.idempotency,
        )  # fmt: skip


def _enums(before: ProtoEnum, after: ProtoEnum) -> _Effects:
    """Two enums for one field: one that has all values of another takes its place."""
    if before.name.rpartition(".")[2] != after.name.rpartition(".")[2]:
        return _BREAKS
    return _fits(before.pairs() <= after.pairs(), after.pairs() <= before.pairs())


def _scalars(before: str, after: str) -> _Effects:
    if before == after:
        return _FITS
    return _UNKNOWN if any({before, after} <= group for group in _GROUPS) else _BREAKS


def _fits(consumer: bool, provider: bool) -> _Effects:
    return _Effects(
        "compatible" if provider else "breaking", "compatible" if consumer else "breaking"
    )


def _worse(first: _Effects, second: _Effects) -> _Effects:
    return _Effects(*map(worse, first, second))


def _names(before: Mapping[_Key, Any], after: Mapping[_Key, Any]) -> dict[_Key, None]:
    return dict.fromkeys((*before, *after))


def _declared(field: ProtoField) -> str:
    """A field as a file has it."""
    type = f"map<{field.key}, {field.type}>" if field.kind == "map" else field.type
    label = field.label if field.label in ("required", "repeated") else ""
    oneof = f" in oneof {field.oneof}" if field.oneof else ""
    default = f" [default = {field.default}]" if field.default else ""
    return f"{label} {type} {field.name} = {field.number}{default}{oneof}".strip()


def _signature(method: ProtoMethod) -> str:
    request = f"{'stream ' if method.client_streams else ''}{method.request}"
    response = f"{'stream ' if method.server_streams else ''}{method.response}"
    return f"({request}) returns ({response})"
