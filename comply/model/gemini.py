"""Gemini's generateContent (ai.google.dev/api/generate-content)."""

from collections.abc import Iterator

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from comply.model.conversation import Answer, Asked, Body, Event, Tool, Turn, parsed, size, words
from comply.template import text_of
from schemas.jsont import JsonObject


class Part(Body):
    model_config = ConfigDict(alias_generator=to_camel)


class FunctionCall(Part):
    name: str = ""


class FunctionResponse(Part):
    response: JsonObject = {}


class Piece(Part):
    text: str = ""
    thought: bool = False
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Part):
    role: str = "user"
    parts: list[Piece] = []


class Declaration(Part):
    name: str
    parameters: JsonObject | None = None
    parameters_json_schema: JsonObject | None = None


class Offered(Part):
    function_declarations: list[Declaration] = []


class Generation(Part):
    response_mime_type: str = ""
    response_schema: JsonObject | None = None
    response_json_schema: JsonObject | None = None


class Request(Part):
    contents: list[Content]
    system_instruction: Content | str = ""
    tools: list[Offered] = []
    generation_config: Generation = Field(default_factory=Generation)


class Counted(Part):
    contents: list[Content] = []


def asked(body: bytes) -> Asked:
    """Which model, and whether as a stream, stands in the request's path."""
    given = parsed(Request, body)
    system = given.system_instruction
    shown = system if isinstance(system, str) else "\n".join(one.text for one in system.parts)
    form = given.generation_config
    return Asked(
        model="",
        turns=(Turn("system", shown), *_turns(given.contents)),
        tools=tuple(
            Tool(one.name, one.parameters_json_schema or one.parameters or {})
            for offered in given.tools
            for one in offered.function_declarations
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
                said = Turn("note" if answers else "user", part.text)
                yield Turn("assistant", part.text) if content.role == "model" else said


def whole(asked: Asked, answer: Answer, id: str) -> JsonObject:
    part: JsonObject = {"text": answer.text}
    if answer.call is not None:
        call = answer.call
        part = {"functionCall": {"id": call.id, "name": call.tool.name, "args": call.arguments}}
    return _piece(asked, answer, id, part, last=True)


def events(asked: Asked, answer: Answer, id: str) -> Iterator[Event]:
    if answer.call is None:
        for word in words(answer.text):
            yield "", _piece(asked, answer, id, {"text": word}, last=False)
            yield None
        yield "", _piece(asked, answer, id, {"text": ""}, last=True)
    else:
        yield "", whole(asked, answer, id)


def tokens(body: bytes) -> JsonObject:
    given = parsed(Counted, body).contents
    return {"totalTokens": sum(size(part.text) for one in given for part in one.parts)}


def _piece(asked: Asked, answer: Answer, id: str, part: JsonObject, *, last: bool) -> JsonObject:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if last:
        candidate["finishReason"] = "STOP"
    given, said = asked.size, size(answer.text)
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": given,
            "candidatesTokenCount": said,
            "totalTokenCount": given + said,
        },
        "modelVersion": asked.model,
        "responseId": id,
    }
