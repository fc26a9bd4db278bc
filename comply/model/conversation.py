"""Requests to a model and its answers, independent of a provider's format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from schemas.jsont import JsonObject
from schemas.problems import problem_text

Kind = Literal["system", "user", "note", "assistant", "call", "result"]
"""`note` is user text beside tool results, mostly written by the agent itself."""
Event = tuple[str, JsonValue] | None
"""Name and data of a server-sent event; None where a stream may wait."""
RequestModel = TypeVar("RequestModel", bound=BaseModel)


class BadRequest(ValueError):
    """The body is not a request of its format; the message has the place and the valid values."""


class RequestPart(BaseModel):
    """A part of a request. Fields that the script does not need are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class TextBlock(RequestPart):
    """A piece of a message, a tool call or its result."""

    type: str = "text"
    text: str = ""
    name: str = ""
    content: "Text" = []


def _blocks(value: object) -> object:
    if value is None:
        return []
    if isinstance(value, str):
        return [{"text": value}]
    if not isinstance(value, list):
        raise ValueError("should be a string or a list")
    return value


Text = Annotated[list[TextBlock], BeforeValidator(_blocks)]
"""Text as the formats write it: a string, a list of blocks, or nothing."""


class Shape(RequestPart):
    shape: JsonObject | None = Field(None, alias="schema")


def text_of(blocks: list[TextBlock]) -> str:
    return "\n".join(block.text for block in blocks if block.text)


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of the conversation."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the agent offers, with the JSON Schema of its arguments."""

    name: str
    schema: JsonObject = field(default_factory=dict)
    space: str = ""
    """The namespace of the tool, where the format has namespaces."""
    about: str = ""
    """What the tool is for, as the agent describes it to its model."""

    @property
    def called(self) -> str:
        """The name with its namespace."""
        return f"{self.space}__{self.name}".removeprefix("__")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model. `shape` is the JSON Schema that the answer's text must follow."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[OfferedTool, ...] = ()
    stream: bool = False
    shape: JsonObject | None = None
    usage: bool = True
    """Whether a stream ends with the token usage."""

    @property
    def size(self) -> int:
        """Tokens, as `size` counts them."""
        return sum(size(turn.text) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool."""

    id: str
    tool: OfferedTool
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Text, or a tool call. `wait`: seconds before the answer, in a stream after its first word."""

    text: str = ""
    call: ToolCall | None = None
    wait: float = 0.0
    why: str = ""
    """The rule of the script that gave it, for the log."""


class Format(Protocol):
    """A provider's format; each is a module."""

    @property
    def asked(self) -> Callable[[bytes], ModelRequest]:
        """Raises BadRequest."""

    @property
    def whole(self) -> Callable[[ModelRequest, ModelAnswer, str], JsonObject]:
        """The complete answer, with this id."""

    @property
    def events(self) -> Callable[[ModelRequest, ModelAnswer, str], Iterator[Event]]:
        """The answer as a stream."""


def parsed(model: type[RequestModel], body: bytes) -> RequestModel:
    """Raises BadRequest."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise BadRequest(problem_text(error.errors(include_url=False)[0], "the body")) from None


def words(text: str) -> list[str]:
    """The pieces of a text that a stream sends one by one."""
    pieces = text.split(" ")
    return [f"{word} " for word in pieces[:-1]] + pieces[-1:]


def size(text: str) -> int:
    """The number of tokens, taking each word for one; at least 1."""
    return len(text.split()) + 1
