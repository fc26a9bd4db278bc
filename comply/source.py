"""A test file's text: parsed, with the line of each value; and what is wrong with it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, JsonValue, ValidationError

from comply.matching import ABSENT
from comply.patterns import PatternError, compiled
from comply.template import names, to_json
from schemas.jsont import ComplianceTest, Step
from schemas.problems import told

Place = tuple[str | int, ...]
SUFFIX = ".jsont"
BUILT_IN = frozenset(
    {
        *("endpoint", "endpoint2"),
        *("sandbox", "protocolVersionDefault", "clientCapabilitiesDefault", "mcpServer"),
        "authMethod",
        *("unique", "repo", "repo2", "peerRepo", "large", "soon"),
    }
)
"""Variables that are set in every test; see docs/comply.md."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null")
_DECODER = json.JSONDecoder()
_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a file, and where."""

    line: int
    text: str
    level: Literal["error", "warning"] = "error"


class NotATest(ValueError):
    """A file that is no test."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"line {problem.line}: {problem.text}")
        self.problem = problem


@dataclass(slots=True)
class Source:
    """Parsed JSON, the line of each place in it, and the names that an object has twice."""

    value: JsonValue
    lines: dict[Place, int] = field(default_factory=dict)
    twice: list[Place] = field(default_factory=list)

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest that is around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


class _Parser:
    """JSON by RFC 8259, and where each value starts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.source = Source(None)

    def fail(self, what: str) -> json.JSONDecodeError:
        return json.JSONDecodeError(what, self.text, self.at)

    def skip(self) -> str:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def whole(self) -> Source:
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
        found = _SCALAR.match(self.text, self.at)
        if found is None:
            raise self.fail("Expected a value")
        self.at = found.end()
        scalar: JsonValue = json.loads(found[0])
        return scalar

    def string(self) -> str:
        text: str
        text, self.at = _DECODER.raw_decode(self.text, self.at)
        return text

    def object(self, place: Place) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        self.at += 1
        if self.skip() == "}":
            self.at += 1
            return found
        while True:
            if self.skip() != '"':
                raise self.fail("Expected a name in double quotes")
            name = self.string()
            if self.skip() != ":":
                raise self.fail("Expected ':' after a name")
            self.at += 1
            if name in found:
                self.source.twice.append((*place, name))
            found[name] = self.value((*place, name))
            if self.end("}"):
                return found

    def list(self, place: Place) -> list[JsonValue]:
        found: list[JsonValue] = []
        self.at += 1
        if self.skip() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value((*place, len(found))))
            if self.end("]"):
                return found

    def end(self, bracket: str) -> bool:
        here = self.skip()
        if here not in (bracket, ","):
            raise self.fail(f"Expected ',' or '{bracket}'")
        self.at += 1
        return here == bracket


def parse(text: str) -> Source:
    """The text as JSON, bare variables as strings. Raises NotATest."""
    try:
        return _Parser(to_json(text)).whole()
    except json.JSONDecodeError as error:
        raise NotATest(Problem(error.lineno, f"not JSON: {error.msg}")) from None


def read(text: str) -> ComplianceTest:
    """The test in a file's text. Raises NotATest with the first thing that is wrong."""
    source = parse(text)
    try:
        test = ComplianceTest.model_validate(source.value)
    except ValidationError as error:
        raise NotATest(_invalid(source, error)[0]) from None
    for problem in _patterns(source):
        raise NotATest(problem)
    return test


def _invalid(source: Source, error: ValidationError) -> list[Problem]:
    return [
        Problem(source.line(tuple(one["loc"])), told(one, "the test"))
        for one in error.errors(include_url=False)
    ]


def lint(text: str) -> list[Problem]:
    """Everything wrong with a test file, in the order of its lines; empty when it is fine."""
    try:
        source = parse(text)
    except NotATest as error:
        return [error.problem]
    problems = [
        Problem(source.line(place), f"{place[-1]!r} is here twice") for place in source.twice
    ]
    try:
        test = ComplianceTest.model_validate(source.value)
    except ValidationError as error:
        problems += _invalid(source, error)
    else:
        problems += _metadata(test)
        problems += _foreign(test, source)
        problems += _patterns(source)
        problems += _variables(test, source)
        said = {f"preconditions.{n}.{one.foreign}" for n, one in enumerate(test.preconditions)}
        unknown = _unknown(source.value, ComplianceTest, (), source)
        problems += [one for one in unknown if one.text.partition(":")[0] not in said]
    return sorted(problems, key=lambda problem: problem.line)


def _metadata(test: ComplianceTest) -> Iterator[Problem]:
    if not test.description:
        yield Problem(1, "description: says in plain words what the test verifies", "warning")
    if not test.docs:
        yield Problem(1, "docs: link the clause that the test checks", "warning")


def _foreign(test: ComplianceTest, source: Source) -> Iterator[Problem]:
    for number, condition in enumerate(test.preconditions):
        if condition.foreign is not None:
            said = f"preconditions.{number}: only other runners know {condition.foreign}: NA here"
            yield Problem(source.line(("preconditions", number)), said, "warning")


def _patterns(source: Source) -> Iterator[Problem]:
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


def _variables(test: ComplianceTest, source: Source) -> Iterator[Problem]:
    """Variables that no built-in and no earlier step sets."""
    steps = source.value["steps"] if isinstance(source.value, dict) else None
    known = set(BUILT_IN)
    for number, step in enumerate(test.steps):
        raw = steps[number] if isinstance(steps, list) else None
        for name in dict.fromkeys(names(raw)):
            if name not in known:
                yield Problem(source.line(("steps", number)), f"${{{name}}} is set by no step")
        known |= captured(step)


def captured(step: Step) -> set[str]:
    """The variables that a step sets."""
    if step.new_session is not None:
        return {step.new_session.capture}
    return {capture.var for capture in step.expect.captures} if step.expect else set()


def _unknown(
    value: JsonValue, model: type[BaseModel], place: Place, source: Source
) -> Iterator[Problem]:
    """Fields that are ignored: harmless when meant for another runner, or a slip of the pen."""
    if not isinstance(value, dict):
        return
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    for name, item in value.items():
        below = (*place, name)
        if name not in fields:
            where = ".".join(map(str, below))
            yield Problem(source.line(below), f"{where}: unknown, so ignored", "warning")
            continue
        inner = _model_of(fields[name].annotation)
        if inner is not None:
            items = item if isinstance(item, list) else [item]
            for number, one in enumerate(items):
                deeper = (*below, number) if isinstance(item, list) else below
                yield from _unknown(one, inner, deeper, source)


def _model_of(annotation: object) -> type[BaseModel] | None:
    """The model in `X`, `X | None` or `list[X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_of(one) for one in getattr(annotation, "__args__", ()))
    return next((one for one in inner if one is not None), None)


def id_of(path: Path) -> str:
    """The id of a test: its file's name without the ending (acpcomply, Test Model)."""
    return path.name.removesuffix(SUFFIX)
