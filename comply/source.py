"""Parses a test file's text and keeps the line of each value."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from comply.matching import ABSENT
from comply.patterns import PatternError, compiled
from comply.template import to_json
from schemas.jsont import ComplianceTest
from schemas.problems import problem_text

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]
SUFFIX = ".jsont"

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a file, and its line."""

    line: int
    text: str
    level: Literal["error", "warning"] = "error"


class NotATest(ValueError):
    """The text is not a valid test; `problem` says what is wrong first."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"line {problem.line}: {problem.text}")
        self.problem = problem


@dataclass(slots=True)
class Source:
    """Parsed JSON, the line of each value, and the places of duplicate names in objects."""

    value: JsonValue
    lines: dict[Place, int] = field(default_factory=dict)
    twice: list[Place] = field(default_factory=list)

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest place that encloses it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


class _Parser:
    """Parses JSON (RFC 8259) and notes the line where each value starts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.source = Source(None)

    def fail(self, problem: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(problem, self.text, self.at)

    def skip(self) -> str:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def document(self) -> Source:
        self.source.value = self.value(())
        if self.skip():
            raise self.fail("Something follows the end of the test")
        return self.source

    def value(self, place: Place) -> JsonValue:
        start = self.skip()
        self.source.lines[place] = self.text.count("\n", 0, self.at) + 1
        if len(place) > _DEPTH:
            raise self.fail(f"Nested deeper than {_DEPTH}")
        if start == "{":
            return self.object(place)
        if start == "[":
            return self.list(place)
        if start == '"':
            return self.string()
        literal = _SCALAR.match(self.text, self.at)
        if literal is None:
            raise self.fail("Expected a value")
        self.at = literal.end()
        scalar: JsonValue = json.loads(literal[0])
        return scalar

    def string(self) -> str:
        text: str
        text, self.at = _DECODER.raw_decode(self.text, self.at)
        return text

    def object(self, place: Place) -> dict[str, JsonValue]:
        members: dict[str, JsonValue] = {}
        self.at += 1
        if self.skip() == "}":
            self.at += 1
            return members
        while True:
            if self.skip() != '"':
                raise self.fail("Expected a name in double quotes")
            name = self.string()
            if self.skip() != ":":
                raise self.fail("Expected ':' after a name")
            self.at += 1
            if name in members:
                self.source.twice.append((*place, name))
            members[name] = self.value((*place, name))
            if self.end("}"):
                return members

    def list(self, place: Place) -> list[JsonValue]:
        items: list[JsonValue] = []
        self.at += 1
        if self.skip() == "]":
            self.at += 1
            return items
        while True:
            items.append(self.value((*place, len(items))))
            if self.end("]"):
                return items

    def end(self, bracket: str) -> bool:
        here = self.skip()
        if here not in (bracket, ","):
            raise self.fail(f"Expected ',' or '{bracket}'")
        self.at += 1
        return here == bracket


def parse(text: str) -> Source:
    """The text as JSON, bare variables as strings. Raises NotATest."""
    try:
        return _Parser(to_json(text)).document()
    except json.JSONDecodeError as error:
        raise NotATest(Problem(error.lineno, f"not JSON: {error.msg}")) from None


def read(text: str) -> ComplianceTest:
    """The test in a file's text. Raises NotATest with the first thing that is wrong."""
    return read_as(ComplianceTest, text)


def read_as(model: type[Model], text: str) -> Model:
    """Like `read`, for any model that has steps."""
    source = parse(text)
    try:
        value = model.model_validate(source.value)
    except ValidationError as error:
        raise NotATest(invalid_fields(source, error)[0]) from None
    for problem in bad_patterns(source):
        raise NotATest(problem)
    return value


def invalid_fields(source: Source, error: ValidationError) -> list[Problem]:
    return [
        Problem(source.line(tuple(detail["loc"])), problem_text(detail, "the test"))
        for detail in error.errors(include_url=False)
    ]


def bad_patterns(source: Source) -> Iterator[Problem]:
    for place, leaf in _leaves(source.value, ()):
        within = place[:1] == ("steps",) and place[2:4] == ("expect", "messages")
        if not within or "reply" in place or ABSENT in place:
            continue
        try:
            compiled(re.sub(r"\$\{\w+\}", "x", leaf))
        except PatternError as error:
            yield Problem(source.line(place), f"{'.'.join(map(str, place))}: {error}")


def _leaves(value: JsonValue, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*place, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*place, number))
    elif isinstance(value, str):
        yield place, value


def id_of(path: Path) -> str:
    """The id of a test: its file's name without the ending (acpcomply, Test Model)."""
    return path.name.removesuffix(SUFFIX)
