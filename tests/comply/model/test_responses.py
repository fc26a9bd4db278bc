"""OpenAI's responses, as Codex asks."""

import json
from typing import Any

import pytest

from comply.model import responses
from comply.model.conversation import BadRequest, ModelRequest, OfferedTool, Turn
from tests.comply.model.streams import CALL, TEXT, data, names, waits_after

ASKED = ModelRequest("m", (Turn("user", "Say hello."),), stream=True)


def read(input: Any = "", **body: Any) -> ModelRequest:
    return responses.asked(json.dumps({"model": "m", "input": input, **body}).encode())


def test_a_conversation_is_read() -> None:
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"role": "user", "content": "a"},
        {"type": "reasoning", "encrypted_content": "…"},
        {"type": "function_call", "name": "exec", "arguments": "{}", "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "r"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
    ]
    asked = read(items, instructions="s")
    assert [(turn.kind, turn.text) for turn in asked.turns] == [
        ("system", "s"),
        ("system", "d"),
        ("user", "a"),
        ("call", "exec"),
        ("result", "r"),
        ("assistant", "b"),
    ]
    assert read("a").turns[-1] == Turn("user", "a")


def test_what_is_no_input_is_refused() -> None:
    with pytest.raises(BadRequest, match="input: should be a string or a list"):
        read(4)


def test_tools_stand_in_namespaces_too() -> None:
    inner = {"type": "function", "name": "word", "parameters": {"type": "object"}}
    inner["description"] = "Says a word."
    tools = [
        {"type": "function", "name": "exec"},
        {"type": "namespace", "name": "mcp__comply", "tools": [inner]},
        {"type": "custom", "name": "apply_patch"},
        {"type": "web_search"},
    ]
    asked = read(tools=tools)
    assert asked.tools == (
        OfferedTool("exec"),
        OfferedTool("word", {"type": "object"}, "mcp__comply", "Says a word."),
    )
    assert [tool.called for tool in asked.tools] == ["exec", "mcp__comply__word"]


def test_a_shape_is_read() -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    assert read(text={"format": form}).shape == {"type": "object"}
    assert read(text={"verbosity": "low"}).shape is None


def test_an_answer_as_a_stream() -> None:
    events = data(responses, ASKED, TEXT)
    assert [event["type"] for event in events] == names(responses, ASKED, TEXT)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = [one["delta"] for one in events if one["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "Hello to you"
    whole: Any = responses.whole(ASKED, TEXT, "1")
    assert (events[0]["type"], events[-1]["type"]) == ("response.created", "response.completed")
    assert events[-1]["response"] == whole
    assert events[-2]["item"] == whole["output"][0]
    assert whole["output"][0]["content"][0]["text"] == "Hello to you"
    assert whole["usage"]["total_tokens"] == 7
    assert waits_after(responses, ASKED) == 4


def test_a_call_as_a_stream() -> None:
    events = data(responses, ASKED, CALL)
    whole: Any = responses.whole(ASKED, CALL, "1")
    item = whole["output"][0]
    assert (item["type"], item["call_id"], item["namespace"]) == (
        "function_call",
        "call_1",
        "files",
    )
    assert json.loads(item["arguments"]) == {"path": "a"}
    begun = next(one for one in events if one["type"] == "response.output_item.added")
    assert (begun["item"]["arguments"], begun["item"]["status"]) == ("", "in_progress")
    delta = next(one for one in events if one["type"].endswith("arguments.delta"))
    assert delta["delta"] == item["arguments"]
    assert events[-2]["item"] == item
