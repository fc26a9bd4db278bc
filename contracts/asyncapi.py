"""Reads AsyncAPI 2.0 to 2.6 and 3.0 into the inner form: one event for each message of a channel.

An AsyncAPI document describes an application, which is the provider. What it sends (`send`; in 2.x
`subscribe`, by what others do) is emitted by the provider; what it receives (`receive`; in 2.x
`publish`) is sent by the consumer. An event is the same in two versions if its direction, the
address of its channel and the name of its message are.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from contracts.asyncapi_messages import Message, MessageReader
from contracts.json_schema import MESSAGE
from contracts.model import Interface, Located, Operation, Part
from contracts.openapi_parts import unread_members
from contracts.reading import ContentReading, at, shown
from contracts.schema_check import check_schemas

Action = Literal["send", "receive"]
"""What the provider does."""

_DOCUMENT = frozenset(
    {
        "asyncapi", "id", "info", "tags", "externalDocs", "defaultContentType", "channels",
        "operations", "components",
    }
)  # fmt: skip
_WORDS = frozenset({"$ref", "title", "summary", "description", "tags", "externalDocs"})
_CHANNEL_2 = _WORDS | {"publish", "subscribe"}
_CHANNEL_3 = _WORDS | {"address", "messages"}
_OPERATION_2 = _WORDS | {"operationId", "message", "deprecated"}
_OPERATION_3 = _WORDS | {"action", "channel", "messages", "reply"}
_REPLY = _WORDS | {"channel", "messages"}
_ACTIONS_2: Mapping[str, Action] = {"subscribe": "send", "publish": "receive"}
_OTHER: Mapping[Action, Action] = {"send": "receive", "receive": "send"}


class _Use(NamedTuple):
    """Where messages go: what the provider does with them, and the name of where."""

    action: Action
    address: str


def is_asyncapi(content: Mapping[str, Any]) -> bool:
    """Whether a content says that it is AsyncAPI."""
    return isinstance(content.get("asyncapi"), str)


def read_asyncapi(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """The events of an AsyncAPI document. Raises TooMuchWork beyond the budget."""
    reading = ContentReading(content)
    root = Located(content, ())
    version = content.get("asyncapi")
    if not (isinstance(version, str) and version[:2] in ("2.", "3.")):
        where = at(root, "asyncapi") if "asyncapi" in content else root
        why = f'"asyncapi" is the version: "2.6.0" or "3.0.0"; this is {shown(version)}.'
        reading.misfit(where, why)
    is_version_2 = isinstance(version, str) and version.startswith("2.")
    messages = MessageReader(reading, content.get("defaultContentType"), is_version_2)
    events = _Version2(reading, messages) if is_version_2 else _Version3(reading, messages)
    operations = list(events.of(root))
    for place in unread_members(root, _DOCUMENT):
        reading.leave(place)
    check_schemas(reading, _schemas(operations), "draft-07")
    return reading.interface("asyncapi", "draft-07", operations)


class _Events:
    """What the versions have in common."""

    def __init__(self, reading: ContentReading, messages: MessageReader) -> None:
        self.reading, self.messages = reading, messages
        self._keys: set[str] = set()

    def channels(self, root: Located) -> Iterator[tuple[str, Located]]:
        """The channels by name, without their references."""
        if "channels" not in root.schema:
            self.reading.misfit(root, 'An AsyncAPI document has "channels".')
            return
        channels = at(root, "channels")
        for name in self.reading.members(channels, '"channels"') or {}:
            channel = self.reading.follow(at(channels, name))
            if channel is not None and self.reading.members(channel, "A channel") is not None:
                yield name, channel

    def leave_others(self, place: Located, known: frozenset[str]) -> None:
        for other in unread_members(place, known):
            self.reading.leave(other)

    def event(self, use: _Use, place: Located, message: Message) -> Iterator[Operation]:
        """A message as an operation; nothing, and noted, if it is there already."""
        self.reading.step()
        key = f"{use.action} {use.address} {message.name}".rstrip()
        if key in self._keys:
            why = f"{key} is there twice: messages of a channel are told apart by their names."
            self.reading.wrong(place, why)
            return
        self._keys.add(key)
        part = Part(place.path, message.headers, message.bodies, True)
        is_sent = use.action == "send"
        request, responses = (Part(place.path), {MESSAGE: part}) if is_sent else (part, {})
        yield Operation(key, "event", place.path, request, responses)


class _Version2(_Events):
    """AsyncAPI 2: operations stand in their channel, which is known by its address."""

    def of(self, root: Located) -> Iterator[Operation]:
        for address, channel in self.channels(root):
            self.leave_others(channel, _CHANNEL_2)
            for name, action in _ACTIONS_2.items():
                if name in channel.schema:
                    yield from self._of_operation(at(channel, name), _Use(action, address))

    def _of_operation(self, place: Located, use: _Use) -> Iterator[Operation]:
        if self.reading.members(place, "An operation") is None:
            return
        self.leave_others(place, _OPERATION_2)
        if "message" not in place.schema:
            self.reading.warn(place, "The operation has no message, so none is known.")
            return
        for message_place in self._messages(at(place, "message")):
            message = self.messages.read(message_place, "")
            if message is not None:
                yield from self.event(use, message_place, message)

    def _messages(self, place: Located) -> Iterator[Located]:
        options = place.schema.get("oneOf") if isinstance(place.schema, dict) else None
        if not isinstance(options, list):
            yield place
            return
        for number in range(len(options)):
            yield at(place, "oneOf", number)


class _Version3(_Events):
    """AsyncAPI 3: operations refer to a channel, and to some or all of its messages."""

    def of(self, root: Located) -> Iterator[Operation]:
        channels = dict(self.channels(root))
        for channel in channels.values():
            self.leave_others(channel, _CHANNEL_3)
        operations = root.schema.get("operations")
        if not operations:
            yield from self._without_operations(root, channels)
            return
        places = at(root, "operations")
        for name in self.reading.members(places, '"operations"') or {}:
            place = self.reading.follow(at(places, name))
            if place is not None and self.reading.members(place, "An operation") is not None:
                yield from self._of_operation(place)

    def _without_operations(
        self, root: Located, channels: Mapping[str, Located]
    ) -> Iterator[Operation]:
        if channels:
            why = (
                "No operation says who sends, so every message is taken to be sent by the provider."
            )
            self.reading.warn(root, why)
        for name, channel in channels.items():
            use = _Use("send", self._address(channel, name))
            yield from self._of_messages(self._all_messages(channel), use)

    def _of_operation(self, place: Located) -> Iterator[Operation]:
        self.leave_others(place, _OPERATION_3)
        action = place.schema.get("action")
        if action not in ("send", "receive"):
            why = f'"action" is "send" or "receive"; this is {shown(action)}.'
            self.reading.wrong(place, why)
            return
        yield from self._of_place(place, action, "")
        if "reply" in place.schema:
            reply = self.reading.follow(at(place, "reply"))
            if reply is None or self.reading.members(reply, "A reply") is None:
                return
            self.leave_others(reply, _REPLY)
            named = f"reply to {self._channel(place)[0]}"
            yield from self._of_place(reply, _OTHER[action], named)

    def _of_place(self, place: Located, action: Action, named: str) -> Iterator[Operation]:
        """The messages of an operation or a reply. A reply is named by what it replies to: its
        address may be known only when it is sent."""
        address, channel = self._channel(place)
        if "messages" in place.schema:
            messages = self._listed(at(place, "messages"))
        elif channel is not None:
            messages = self._all_messages(channel)
        else:
            return
        yield from self._of_messages(messages, _Use(action, named or address))

    def _of_messages(
        self, messages: Iterator[tuple[str, Located]], use: _Use
    ) -> Iterator[Operation]:
        for name, place in messages:
            message = self.messages.read(place, name)
            if message is not None:
                yield from self.event(use, place, message)

    def _channel(self, place: Located) -> tuple[str, Located | None]:
        """The address of the channel that an operation or reply refers to, and the channel."""
        if "channel" not in place.schema:
            return "", None
        given = at(place, "channel")
        channel = self.reading.follow(given)
        if channel is None or self.reading.members(channel, "A channel") is None:
            return "", None
        ref = given.schema.get("$ref", "")
        return self._address(channel, str(ref).rpartition("/")[2]), channel

    def _address(self, channel: Located, name: str) -> str:
        """A channel's address, or its name: an address may be known only at run time."""
        address = channel.schema.get("address")
        return address if isinstance(address, str) else name

    def _listed(self, place: Located) -> Iterator[tuple[str, Located]]:
        if not isinstance(place.schema, list):
            why = f'"messages" is a list of references; this is {shown(place.schema)}.'
            self.reading.wrong(place, why)
            return
        for number, reference in enumerate(place.schema):
            ref = reference.get("$ref", "") if isinstance(reference, dict) else ""
            yield str(ref).rpartition("/")[2], at(place, number)

    def _all_messages(self, channel: Located) -> Iterator[tuple[str, Located]]:
        if "messages" in channel.schema:
            messages = at(channel, "messages")
            for name in self.reading.members(messages, '"messages"') or {}:
                yield name, at(messages, name)


def _schemas(operations: list[Operation]) -> Iterator[Located]:
    for operation in operations:
        for part in (operation.request, *operation.responses.values()):
            yield from (parameter.schema for parameter in part.parameters)
            yield from part.bodies.values()
