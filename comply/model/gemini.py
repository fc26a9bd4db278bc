"""Gemini's generateContent (ai.google.dev/api/generate-content)."""

from collections.abc import Iterator

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from comply.model.conversation import (
    Event,
    ModelAnswer,
    ModelRequest,
    OfferedTool,
    RequestPart,
    Turn,
    parsed,
    size,
    words,
)
from comply.template import text_of
from schemas.jsont import JsonObject


class GeminiModel(RequestPart):
    model_config = ConfigDict(alias_generator=to_camel)


class FunctionCall(GeminiModel):
    name: str = ""


class FunctionResponse(GeminiModel):
    response: JsonObject = {}


class Piece(GeminiModel):
    text: str = ""
    thought: bool = False
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(GeminiModel):
    role: str = "user"
    parts: list[Piece] = []


class Declaration(GeminiModel):
    name: str
    description: str = ""
    parameters: JsonObject | None = None
    parameters_json_schema: JsonObject | None = None


class GeminiTool(GeminiModel):
    function_declarations: list[Declaration] = []


class Generation(GeminiModel):
    response_mime_type: str = ""
    response_schema: JsonObject | None = None
    response_json_schema: JsonObject | None = None


class GeminiRequest(GeminiModel):
    contents: list[Content]
    system_instruction: Content | str = ""
    tools: list[GeminiTool] = []
    generation_config: Generation = Field(default_factory=Generation)


class TokenCountRequest(GeminiModel):
    contents: list[Content] = []


def asked(body: bytes) -> ModelRequest:
    """The model's name, and whether to stream, are in the request's path instead."""
    given = parsed(GeminiRequest, body)
    system = given.system_instruction
    shown = system if isinstance(system, str) else "\n".join(part.text for part in system.parts)
    form = given.generation_config
    return ModelRequest(
        model="",
        turns=(Turn("system", shown), *_turns(given.contents)),
        tools=tuple(
            OfferedTool(
                function.name,
                function.parameters_json_schema or function.parameters or {},
                about=function.description,
            )
            for offered in given.tools
            for function in offered.function_declarations
        ),
        shape=form.response_json_schema or form.response_schema,
    )


def _turns(contents: list[Content]) -> Iterator[Turn]:
    for content in contents:
        answers = any(part.function_response for part in content.parts)
        for part in content.parts:
            if part.function_call is not None:
                yield Turn("call", part.function_call.name)
            elif part.function_response is not None:
                response = part.function_response.response
                yield Turn("result", text_of(response.get("output", response)))
            elif part.text and not part.thought:
                prompt = Turn("note" if answers else "user", part.text)
                yield Turn("assistant", part.text) if content.role == "model" else prompt


def whole(asked: ModelRequest, answer: ModelAnswer, id: str) -> JsonObject:
    part: JsonObject = {"text": answer.text}
    if answer.call is not None:
        call = answer.call
        part = {"functionCall": {"id": call.id, "name": call.tool.name, "args": call.arguments}}
    return _piece(asked, answer, id, part, last=True)


def events(asked: ModelRequest, answer: ModelAnswer, id: str) -> Iterator[Event]:
    if answer.call is None:
        for word in words(answer.text):
            yield "", _piece(asked, answer, id, {"text": word}, last=False)
            yield None
        yield "", _piece(asked, answer, id, {"text": ""}, last=True)
    else:
        yield "", whole(asked, answer, id)


def tokens(body: bytes) -> JsonObject:
    given = parsed(TokenCountRequest, body).contents
    return {"totalTokens": sum(size(part.text) for content in given for part in content.parts)}


def _piece(
    asked: ModelRequest, answer: ModelAnswer, id: str, part: JsonObject, *, last: bool
) -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if last:
        candidate["finishReason"] = "STOP"
    prompt, output = asked.size, size(answer.text)
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "candidatesTokenCount": output,
            "totalTokenCount": prompt + output,
        },
        "modelVersion": asked.model,
        "responseId": id,
    }
