"""OpenAI's responses (platform.openai.com/docs/api-reference/responses), as Codex asks."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Annotated

from pydantic import BeforeValidator

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

ROLES: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


class Item(RequestPart):
    """A message, a tool call, a tool result, or an item that only the provider understands."""

    type: str = "message"
    role: str = ""
    content: Text = []
    name: str = ""
    output: Text = []


class ResponsesTool(RequestPart):
    """A function, or a namespace of functions. Tools of the provider have no parameters."""

    type: str
    name: str = ""
    description: str = ""
    parameters: JsonObject | None = None
    tools: "list[ResponsesTool]" = []


class TextOptions(RequestPart):
    format: Shape | None = None


def _items(value: object) -> object:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise ValueError("should be a string or a list")
    return value


class ResponsesRequest(RequestPart):
    model: str
    input: Annotated[list[Item], BeforeValidator(_items)]
    instructions: str | None = None
    tools: list[ResponsesTool] | None = None
    stream: bool | None = None
    text: TextOptions | None = None


def asked(body: bytes) -> ModelRequest:
    given = parsed(ResponsesRequest, body)
    form = given.text and given.text.format
    return ModelRequest(
        model=given.model,
        turns=(Turn("system", given.instructions or ""), *_turns(given.input)),
        tools=tuple(_tools(given.tools or [], "")),
        stream=bool(given.stream),
        shape=form.shape if form else None,
    )


def _tools(offered: list[ResponsesTool], space: str) -> Iterator[OfferedTool]:
    for tool in offered:
        if tool.type == "namespace":
            yield from _tools(tool.tools, tool.name)
        elif tool.type == "function":
            yield OfferedTool(tool.name, tool.parameters or {}, space, tool.description)


def _turns(items: list[Item]) -> Iterator[Turn]:
    for item in items:
        if item.type == "message":
            yield Turn(ROLES.get(item.role, "note"), text_of(item.content))
        elif item.type.endswith("_call_output"):
            yield Turn("result", text_of(item.output))
        elif item.type.endswith("_call"):
            yield Turn("call", item.name)


def whole(asked: ModelRequest, answer: ModelAnswer, id: str) -> JsonObject:
    prompt, output = asked.size, size(answer.text)
    usage = {"input_tokens": prompt, "output_tokens": output, "total_tokens": prompt + output}
    return {
        **_head(asked, id),
        "status": "completed",
        "output": [_item(answer, id, "completed")],
        "usage": {**usage},
    }


def events(asked: ModelRequest, answer: ModelAnswer, id: str) -> Iterator[Event]:
    number = count()

    def event(type: str, **fields: object) -> Event:
        return type, {"type": type, "sequence_number": next(number), **fields}  # type: ignore[dict-item]

    item = _item(answer, id, "completed")
    yield event("response.created", response=_head(asked, id))
    begun = _item(ModelAnswer(call=answer.call), id, "in_progress") | {"arguments": ""}
    if answer.call is None:
        begun = begun | {"content": []}
        del begun["arguments"]
    yield event("response.output_item.added", output_index=0, item=begun)
    at = {"item_id": item["id"], "output_index": 0}
    if answer.call is not None:
        given = item["arguments"]
        yield event("response.function_call_arguments.delta", **at, delta=given)
        yield event("response.function_call_arguments.done", **at, arguments=given)
    else:
        inside = {**at, "content_index": 0}
        yield event("response.content_part.added", **inside, part=_part(""))
        for word in words(answer.text):
            yield event("response.output_text.delta", **inside, delta=word)
            yield None
        yield event("response.output_text.done", **inside, text=answer.text)
        yield event("response.content_part.done", **inside, part=_part(answer.text))
    yield event("response.output_item.done", output_index=0, item=item)
    yield event("response.completed", response=whole(asked, answer, id))


def _head(asked: ModelRequest, id: str) -> JsonObject:
    return {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": asked.model,
        "output": [],
    }


def _item(answer: ModelAnswer, id: str, status: str) -> JsonObject:
    if answer.call is None:
        content = [_part(answer.text)]
        message: JsonObject = {"type": "message", "role": "assistant", "content": [*content]}
        return {"id": f"item_{id}", **message, "status": status}
    call = answer.call
    item: JsonObject = {
        "id": f"item_{id}",
        "type": "function_call",
        "call_id": call.id,
        "name": call.tool.name,
        "arguments": json.dumps(call.arguments),
        "status": status,
    }
    return item | ({"namespace": call.tool.space} if call.tool.space else {})


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": []}
