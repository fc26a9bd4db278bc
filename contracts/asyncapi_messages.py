"""Reads the messages of AsyncAPI: what they carry, in which format, and their headers."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from contracts.json_schema import JSON
from contracts.model import Located, Parameter
from contracts.openapi_parts import unread_members
from contracts.reading import ContentReading, at, shown
from contracts.schema_check import FORMS

_MESSAGE = frozenset(
    {
        "$ref", "messageId", "name", "title", "summary", "description", "tags", "externalDocs",
        "examples", "payload", "headers", "contentType", "schemaFormat", "traits", "deprecated",
    }
)  # fmt: skip
_FORMATS = ("application/vnd.aai.asyncapi", "application/schema+json", "application/schema+yaml")
_HEADERS = frozenset({"$ref", "type", "properties", "required", "title", "description", "examples"})


class Message(NamedTuple):
    """What a message carries. `bodies` is empty if nothing is said of it, or not as JSON Schema."""

    name: str
    headers: tuple[Parameter, ...]
    bodies: Mapping[str, Located]


class MessageReader:
    """The messages of one document. In version 2, traits overrule the message."""

    def __init__(self, reading: ContentReading, content_type: Any, traits_first: bool) -> None:
        self.reading, self.traits_first = reading, traits_first
        self._content_type = content_type if isinstance(content_type, str) else JSON

    def read(self, use: Located, name: str) -> Message | None:
        """A message, by the name that its own doesn't overrule. None, and noted, for none."""
        place = self.reading.follow(use)
        if place is None or self.reading.members(place, "A message") is None:
            return None
        for other in unread_members(place, _MESSAGE):
            self.reading.leave(other)
        parts = list(self._with_traits(place))
        content_type = next(filter(None, (_text(part, "contentType") for part in parts)), None)
        bodies = self._bodies(place, content_type or self._content_type)
        return Message(_name(use, place, name), tuple(self._headers(parts)), bodies)

    def _with_traits(self, place: Located) -> Iterator[Located]:
        """The message and its traits, what overrules the others first."""
        traits = []
        given = at(place, "traits") if "traits" in place.schema else None
        if given is not None and not isinstance(given.schema, list):
            self.reading.wrong(given, f'"traits" is a list; this is {shown(given.schema)}.')
        elif given is not None:
            for number in range(len(given.schema)):
                trait = self.reading.follow(at(given, number))
                if trait is not None and self.reading.members(trait, "A trait") is not None:
                    traits.append(trait)
                    for other in unread_members(trait, _MESSAGE):
                        self.reading.leave(other)
        # Of several traits the last one counts.
        traits.reverse()
        yield from [*traits, place] if self.traits_first else [place, *traits]

    def _bodies(self, place: Located, content_type: str) -> Mapping[str, Located]:
        if "payload" not in place.schema:
            return {}
        payload, schema_format = at(place, "payload"), _text(place, "schemaFormat")
        if isinstance(payload.schema, dict) and "schemaFormat" in payload.schema:
            # Version 3 says the format beside the schema.
            schema_format = _text(payload, "schemaFormat")
            payload = at(payload, "schema") if "schema" in payload.schema else payload
        if not _is_readable(schema_format):
            why = f"A payload in the format {shown(schema_format)} is not judged."
            self.reading.warn(payload, why)
            self.reading.leave(payload)
            return {}
        return {content_type: payload}

    def _headers(self, parts: list[Located]) -> Iterator[Parameter]:
        """The headers of a message and its traits, each by name once."""
        names: set[str] = set()
        for part in parts:
            if "headers" not in part.schema:
                continue
            given = self.reading.follow(at(part, "headers"))
            if given is None or self.reading.members(given, '"headers"') is None:
                continue
            for parameter in self._of_schema(given):
                if parameter.name not in names:
                    names.add(parameter.name)
                    yield parameter

    def _of_schema(self, given: Located) -> Iterator[Parameter]:
        """The headers that the schema of an object has."""
        for other in unread_members(given, _HEADERS):
            self.reading.leave(other)
        if "properties" not in given.schema:
            return
        properties = at(given, "properties")
        required = given.schema.get("required")
        needed = required if FORMS["required"][0](required) else []
        for name in self.reading.members(properties, '"properties"') or {}:
            place = at(properties, name)
            yield Parameter(name, "header", name in needed, place, place.path)


def _name(use: Located, place: Located, name: str) -> str:
    """What tells a message from others of its channel: its own name, or where it was found."""
    ref = use.schema.get("$ref") if isinstance(use.schema, dict) else None
    referred = ref.rpartition("/")[2] if isinstance(ref, str) else ""
    return _text(place, "name") or _text(place, "messageId") or name or referred


def _text(place: Located, member: str) -> str | None:
    value = place.schema.get(member)
    return value if isinstance(value, str) else None


def _is_readable(schema_format: str | None) -> bool:
    """Whether a format is JSON Schema draft-07, or what AsyncAPI makes of it."""
    if schema_format is None:
        return True
    kind, _, version = schema_format.replace(" ", "").partition(";version=")
    if kind.startswith(_FORMATS[0]):
        return True
    return kind in _FORMATS and version in ("", "draft-07")
