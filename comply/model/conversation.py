"""What a provider's API is asked and answers, whatever its format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from schemas.jsont import JsonObject
from schemas.problems import told

Kind = Literal["system", "user", "note", "assistant", "call", "result"]
"""`note` is text of the user beside results of tools: mostly the agent's own words."""
Event = tuple[str, JsonValue] | None
"""Name and data of a server-sent event; None where a stream waits."""
Request = TypeVar("Request", bound=BaseModel)


class BadRequest(ValueError):
    """A body that is no request of its format; the message says where and what would be right."""


class Body(BaseModel):
    """A part of a request. What the script does not need is ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Block(Body):
    """A piece of what is said, or of a call or its result."""

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


Text = Annotated[list[Block], BeforeValidator(_blocks)]
"""Text as the formats write it: a string, a list of blocks, or nothing."""


class Shape(Body):
    shape: JsonObject | None = Field(None, alias="schema")


def text_of(blocks: list[Block]) -> str:
    return "\n".join(block.text for block in blocks if block.text)


@dataclass(frozen=True, slots=True)
class Turn:
    """Something said, in the order of the conversation."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent offers, with the JSON Schema of its arguments."""

    name: str
    schema: JsonObject = field(default_factory=dict)
    space: str = ""
    """The namespace that it is called in, where the format has them."""

    @property
    def called(self) -> str:
        """The name with its namespace."""
        return f"{self.space}__{self.name}".removeprefix("__")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a model. `shape` is the JSON Schema that the answer's text should keep."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    shape: JsonObject | None = None
    usage: bool = True
    """Whether a stream ends with what was used."""

    @property
    def size(self) -> int:
        """Tokens, as `size` counts them."""
        return sum(size(turn.text) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    id: str
    tool: Tool
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """Text, or a call. A stream waits so many seconds after the first word, others at once."""

    text: str = ""
    call: Call | None = None
    wait: float = 0.0
    why: str = ""
    """The rule that it follows, for the log."""


class Format(Protocol):
    """A provider's format, as a module."""

    @property
    def asked(self) -> Callable[[bytes], Asked]:
        """Raises BadRequest."""

    @property
    def whole(self) -> Callable[[Asked, Answer, str], JsonObject]:
        """The answer in one piece, under an id."""

    @property
    def events(self) -> Callable[[Asked, Answer, str], Iterator[Event]]:
        """The answer as a stream."""


def parsed(model: type[Request], body: bytes) -> Request:
    """Raises BadRequest."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise BadRequest(told(error.errors(include_url=False)[0], "the body")) from None


def words(text: str) -> list[str]:
    """The pieces that a stream sends one by one."""
    found = text.split(" ")
    return [f"{word} " for word in found[:-1]] + found[-1:]


def size(text: str) -> int:
    """Tokens, as if each word were one; never none."""
    return len(text.split()) + 1
