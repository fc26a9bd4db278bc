import json
from typing import Any

import pytest
from hypothesis import given

from contracts.asyncapi import is_asyncapi, read_asyncapi
from contracts.model import Interface, Located, Operation
from contracts.work import TooMuchWork
from tests.contracts.hostile import spoilt_documents

SIGNED_UP = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}
VERSION_2: dict[str, Any] = {
    "asyncapi": "2.6.0",
    "info": {"title": "Accounts", "version": "1"},
    "channels": {
        "user/signedup": {
            "subscribe": {"message": {"$ref": "#/components/messages/SignedUp"}},
            "publish": {"message": {"oneOf": [{"name": "Invite", "payload": {"type": "string"}}]}},
        }
    },
    "components": {
        "schemas": {"SignedUp": SIGNED_UP},
        "messages": {
            "SignedUp": {
                "payload": {"$ref": "#/components/schemas/SignedUp"},
                "headers": {
                    "type": "object",
                    "required": ["trace"],
                    "properties": {"trace": {"type": "string"}, "retry": {"type": "integer"}},
                },
                "traits": [{"$ref": "#/components/messageTraits/common"}],
            }
        },
        "messageTraits": {
            "common": {"headers": {"type": "object", "properties": {"retry": {"type": "string"}}}}
        },
    },
}
VERSION_3: dict[str, Any] = {
    "asyncapi": "3.0.0",
    "info": {"title": "Accounts", "version": "1"},
    "channels": {
        "signedup": {
            "address": "user/signedup",
            "messages": {
                "SignedUp": {"$ref": "#/components/messages/SignedUp"},
                "Invite": {"payload": {"type": "string"}},
            },
        }
    },
    "operations": {
        "emit": {
            "action": "send",
            "channel": {"$ref": "#/channels/signedup"},
            "messages": [{"$ref": "#/channels/signedup/messages/SignedUp"}],
        },
        "hear": {
            "action": "receive",
            "channel": {"$ref": "#/channels/signedup"},
            "messages": [{"$ref": "#/channels/signedup/messages/Invite"}],
        },
    },
    "components": VERSION_2["components"],
}


def interface_of(document: dict[str, Any], **members: Any) -> Interface:
    interface = read_asyncapi(document | members, None)
    assert interface.problems == ()
    return interface


def events(interface: Interface) -> dict[str, Operation]:
    return {operation.key: operation for operation in interface.operations}


def why(interface: Interface) -> list[str]:
    return [problem.why for problem in interface.problems]


@pytest.mark.parametrize("document", [VERSION_2, VERSION_3])
def test_what_the_application_sends_is_emitted_by_the_provider(document: dict[str, Any]) -> None:
    interface = interface_of(document)
    assert is_asyncapi(document)
    assert (interface.dialect, interface.draft) == ("asyncapi", "draft-07")
    emitted = events(interface)["send user/signedup SignedUp"]
    assert (emitted.kind, emitted.caller, emitted.request.bodies) == ("event", "consumer", {})
    part = emitted.responses["message"]
    assert part.body_required
    assert part.bodies == {
        "application/json": Located(
            {"$ref": "#/components/schemas/SignedUp"},
            ("components", "messages", "SignedUp", "payload"),
        )
    }
    received = events(interface)["receive user/signedup Invite"]
    assert received.responses == {}
    assert received.request.bodies["application/json"].schema == {"type": "string"}
    assert len(interface.operations) == 2


@pytest.mark.parametrize(("document", "retry"), [(VERSION_2, "string"), (VERSION_3, "integer")])
def test_headers(document: dict[str, Any], retry: str) -> None:
    """Traits overrule a message in version 2, and the message them in version 3."""
    message = events(interface_of(document))["send user/signedup SignedUp"].responses["message"]
    headers = {header.name: header for header in message.parameters}
    assert {name: header.required for name, header in headers.items()} == {
        "trace": True,
        "retry": False,
    }
    assert {header.place for header in headers.values()} == {"header"}
    assert headers["retry"].schema.schema == {"type": retry}


def version_3(operation: dict[str, Any], **channels: Any) -> dict[str, Any]:
    messages = {"Ask": {"payload": {"type": "string"}}, "Answer": {"payload": {"type": "integer"}}}
    both = {"a": {"address": None, "messages": messages}, "b": {"messages": messages}}
    return {
        "asyncapi": "3.0.0",
        "channels": both | channels,
        "operations": {"ask": {"action": "send", "channel": {"$ref": "#/channels/a"}} | operation},
    }


def test_a_reply_goes_the_other_way() -> None:
    document = version_3(
        {
            "messages": [{"$ref": "#/channels/a/messages/Ask"}],
            "reply": {
                "channel": {"$ref": "#/channels/b"},
                "messages": [{"$ref": "#/channels/b/messages/Answer"}],
                "address": {"location": "$message.header#/replyTo"},
            },
        }
    )
    interface = interface_of(document)
    assert set(events(interface)) == {"send a Ask", "receive reply to a Answer"}
    assert interface.unread == (
        Located(
            {"location": "$message.header#/replyTo"}, ("operations", "ask", "reply", "address")
        ),
    )


def test_an_operation_without_messages_has_all_of_its_channel() -> None:
    assert set(events(interface_of(version_3({})))) == {"send a Ask", "send a Answer"}


def test_channels_without_operations_are_the_providers() -> None:
    document = version_3({}) | {"operations": {}}
    interface = interface_of(document)
    assert set(events(interface)) == {
        f"send {channel} {name}" for channel in "ab" for name in ("Ask", "Answer")
    }
    assert "No operation says who sends" in interface.warnings[0].why


def test_a_message_has_the_name_that_it_gives_itself() -> None:
    messages = [
        {"name": "one", "messageId": "no"},
        {"messageId": "two"},
        {"$ref": "#/components/messages/three"},
        {},
    ]
    channels = {"c": {"publish": {"message": {"oneOf": messages}}}}
    components: dict[str, Any] = {"messages": {"three": {}}}
    interface = interface_of({"asyncapi": "2.0.0", "channels": channels, "components": components})
    assert list(events(interface)) == [
        "receive c one",
        "receive c two",
        "receive c three",
        "receive c",
    ]


def test_media_types() -> None:
    message = {"name": "m", "payload": {"type": "string"}}
    channels = {"c": {"subscribe": {"message": message}}}
    (event,) = interface_of(
        {"asyncapi": "2.6.0", "channels": channels}, defaultContentType="text/plain"
    ).operations
    assert list(event.responses["message"].bodies) == ["text/plain"]
    channels["c"]["subscribe"]["message"] = message | {"contentType": "text/csv"}
    (event,) = interface_of(
        {"asyncapi": "2.6.0", "channels": channels}, defaultContentType="text/plain"
    ).operations
    assert list(event.responses["message"].bodies) == ["text/csv"]


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("application/vnd.aai.asyncapi;version=2.6.0", True),
        ("application/vnd.aai.asyncapi+json;version=3.0.0", True),
        ("application/schema+json;version=draft-07", True),
        ("application/schema+yaml; version=draft-07", True),
        ("application/schema+json;version=2020-12", False),
        ("application/vnd.apache.avro;version=1.9.0", False),
        ("application/vnd.google.protobuf;version=3", False),
        ("application/vnd.oai.openapi;version=3.0.0", False),
    ],
)
def test_formats_of_payloads(name: str, is_read: bool) -> None:
    payload = {"type": "string"}
    message = {"name": "m", "payload": payload, "schemaFormat": name}
    first = interface_of(
        {"asyncapi": "2.6.0", "channels": {"c": {"subscribe": {"message": message}}}}
    )
    messages = {"m": {"payload": {"schemaFormat": name, "schema": payload}}}
    second = interface_of(version_3({}, a={"messages": messages}, b={}))
    for interface in (first, second):
        (event,) = interface.operations
        bodies = event.responses["message"].bodies.values()
        assert [body.schema for body in bodies] == ([payload] if is_read else [])
        assert [unread.schema for unread in interface.unread] == ([] if is_read else [payload])
        assert bool(interface.warnings) != is_read


def test_what_is_not_judged_is_left_unread() -> None:
    document = json.loads(json.dumps(VERSION_2))
    document["servers"] = {"main": {"url": "mqtt://a", "protocol": "mqtt"}}
    channel = document["channels"]["user/signedup"]
    channel["parameters"] = {"id": {"schema": {"type": "string"}}}
    channel["subscribe"]["bindings"] = {"mqtt": {"qos": 1}}
    document["components"]["messages"]["SignedUp"]["correlationId"] = {"location": "$message#/a"}
    assert {place.path[-1] for place in interface_of(document).unread} == {
        "servers",
        "parameters",
        "bindings",
        "correlationId",
    }


@pytest.mark.parametrize(
    ("document", "path", "text"),
    [
        ({"asyncapi": "1.2.0", "channels": {}}, ("asyncapi",), '"2.6.0" or "3.0.0"'),
        ({"channels": {}}, (), '"2.6.0" or "3.0.0"; this is null'),
        ({"asyncapi": "3.0.0"}, (), 'has "channels"'),
        ({"asyncapi": "2.6.0", "channels": {"c": 1}}, ("channels", "c"), "A channel is an object"),
        (version_3({"action": "emit"}), ("operations", "ask"), '"send" or "receive"'),
        (version_3({"messages": {}}), ("operations", "ask", "messages"), "list of references"),
        (
            version_3({"channel": {"$ref": "#/channels/x"}}),
            ("operations", "ask", "channel"),
            "leads to nothing",
        ),
        (
            version_3({"messages": [{"$ref": "#/channels/a/messages/Ask"}] * 2}),
            ("operations", "ask", "messages", 1),
            "send a Ask is there twice",
        ),
        (
            version_3({}, a={"messages": {"m": {"traits": {}}}}),
            ("channels", "a", "messages", "m", "traits"),
            '"traits" is a list',
        ),
        (
            version_3({}, a={"messages": {"m": {"payload": {"type": "text"}}}}),
            ("channels", "a", "messages", "m", "payload", "type"),
            '"type" is one of',
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    document: dict[str, Any], path: tuple[str | int, ...], text: str
) -> None:
    (problem,) = read_asyncapi(document, None).problems
    assert problem.path == path
    assert text in problem.why


@given(spoilt_documents(VERSION_2) | spoilt_documents(VERSION_3))
def test_a_spoilt_document_is_read(document: dict[str, Any]) -> None:
    interface = read_asyncapi(document, None)
    keys = [operation.key for operation in interface.operations]
    assert len(keys) == len(set(keys))
    assert all(problem.why for problem in interface.problems)


def test_hostile_references_are_bounded() -> None:
    shared = {"$ref": "#/components/messages/m"}
    channels = {f"c{n}": {"subscribe": {"message": {"oneOf": [shared] * 300}}} for n in range(300)}
    document = {
        "asyncapi": "2.6.0",
        "channels": channels,
        "components": {"messages": {"m": {"traits": [{}] * 300}}},
    }
    with pytest.raises(TooMuchWork):
        read_asyncapi(document, None)
