"""Frames against the official schema of the negotiated version."""

import copy
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import JsonValue

from comply.frames import FOLDER, VERSIONS, breaches, protocol
from comply.id_tracking import Said
from comply.record import Frame
from comply.stdio import judge

ASKED: Said = (True, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})


def answer(version: int, **more: Any) -> Said:
    return False, {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": version, **more}}


V2 = [ASKED, answer(2, info={"name": "agent", "version": "1"})]


def update(tag: str | None = None, /, **fields: Any) -> Said:
    said = {"sessionUpdate": tag, **fields} if tag else fields
    return call("session/update", sessionId="s", update=said)


def reply(id: int, **fields: Any) -> Said:
    return False, {"jsonrpc": "2.0", "id": id, **fields}


def call(method: str, **params: Any) -> Said:
    return False, {"jsonrpc": "2.0", "method": method, "params": params}


def request(method: str, **params: Any) -> Said:
    return False, {"jsonrpc": "2.0", "id": 9, "method": method, "params": params}


def texts(*said: Said) -> list[str]:
    return [one.text for one in breaches(said)]


OPTION = {"id": "m", "name": "Model", "type": "select", "currentValue": "a"}
TEXT = {"type": "text", "text": "Hello"}
RIGHT: list[list[Said]] = [
    [update("agent_message_chunk", content=TEXT)],
    [update("tool_call", toolCallId="1", title="Read", kind="read", status="pending")],
    [update("tool_call_update", toolCallId="1", status=None)],
    [update("config_option_update", configOptions=[OPTION | {"options": []}])],
    [update("usage_update", used=1, size=2, cost={"amount": 0.5, "currency": "USD"})],
    [update("notice", severity="_own", title="Hello"), call("_own/notification", x=1)],
    [request("fs/read_text_file", sessionId="s", path="/x"), call("$/unknown")],
    [ASKED, answer(1), ASKED, reply(0, error={"code": 1, "message": ""})],
    [ASKED, answer(77), update("of version 77")],
    [*V2, update("new", anything=1), update("state_update", state="idle", stopReason="end_turn")],
    [(True, {"jsonrpc": "2.0", "id": 4, "method": "_own"}), reply(4, result=1)],
]
WRONG: list[tuple[list[Said], str]] = [
    (
        [update("tool_call", toolCallId="1", title="t", kind="reading")],
        'session/update: params.update.kind is "reading", should be one of read, edit, delete,'
        " move, search, execute, think, fetch, switch_mode, other",
    ),
    (
        [update("tool_call_update", toolCallId="1", status="done")],
        'session/update: params.update.status is "done", should be one of pending, in_progress,'
        " completed, failed",
    ),
    (
        [update("agent_message_chunk", content={"type": "text"})],
        "session/update: params.update.content.text is missing",
    ),
    (
        [update("agent_message_chunk", content={"type": "txt", "text": "x"})],
        'session/update: params.update.content.type is "txt", should be one of text, image, audio,'
        " resource_link, resource",
    ),
    ([update(toolCallId="1")], "session/update: params.update.sessionUpdate is missing"),
    (
        [update("usage_update", used=-1, size=1)],
        'session/update: params.update.used is -1, against format "uint64"',
    ),
    (
        [update("notice", severity="info", title="")],
        'session/update: params.update.title is "", against minLength 1',
    ),
    (
        [update("config_option_update", configOptions=[OPTION | {"options": [{"value": "a"}]}])],
        "session/update: params.update.configOptions[0].options[0].name is missing",
    ),
    (
        [request("fs/read_text_file", sessionId="s")],
        "fs/read_text_file: params.path is missing",
    ),
    (
        [(False, {"jsonrpc": "2.0", "method": "session/update"})],
        "session/update: params is null, should be an object",
    ),
    (
        [call("fs/read_text_file", sessionId="s", path="/x")],
        "fs/read_text_file needs an id: it is a request",
    ),
    (
        [request("session/update", sessionId="s", update={})],
        "session/update needs no id: it is a notification",
    ),
    (
        [request("fs/delete")],
        "fs/delete is no method in version 1; a custom name begins with _",
    ),
    (
        [request("session/prompt")],
        "session/prompt is a method of agents in version 1; a custom name begins with _",
    ),
    (
        [ASKED, answer(1, agentCapabilities={"loadSession": "yes"})],
        'the answer to initialize: result.agentCapabilities.loadSession is "yes", should be true'
        " or false",
    ),
    (
        [ASKED, reply(0, error={"code": "1", "message": ""})],
        'error.code is "1", should be a whole number',
    ),
    (
        [ASKED, answer(-7)],
        'the answer to initialize: result.protocolVersion is -7, against format "uint16"',
    ),
    ([*V2, update("user_message")], "session/update: params.update.messageId is missing"),
    (
        [*V2, update("session_info_update", updatedAt="yesterday")],
        'session/update: params.update.updatedAt is "yesterday", against format "date-time"',
    ),
    (
        [*V2, update("terminal_output_chunk", terminalId="t", data="no base64!")],
        'session/update: params.update.data is "no base64!", against contentEncoding "base64"',
    ),
    (
        [*V2, request("fs/read_text_file", sessionId="s", path="/x")],
        "fs/read_text_file is no method in version 2; a custom name begins with _",
    ),
]


@pytest.mark.parametrize("said", RIGHT)
def test_what_the_schema_allows(said: list[Said]) -> None:
    assert texts(*said) == []


@pytest.mark.parametrize(("said", "text"), WRONG)
def test_what_the_schema_forbids_is_said_with_its_place(said: list[Said], text: str) -> None:
    assert texts(*said) == [text]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_vendored_schema_is_the_published_one(version: int) -> None:
    name = f"v{version}.json"
    digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
    assert f"| `{name}` | `{digest}` |" in (FOLDER / "README.md").read_text()
    Draft202012Validator.check_schema(json.loads((FOLDER / name).read_text()))


def test_the_sdks_methods_have_a_schema() -> None:
    from acp.meta import AGENT_METHODS, CLIENT_METHODS

    known = protocol(1).methods
    stable = {"session/" + name for name in ("new", "load", "prompt", "cancel", "list", "close")}
    assert stable <= {method for side, method in known if side == "agent"} & {
        *AGENT_METHODS.values()
    }
    assert {method for side, method in known if side == "client"} & {*CLIENT_METHODS.values()}


def parts(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    for key, item in items:
        yield from parts(item, (*place, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy with what stands at `place` replaced, or taken out when `new` is ..."""
    if not place:
        return value if new is ... else new
    copied = copy.deepcopy(value)
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = new
    return copied


@given(st.data())
def test_the_short_way_to_an_alternative_judges_as_the_whole_schema_does(data: Any) -> None:
    """Any one change of a right update: found if, and only if, the plain validator finds it."""
    heard: list[JsonValue] = [one[1] for row in RIGHT for one in row if not one[0]]
    message = data.draw(st.sampled_from(heard))
    if not isinstance(message, dict) or message.get("method") != "session/update":
        return
    place = data.draw(st.sampled_from(list(parts(message["params"]))))
    new = data.draw(st.sampled_from([..., None, 1, -1, "", "text", [], {}, [{}], True]))
    params = changed(message["params"], place, new)
    for version, definition in ((1, "SessionNotification"), (2, "UpdateSessionNotification")):
        schema = {"$ref": f"#/$defs/{definition}", "$defs": protocol(version).definitions}
        right = Draft202012Validator(schema).is_valid(params)
        one: Said = (False, {"jsonrpc": "2.0", "method": "session/update", "params": params})
        found = texts(ASKED, answer(version, info={"name": "a", "version": "1"}), one)
        if "against" not in "".join(found):  # formats, which the plain validator leaves alone
            assert (found == []) is right, found


def test_each_frame_is_marked_with_what_it_breaks_and_mcp_is_another_protocol() -> None:
    frames = [
        Frame(0, False, "notification", {"jsonrpc": "2.0", "method": "session/update"}),
        Frame(1, False, "mcp", {"method": "initialize", "params": {}}),
        Frame(2, False, "other", "starting"),
    ]
    judge(frames)
    assert [bool(frame.breach) for frame in frames] == [True, False, True]
