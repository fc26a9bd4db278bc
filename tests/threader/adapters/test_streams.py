"""The model's text out of JSON streams; what others said in them counts for nothing."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from threader.adapters.streams import acp_text, claude_text, opencode_text, transcript


def lines(*events: Any) -> bytes:
    return "".join(json.dumps(event) + "\n" for event in events).encode()


def said(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


def test_claude_stream() -> None:
    log = lines(
        {"type": "system", "subtype": "init"},
        {"type": "user", "message": {"content": [{"type": "text", "text": "echo"}]}},
        said("one"),
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "x"}]}},
        said("two"),
        {"type": "result", "result": "two"},
    )
    assert transcript(b"a warning\n" + log, claude_text) == b"one\ntwo\n"


def test_one_pretty_printed_object_is_the_whole_output() -> None:
    log = json.dumps({"type": "result", "result": "text"}, indent=2).encode()
    assert transcript(b"warning\n" + log, claude_text) == b"text\n"


def test_opencode_stream() -> None:
    log = lines(
        {"type": "step_start", "part": {}},
        {"type": "tool_use", "part": {"text": "tool says"}},
        {"type": "text", "part": {"type": "text", "text": "model says"}},
    )
    assert transcript(log, opencode_text) == b"model says\n"


def test_acp_chunks_are_joined_as_they_came() -> None:
    log = lines(
        {"update": "agent_message_chunk", "text": "<<<TASK_"},
        {"update": "agent_thought_chunk", "text": "hm"},
        {"update": "agent_message_chunk", "text": "RESULT"},
    )
    assert acp_text(log) == b"<<<TASK_RESULT\n"


@given(st.binary(max_size=500))
def test_any_bytes_give_some_text(noise: bytes) -> None:
    for texts in (claude_text, opencode_text):
        assert transcript(noise, texts).endswith(b"\n")
    assert acp_text(noise).endswith(b"\n")


def test_events_of_odd_shapes_are_passed_over() -> None:
    log = lines(
        {"type": "assistant", "message": "text"},
        {"type": "assistant", "message": {"content": "text"}},
        {"type": "assistant", "message": {"content": [1, {"type": "text", "text": 2}]}},
        {"type": "result", "result": None},
        {"type": "text", "part": "x"},
        [1],
    )
    assert transcript(log, claude_text) == b"\n"
    assert transcript(log, opencode_text) == b"\n"
