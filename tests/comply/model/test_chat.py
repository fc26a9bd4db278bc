"""OpenAI's chat completions, as opencode and Qwen ask."""

import json
from typing import Any

from comply.model import chat
from comply.model.conversation import ModelRequest, OfferedTool, Turn
from tests.comply.model.streams import CALL, TEXT, data, waits_after

ASKED = ModelRequest("m", (Turn("user", "Say hello."),), stream=True)


def read(**body: Any) -> ModelRequest:
    return chat.asked(json.dumps({"model": "m", "messages": [], **body}).encode())


def test_a_conversation_is_read() -> None:
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": "1", "type": "function", "function": function}]
    messages = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
    ]
    asked = read(messages=messages)
    assert [(turn.kind, turn.text) for turn in asked.turns] == [
        ("system", "s"),
        ("system", "d"),
        ("user", "a"),
        ("assistant", ""),
        ("call", "read"),
        ("result", "r"),
    ]
    assert not asked.stream


def test_tools_and_a_shape_are_read() -> None:
    function = {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": function}, {"type": "web_search"}]
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    asked = read(tools=tools, response_format=form)
    assert (asked.tools, asked.shape) == (
        (OfferedTool("read", {"type": "object"}, about="Reads."),),
        {"type": "object"},
    )
    assert read(tools=None, response_format={"type": "text"}).shape is None


def test_an_answer_in_one_piece() -> None:
    said: Any = chat.whole(ASKED, TEXT, "1")
    choice = said["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "Hello to you"}
    assert choice["finish_reason"] == "stop"
    assert said["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def test_a_call_in_one_piece() -> None:
    said: Any = chat.whole(ASKED, CALL, "1")
    choice = said["choices"][0]
    call = choice["message"]["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("call_1", "read")
    assert json.loads(call["function"]["arguments"]) == {"path": "a"}
    assert choice["finish_reason"] == "tool_calls"


def test_an_answer_as_a_stream() -> None:
    *chunks, usage, end = data(chat, ASKED, TEXT)
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(deltas) == "Hello to you"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "stop"]
    assert (usage["choices"], usage["usage"]["total_tokens"], end) == ([], 7, "[DONE]")
    assert waits_after(chat, ASKED) == 2


def test_what_was_used_is_told_to_who_asks_for_it() -> None:
    for wanted in (True, False):
        asked = read(stream=True, stream_options={"include_usage": wanted})
        assert any("usage" in event for event in data(chat, asked, TEXT)[:-1]) is wanted
    assert not read(stream=True).usage


def test_a_call_as_a_stream() -> None:
    chunks = data(chat, ASKED, CALL)
    call = chunks[1]["choices"][0]["delta"]["tool_calls"][0]
    assert (call["index"], call["id"], call["function"]["name"]) == (0, "call_1", "read")
    assert json.loads(call["function"]["arguments"]) == {"path": "a"}
    assert chunks[2]["choices"][0]["finish_reason"] == "tool_calls"
