from typing import Any

import pytest

from contracts.asyncapi_messages import Message, MessageReader
from contracts.model import Located
from contracts.reading import ContentReading


def read(message: Any, *, traits_first: bool = False) -> tuple[Message | None, ContentReading]:
    reading = ContentReading({"m": message})
    reader = MessageReader(reading, None, traits_first)
    return reader.read(Located(message, ("m",)), "named"), reading


def test_a_message_of_which_nothing_is_said() -> None:
    message, reading = read({})
    assert message == Message("named", (), {})
    assert reading.problems == []


@pytest.mark.parametrize("message", [None, 1, [], "m"])
def test_no_message(message: Any) -> None:
    read_message, reading = read(message)
    assert read_message is None
    assert "A message is an object" in reading.problems[0].why


@pytest.mark.parametrize(("traits_first", "kept"), [(True, "text/c"), (False, "text/a")])
def test_of_several_traits_the_last_counts(traits_first: bool, kept: str) -> None:
    traits = [{"contentType": "text/b"}, {"contentType": "text/c"}]
    message, _ = read(
        {"contentType": "text/a", "payload": {}, "traits": traits}, traits_first=traits_first
    )
    assert message is not None
    assert list(message.bodies) == [kept]


def test_what_headers_say_beyond_their_names_is_left_unread() -> None:
    headers = {
        "properties": {"a": {}},
        "required": "a",
        "additionalProperties": False,
        "x-note": "kept by nobody",
    }
    message, reading = read({"headers": headers})
    assert message is not None
    assert [(header.name, header.required) for header in message.headers] == [("a", False)]
    assert [place.path for place in reading.unread] == [("m", "headers", "additionalProperties")]


def test_a_payload_whose_format_is_beside_no_schema() -> None:
    payload = {"schemaFormat": "application/vnd.aai.asyncapi;version=3.0.0"}
    message, _ = read({"payload": payload})
    assert message is not None
    assert message.bodies == {"application/json": Located(payload, ("m", "payload"))}
