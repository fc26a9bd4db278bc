"""What the scripted model answers: rules over what it is asked, read from a file of data.

{"ignore": [regex], "folder": [regex], "rules": [{"when": regex, "do": [step, …]}],
 "otherwise": step, "tools": {kind: [{"name": regex, "arguments": template}]}}
"""

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
from comply.model.conversation import Answer, Asked, Call, Tool, Turn
from comply.template import fill, fill_pattern, names
from schemas.problems import told

SHIPPED = Path(__file__).with_name("script.json")
ALWAYS = frozenset({"result", "folder"})
"""Values that every rule has: what the last tool gave, and the agent's working folder."""


def _is_regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"is no regex: {error}") from None
    return text


def _is_name(text: str) -> str:
    """A variable in it is any text."""
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


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(Part):
    """Text to say, or a kind of tool to call: one of the script's `tools`."""

    say: str | None = None
    call: str | None = None
    wait: float = Field(0, ge=0, le=600, description="Seconds, after the first word.")
    optional: bool = Field(False, description="Left out where the agent has no such tool.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.say is None) is (self.call is None):
            raise ValueError("a step has exactly one of say and call")
        return self


class Rule(Part):
    """Steps for the prompts that `when` is found in. Its named groups are values for them.

    A step is done once the agent has brought back what the tool gave; the last is for all that
    follows.
    """

    when: Regex
    do: list[Step] = Field(min_length=1)


class Use(Part):
    """One way to do something: a tool by its name, and what to give it."""

    name: Annotated[str, AfterValidator(_is_name)] = Field(
        description="Regex, searched whatever the case, after values are filled in."
    )
    arguments: Annotated[dict[str, JsonValue], AfterValidator(_are_regexes)] = {}


class Script(Part):
    ignore: list[Regex] = Field([], description="Taken out of what users say.")
    folder: list[Annotated[str, AfterValidator(_has_group)]] = Field(
        [], description="Their first group is the working folder."
    )
    rules: list[Rule]
    otherwise: Step
    tools: dict[str, list[Use]] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Every call is of a known kind, and every variable is set when its step comes."""
        for number, rule in enumerate(self.rules):
            known = ALWAYS | re.compile(rule.when).groupindex.keys()
            for step in rule.do:
                self._check(f"rules.{number}", step, known)
        self._check("otherwise", self.otherwise, ALWAYS)
        return self

    def _check(self, place: str, step: Step, known: frozenset[str]) -> None:
        if step.call is not None and step.call not in self.tools:
            there = ", ".join(self.tools) or "none"
            raise ValueError(f"{place}: no tools for {step.call}; there are {there}")
        used: list[JsonValue] = [step.say or ""]
        for use in self.tools.get(step.call or "", []):
            used += [use.name, use.arguments]
        for name in (one for text in used for one in names(text)):
            if name not in known:
                raise ValueError(f"{place}: ${{{name}}} is not set; there are {_list(known)}")


class BadScript(ValueError):
    """A file that is no script; the message says where and what would be right."""


def read(text: str) -> Script:
    """Raises BadScript."""
    try:
        return Script.model_validate_json(text)
    except ValidationError as error:
        raise BadScript(told(error.errors(include_url=False)[0], "the script")) from None


@dataclass(frozen=True, slots=True)
class Found:
    """The rule that a conversation has come to, its values, and how many calls it has made."""

    rule: Rule | None
    values: dict[str, JsonValue]
    calls: int


def answer(script: Script, asked: Asked) -> Answer:
    """What the script says to this."""
    if asked.shape is not None:
        return Answer(json.dumps(least(asked.shape)), why="the shape that was asked for")
    found = find(script, asked.turns)
    why = found.rule.when if found.rule else "otherwise"
    step, way = _step(script, found, asked.tools)
    if step.call is None:
        return Answer(str(fill(step.say, found.values)), wait=step.wait, why=why)
    if way is None:
        return Answer(f"I have no tool to {step.call}.", why=f"{why}: no tool to {step.call}")
    tool, use = way
    given = fitted(use.arguments, tool.schema, found.values)
    assert isinstance(given, dict)
    done = sum(turn.kind == "call" for turn in asked.turns)
    return Answer(call=Call(f"call_{done + 1}", tool, given), wait=step.wait, why=why)


def _step(
    script: Script, found: Found, tools: tuple[Tool, ...]
) -> tuple[Step, tuple[Tool, Use] | None]:
    """The step that it is time for, and the tool that does it, if it calls one that is there."""
    ways = [
        (step, next(_ways(script.tools.get(step.call or "", []), tools, found.values), None))
        for step in (found.rule.do if found.rule else [script.otherwise])
    ]
    left = [(step, way) for step, way in ways if way is not None or not step.optional]
    return (left or ways)[min(found.calls, len(left or ways) - 1)]


def find(script: Script, turns: tuple[Turn, ...]) -> Found:
    """By the last of what users say; of the rules found in it, the one that is found last, and of
    those the one that takes in most.

    A note is what users say only where a rule is found in it.
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
            matches = [(one, rule) for rule in script.rules for one in _all(rule.when, text)]
            if matches:
                last, rule = max(matches, key=lambda pair: (pair[0].end(), len(pair[0][0])))
                return Found(rule, {**values, **last.groupdict("")}, calls)
            if text and turn.kind == "user":
                break
    return Found(None, values, calls)


def heard(script: Script, text: str) -> str:
    """Without what is to be ignored."""
    for pattern in script.ignore:
        text = re.sub(pattern, "", text)
    return text.strip()


def folder(script: Script, turns: tuple[Turn, ...]) -> str:
    """The agent's working folder, as it says to its model itself; `.` when it does not."""
    said = [turn.text for turn in turns if turn.kind in ("system", "user", "note")]
    for pattern in script.folder:
        for text in reversed(said):
            found = _all(pattern, text)
            if found:
                return found[-1][1]
    return "."


def _all(pattern: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern, text))


def _ways(
    uses: list[Use], tools: tuple[Tool, ...], values: dict[str, JsonValue]
) -> Iterator[tuple[Tool, Use]]:
    """The tools that do it, the preferred first."""
    for use in uses:
        pattern = str(fill_pattern(use.name, values))
        for tool in tools:
            if re.search(pattern, tool.called, re.IGNORECASE):
                yield tool, use


def _list(known: frozenset[str]) -> str:
    return ", ".join(f"${{{name}}}" for name in sorted(known))
