"""The model's text out of JSON streams; what others said in them counts for nothing."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from threader.adapters.streams import (
    acp_text,
    any_text,
    claude_text,
    opencode_text,
    readable,
    transcript,
)


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


def test_whichever_cli_it_is() -> None:
    codex = lines(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "codex says"}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
    )
    assert transcript(codex, any_text) == b"codex says\n"
    gemini = json.dumps({"session_id": "s", "response": "gemini says", "stats": {}}, indent=2)
    assert transcript(b"Ripgrep is not available.\n" + gemini.encode(), any_text) == (
        b"gemini says\n"
    )
    pieces = lines(
        {"type": "message", "role": "user", "content": "echo"},
        {"type": "message", "role": "assistant", "content": "<<<TASK_", "delta": True},
        {"type": "message", "role": "assistant", "content": "RESULT", "delta": True},
        {"type": "tool_use", "tool_name": "x"},
        {"type": "message", "role": "assistant", "content": "more", "delta": True},
        {"type": "result", "status": "success", "stats": {}},
    )
    assert transcript(pieces, any_text) == b"<<<TASK_RESULT\nmore\n"
    assert "more" in readable(pieces.decode())
    assert transcript(lines(said("claude says")), any_text) == b"claude says\n"


def test_acp_chunks_are_joined_as_they_came() -> None:
    log = lines(
        {"update": "agent_message_chunk", "text": "<<<TASK_"},
        {"update": "agent_thought_chunk", "text": "hm"},
        {"update": "agent_message_chunk", "text": "RESULT"},
    )
    assert acp_text(log) == b"<<<TASK_RESULT\n"


def test_lines_that_are_no_objects_are_passed_over() -> None:
    lone = lines(said("one"))
    for log in (lone, b"\n" + lone, b"a {\n b{\n" + lone + b"{torn\n", lone.rstrip() + b"\r\nx"):
        assert transcript(log, claude_text) == b"one\n"
    assert transcript(b"y\n" * 1000, claude_text) == b"\n"


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


def test_what_a_person_would_read_of_a_log() -> None:
    log = "\n".join(
        [
            "warning: on stderr",
            '{"type":"system","subtype":"init","tools":["Read"]}',
            '{"type":"assistant","message":{"content":[{"type":"text","text":"I looked."}]}}',
            '{"type":"user","message":{"content":"a tool said much"}}',
            '{"type":"item.completed","item":{"type":"agent_message","text":"From codex."}}',
            '{"type":"result","is_error":true,"result":"TypeError: it broke","usage":{"n":1}}',
            '{"level":"info","msg":"a log of its own"}',
            '{"torn',
        ]
    )
    assert readable(log) == "\n".join(
        [
            "warning: on stderr",
            "I looked.",
            "From codex.",
            "TypeError: it broke",
            '{"level":"info","msg":"a log of its own"}',
            '{"torn',
        ]
    )
