"""OpenAI's chat completions (platform.openai.com/docs/api-reference/chat), as most others have."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

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
    "tool": "result",
    "function": "result",
}


class Named(RequestPart):
    name: str


class Called(RequestPart):
    function: Named


class ChatMessage(RequestPart):
    role: str
    content: Text = []
    tool_calls: list[Called] | None = None


class Function(RequestPart):
    name: str
    description: str = ""
    parameters: JsonObject | None = None


class ChatTool(RequestPart):
    function: Function | None = None


class ResponseFormat(RequestPart):
    json_schema: Shape | None = None


class StreamOptions(RequestPart):
    include_usage: bool = False


class ChatRequest(RequestPart):
    model: str
    messages: list[ChatMessage]
    tools: list[ChatTool] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None


def asked(body: bytes) -> ModelRequest:
    given = parsed(ChatRequest, body)
    form = given.response_format and given.response_format.json_schema
    return ModelRequest(
        model=given.model,
        turns=tuple(_turns(given.messages)),
        tools=tuple(
            OfferedTool(
                tool.function.name, tool.function.parameters or {}, about=tool.function.description
            )
            for tool in given.tools or []
            if tool.function is not None
        ),
        stream=bool(given.stream),
        shape=form.shape if form else None,
        usage=given.stream_options is not None and given.stream_options.include_usage,
    )


def _turns(messages: list[ChatMessage]) -> Iterator[Turn]:
    for message in messages:
        yield Turn(ROLES.get(message.role, "note"), text_of(message.content))
        for call in message.tool_calls or []:
            yield Turn("call", call.function.name)


def whole(asked: ModelRequest, answer: ModelAnswer, id: str) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": answer.text}
    if answer.call is not None:
        message |= {"content": None, "tool_calls": [_call(answer)]}
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    head = _head(asked, id, "chat.completion")
    return {**head, "choices": [choice], "usage": usage(asked, answer)}


def events(asked: ModelRequest, answer: ModelAnswer, id: str) -> Iterator[Event]:
    head = _head(asked, id, "chat.completion.chunk")

    def chunk(delta: JsonObject, reason: str | None = None) -> Event:
        choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": reason}
        return "", {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    if answer.call is not None:
        yield chunk({"tool_calls": [{"index": 0, **_call(answer)}]})
    else:
        for word in words(answer.text):
            yield chunk({"content": word})
            yield None
    yield chunk({}, _reason(answer))
    if asked.usage:
        yield "", {**head, "choices": [], "usage": usage(asked, answer)}
    yield "", "[DONE]"


def usage(asked: ModelRequest, answer: ModelAnswer) -> JsonValue:
    prompt, completion = asked.size, size(answer.text)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _head(asked: ModelRequest, id: str, object: str) -> JsonObject:
    return {"id": f"chatcmpl-{id}", "object": object, "created": 0, "model": asked.model}


def _call(answer: ModelAnswer) -> JsonObject:
    assert answer.call is not None
    given = json.dumps(answer.call.arguments)
    function: JsonObject = {"name": answer.call.tool.name, "arguments": given}
    return {"id": answer.call.id, "type": "function", "function": function}


def _reason(answer: ModelAnswer) -> str:
    return "stop" if answer.call is None else "tool_calls"
