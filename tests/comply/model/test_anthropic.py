"""Anthropic's messages, as Claude asks."""

import json
from typing import Any

from comply.model import anthropic
from comply.model.conversation import ModelRequest, OfferedTool, Turn
from tests.comply.model.streams import CALL, TEXT, data, names, waits_after

ASKED = ModelRequest("m", (Turn("user", "Say hello."),), stream=True)


def read(**body: Any) -> ModelRequest:
    return anthropic.asked(json.dumps({"model": "m", "messages": [], **body}).encode())


def test_a_conversation_is_read() -> None:
    call = {"type": "tool_use", "id": "1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "r"}]}
    reminder = {"type": "text", "text": "be brief"}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}, call]},
        {"role": "user", "content": [result, reminder]},
        {"role": "system", "content": [{"type": "text", "text": "c"}]},
        {"role": "user", "content": [{"type": "image", "source": {}}]},
    ]
    asked = read(system=[{"type": "text", "text": "s"}], messages=messages, stream=True)
    assert [(turn.kind, turn.text) for turn in asked.turns] == [
        ("system", "s"),
        ("user", "a"),
        ("assistant", "b"),
        ("call", "Read"),
        ("result", "r"),
        ("note", "be brief"),
        ("system", "c"),
    ]
    assert asked.stream


def test_tools_are_those_that_the_agent_runs() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    own = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}
    asked = read(tools=[own, search])
    assert asked.tools == (OfferedTool("Read", {"type": "object"}, about="Reads."),)


def test_a_shape_stands_in_either_place() -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    assert read(output_format=form).shape == {"type": "object"}
    assert read(output_config={"format": form}).shape == {"type": "object"}
    assert read(output_config={"effort": "low"}).shape is None


def test_an_answer_in_one_piece() -> None:
    said: Any = anthropic.whole(ASKED, TEXT, "1")
    assert said["content"] == [{"type": "text", "text": "Hello to you"}]
    assert (said["stop_reason"], said["usage"]["input_tokens"]) == ("end_turn", 3)
    assert said["usage"]["output_tokens"] == 4
    called: Any = anthropic.whole(ASKED, CALL, "1")
    wanted = {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}}
    assert (called["content"], called["stop_reason"]) == ([wanted], "tool_use")


def test_an_answer_as_a_stream() -> None:
    events = data(anthropic, ASKED, TEXT)
    assert [event["type"] for event in events] == names(anthropic, ASKED, TEXT)
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(deltas) == "Hello to you"
    assert [event["type"] for event in events[-3:]] == [
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[-2]["delta"]["stop_reason"] == "end_turn"
    assert waits_after(anthropic, ASKED) == 3


def test_a_call_as_a_stream() -> None:
    events = data(anthropic, ASKED, CALL)
    begun = next(event for event in events if event["type"] == "content_block_start")
    assert begun["content_block"] == {
        "type": "tool_use",
        "id": "call_1",
        "name": "read",
        "input": {},
    }
    given = next(event for event in events if event["type"] == "content_block_delta")
    assert json.loads(given["delta"]["partial_json"]) == {"path": "a"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
