"""The script of the model: rules that choose an answer to a request, read from a file.

{"ignore": [regex], "folder": [regex], "rules": [{"when": regex, "do": [step, …]}],
 "otherwise": step, "tools": {kind: [{"name": regex, "arguments": template}]}}
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from comply.model.arguments import fitted, least
from comply.model.conversation import ModelAnswer, ModelRequest, OfferedTool, ToolCall, Turn
from comply.template import fill, fill_pattern, names
from schemas.problems import problem_text

SHIPPED = Path(__file__).with_name("script.json")
ALWAYS = frozenset({"result", "folder"})
"""Values that every rule has: the last tool result, and the agent's working folder."""


def _is_regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is not a regex: {error}") from None
    return text


def _is_name(text: str) -> str:
    """Checks a tool's name as a regex; a variable in it matches any text."""
    _is_regex(str(fill_pattern(text, dict.fromkeys(names(text), "x"))))
    return text


def _has_group(text: str) -> str:
    if re.compile(_is_regex(text)).groups < 1:
        raise ValueError("should have a group: what it takes is the folder")
    return text


def _are_regexes(template: JsonValue) -> JsonValue:
    for item in template if isinstance(template, list) else []:
        _are_regexes(item)
    for name, item in template.items() if isinstance(template, dict) else []:
        _is_regex(name)
        _are_regexes(item)
    return template


Regex = Annotated[str, AfterValidator(_is_regex)]


class ScriptModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ScriptStep(ScriptModel):
    """Text to say, or a kind of tool to call: one of the script's `tools`."""

    say: str | None = None
    call: str | None = None
    wait: float = Field(0, ge=0, le=600, description="Seconds, after the first word.")
    optional: bool = Field(False, description="Skipped when the agent has no such tool.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.say is None) is (self.call is None):
            raise ValueError("a step has exactly one of say and call")
        return self


class ScriptRule(ScriptModel):
    """Steps for prompts in which `when` is found. Its named groups are values for the steps.

    A step is done once the agent has returned the tool's result; the last step repeats.
    """

    when: Regex
    do: list[ScriptStep] = Field(min_length=1)


class ToolUse(ScriptModel):
    """One way to do something: a tool by its name, and its arguments."""

    name: Annotated[str, AfterValidator(_is_name)] = Field(
        description="Regex, searched whatever the case, after values are filled in."
    )
    arguments: Annotated[dict[str, JsonValue], AfterValidator(_are_regexes)] = {}


class Script(ScriptModel):
    ignore: list[Regex] = Field([], description="Taken out of what users say.")
    folder: list[Annotated[str, AfterValidator(_has_group)]] = Field(
        [], description="Their first group is the working folder."
    )
    rules: list[ScriptRule]
    otherwise: ScriptStep
    tools: dict[str, list[ToolUse]] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Check that every call is of a known kind, and every variable is set for its step."""
        for number, rule in enumerate(self.rules):
            known = ALWAYS | re.compile(rule.when).groupindex.keys()
            for step in rule.do:
                self._check(f"rules.{number}", step, known)
        self._check("otherwise", self.otherwise, ALWAYS)
        return self

    def _check(self, place: str, step: ScriptStep, known: frozenset[str]) -> None:
        if step.call is not None and step.call not in self.tools:
            there = ", ".join(self.tools) or "none"
            raise ValueError(f"{place}: no tools for {step.call}; there are {there}")
        used: list[JsonValue] = [step.say or ""]
        for use in self.tools.get(step.call or "", []):
            used += [use.name, use.arguments]
        for name in itertools.chain.from_iterable(map(names, used)):
            if name not in known:
                raise ValueError(f"{place}: ${{{name}}} is not set; there are {_list(known)}")


class BadScript(ValueError):
    """The file is not a valid script; the message has the place and the valid values."""


def read(text: str) -> Script:
    """Raises BadScript."""
    try:
        return Script.model_validate_json(text)
    except ValidationError as error:
        raise BadScript(problem_text(error.errors(include_url=False)[0], "the script")) from None


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """The rule that applies to a conversation, its values, and the calls made so far."""

    rule: ScriptRule | None
    values: dict[str, JsonValue]
    calls: int


def answer(script: Script, asked: ModelRequest) -> ModelAnswer:
    """The script's answer to a request."""
    if asked.shape is not None:
        return ModelAnswer(json.dumps(least(asked.shape)), why="the shape that was asked for")
    match = find(script, asked.turns)
    why = match.rule.when if match.rule else "otherwise"
    step, way = _step(script, match, asked.tools)
    if step.call is None:
        return ModelAnswer(str(fill(step.say, match.values)), wait=step.wait, why=why)
    if way is None:
        return ModelAnswer(f"I have no tool to {step.call}.", why=f"{why}: no tool to {step.call}")
    tool, use = way
    given = fitted(use.arguments, tool.schema, match.values)
    assert isinstance(given, dict)
    done = sum(turn.kind == "call" for turn in asked.turns)
    return ModelAnswer(call=ToolCall(f"call_{done + 1}", tool, given), wait=step.wait, why=why)


def _step(
    script: Script, match: RuleMatch, tools: tuple[OfferedTool, ...]
) -> tuple[ScriptStep, tuple[OfferedTool, ToolUse] | None]:
    """The next step, and the tool for it if the step calls one and the agent offers it."""
    ways = [
        (step, next(_ways(script.tools.get(step.call or "", []), tools, match.values), None))
        for step in (match.rule.do if match.rule else [script.otherwise])
    ]
    left = [(step, way) for step, way in ways if way is not None or not step.optional]
    return (left or ways)[min(match.calls, len(left or ways) - 1)]


def find(script: Script, turns: tuple[Turn, ...]) -> RuleMatch:
    """The rule for the last user text: the match that ends last, and of those the longest.

    A note counts as user text only when a rule matches it.
    """
    values: dict[str, JsonValue] = {"folder": folder(script, turns), "result": ""}
    calls = 0
    for turn in reversed(turns):
        if turn.kind == "call":
            calls += 1
        elif turn.kind == "result":
            values["result"] = values["result"] or turn.text
        elif turn.kind in ("user", "note"):
            text = heard(script, turn.text)
            matches = [(match, rule) for rule in script.rules for match in _all(rule.when, text)]
            if matches:
                last, rule = max(matches, key=lambda pair: (pair[0].end(), len(pair[0][0])))
                return RuleMatch(rule, {**values, **last.groupdict("")}, calls)
            if text and turn.kind == "user":
                break
    return RuleMatch(None, values, calls)


def heard(script: Script, text: str) -> str:
    """`text` without the parts that the script ignores."""
    for pattern in script.ignore:
        text = re.sub(pattern, "", text)
    return text.strip()


def folder(script: Script, turns: tuple[Turn, ...]) -> str:
    """The agent's working folder, as the agent tells its model; `.` when it does not."""
    texts = [turn.text for turn in turns if turn.kind in ("system", "user", "note")]
    for pattern in script.folder:
        for text in reversed(texts):
            matches = _all(pattern, text)
            if matches:
                return matches[-1][1]
    return "."


def _all(pattern: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern, text))


def _ways(
    uses: list[ToolUse], tools: tuple[OfferedTool, ...], values: dict[str, JsonValue]
) -> Iterator[tuple[OfferedTool, ToolUse]]:
    """The offered tools that fit, the preferred first."""
    for use in uses:
        pattern = str(fill_pattern(use.name, values))
        for tool in tools:
            if re.search(pattern, tool.called, re.IGNORECASE):
                yield tool, use


def _list(known: frozenset[str]) -> str:
    return ", ".join(f"${{{name}}}" for name in sorted(known))
