"""Anthropic's messages (platform.claude.com/docs, Messages and Streaming Messages)."""

import json
from collections.abc import Iterator

from comply.model.conversation import (
    Event,
    Kind,
    ModelAnswer,
    ModelRequest,
    OfferedTool,
    RequestPart,
    Shape,
    Text,
    Turn,
    parsed,
    size,
    text_of,
    words,
)
from schemas.jsont import JsonObject

ROLES: dict[str, Kind] = {"user": "user", "assistant": "assistant", "system": "system"}


class AnthropicMessage(RequestPart):
    role: str
    content: Text


class AnthropicTool(RequestPart):
    """A tool. Tools that the provider runs itself have no schema."""

    name: str
    description: str = ""
    input_schema: JsonObject | None = None


class Output(RequestPart):
    format: Shape | None = None


class AnthropicRequest(RequestPart):
    model: str
    messages: list[AnthropicMessage]
    system: Text = []
    tools: list[AnthropicTool] = []
    stream: bool = False
    output_config: Output | None = None
    output_format: Shape | None = None


def asked(body: bytes) -> ModelRequest:
    given = parsed(AnthropicRequest, body)
    shape = given.output_config.format if given.output_config else given.output_format
    return ModelRequest(
        model=given.model,
        turns=(Turn("system", text_of(given.system)), *_turns(given.messages)),
        tools=tuple(
            OfferedTool(tool.name, tool.input_schema, about=tool.description)
            for tool in given.tools
            if tool.input_schema is not None
        ),
        stream=given.stream,
        shape=shape.shape if shape else None,
    )


def _turns(messages: list[AnthropicMessage]) -> Iterator[Turn]:
    for message in messages:
        answers = any(block.type == "tool_result" for block in message.content)
        kind = "note" if answers else ROLES.get(message.role, "note")
        for block in message.content:
            if block.type == "tool_use":
                yield Turn("call", block.name)
            elif block.type == "tool_result":
                yield Turn("result", text_of(block.content))
            elif block.type == "text":
                yield Turn(kind, block.text)


def whole(asked: ModelRequest, answer: ModelAnswer, id: str) -> JsonObject:
    content: JsonObject = {"type": "text", "text": answer.text}
    if answer.call is not None:
        call = answer.call
        name = call.tool.name
        content = {"type": "tool_use", "id": call.id, "name": name, "input": call.arguments}
    usage: JsonObject = {**tokens(asked), "output_tokens": size(answer.text)}
    ended: JsonObject = {"content": [content], "stop_reason": _reason(answer), "usage": usage}
    return {**_head(asked, id), **ended}


def events(asked: ModelRequest, answer: ModelAnswer, id: str) -> Iterator[Event]:
    yield _event("message_start", message=_head(asked, id))
    block: JsonObject = {"type": "text", "text": ""}
    if answer.call is not None:
        block = {"type": "tool_use", "id": answer.call.id, "name": answer.call.tool.name}
        block["input"] = {}
    yield _event("content_block_start", index=0, content_block=block)
    if answer.call is not None:
        given = json.dumps(answer.call.arguments)
        delta: JsonObject = {"type": "input_json_delta", "partial_json": given}
        yield _event("content_block_delta", index=0, delta=delta)
    else:
        for word in words(answer.text):
            delta = {"type": "text_delta", "text": word}
            yield _event("content_block_delta", index=0, delta=delta)
            yield None
    yield _event("content_block_stop", index=0)
    last: JsonObject = {"stop_reason": _reason(answer), "stop_sequence": None}
    yield _event("message_delta", delta=last, usage={"output_tokens": size(answer.text)})
    yield _event("message_stop")


def tokens(asked: ModelRequest) -> JsonObject:
    return {"input_tokens": asked.size}


def _head(asked: ModelRequest, id: str) -> JsonObject:
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**tokens(asked), "output_tokens": 1},
    }


def _reason(answer: ModelAnswer) -> str:
    return "end_turn" if answer.call is None else "tool_use"


def _event(type: str, **fields: object) -> Event:
    return type, {"type": type, **fields}  # type: ignore[dict-item]
