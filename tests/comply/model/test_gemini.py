"""Gemini's generateContent, as Gemini CLI asks."""

import json
from typing import Any

from comply.model import gemini
from comply.model.conversation import ModelRequest, OfferedTool, Turn
from tests.comply.model.streams import CALL, TEXT, data, waits_after

ASKED = ModelRequest("m", (Turn("user", "Say hello."),), stream=True)


def read(contents: Any = (), **body: Any) -> ModelRequest:
    return gemini.asked(json.dumps({"contents": contents, **body}).encode())


def test_a_conversation_is_read() -> None:
    call = {"functionCall": {"name": "read_file", "args": {}}}
    result = {"functionResponse": {"name": "read_file", "response": {"output": "r"}}}
    failed = {"functionResponse": {"name": "read_file", "response": {"error": "no"}}}
    contents = [
        {"role": "user", "parts": [{"text": "a"}, {"inlineData": {}}]},
        {"role": "model", "parts": [{"text": "why", "thought": True}, {"text": "b"}, call]},
        {"role": "user", "parts": [result, {"text": "be brief"}]},
        {"role": "user", "parts": [failed]},
    ]
    asked = read(contents, systemInstruction={"parts": [{"text": "s"}]})
    assert [(turn.kind, turn.text) for turn in asked.turns] == [
        ("system", "s"),
        ("user", "a"),
        ("assistant", "b"),
        ("call", "read_file"),
        ("result", "r"),
        ("note", "be brief"),
        ("result", '{"error":"no"}'),
    ]


def test_tools_and_a_shape_are_read() -> None:
    one = {"name": "a", "description": "A tool.", "parameters": {"type": "OBJECT"}}
    other = {"name": "b", "parametersJsonSchema": {"type": "object"}}
    tools = [{"functionDeclarations": [one, other]}, {"googleSearch": {}}]
    form = {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}}
    asked = read(tools=tools, generationConfig=form)
    assert asked.tools == (
        OfferedTool("a", {"type": "OBJECT"}, about="A tool."),
        OfferedTool("b", {"type": "object"}),
    )
    assert asked.shape == {"type": "OBJECT"}
    assert read(generationConfig={"temperature": 0}).shape is None


def test_an_answer_in_one_piece() -> None:
    said: Any = gemini.whole(ASKED, TEXT, "1")
    candidate = said["candidates"][0]
    assert candidate["content"] == {"role": "model", "parts": [{"text": "Hello to you"}]}
    assert (candidate["finishReason"], said["modelVersion"]) == ("STOP", "m")
    assert said["usageMetadata"]["totalTokenCount"] == 7


def test_an_answer_as_a_stream() -> None:
    pieces = data(gemini, ASKED, TEXT)
    candidates = [piece["candidates"][0] for piece in pieces]
    assert "".join(one["content"]["parts"][0]["text"] for one in candidates) == "Hello to you"
    assert ["finishReason" in one for one in candidates] == [False, False, False, True]
    assert pieces[-1]["usageMetadata"]["totalTokenCount"] == 7
    assert waits_after(gemini, ASKED) == 1


def test_a_call_as_a_stream() -> None:
    (piece,) = data(gemini, ASKED, CALL)
    part = piece["candidates"][0]["content"]["parts"][0]
    assert part == {"functionCall": {"id": "call_1", "name": "read", "args": {"path": "a"}}}


def test_tokens_are_counted() -> None:
    body = json.dumps({"contents": [{"parts": [{"text": "a b"}]}]}).encode()
    assert gemini.tokens(body) == {"totalTokens": 3}
