"""A model that only follows what tools and hooks tell it. It stands in for a model's API.

Beforehand it knows this: its user's first words list wishes, each of which it takes to the tool
whose description begins with the same verb and has most words in common with it; the description of
a param names the tool that shows its value; the instructions of its server name the tool to begin
with; a text may write out a call as `TOOL {params}`, with params that are left open (`reading`);
and what its sheet says. It knows no tool, no method, no kind of item and no order of steps: it
makes the first call that it is told of, fills the open params from its sheet by what the text says
of them (`choices`), and asks again what waits for it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from comply.model.conversation import ModelAnswer, ModelRequest, OfferedTool, ToolCall, Turn
from tests.feature.choices import answer, answers, builds, chosen, interface, judges
from tests.feature.reading import Json, WrittenCall, first_named, value_of, written_calls
from tests.feature.sheet import Sheet

CALLS_MAX = 25
"""Calls in one turn. A model would stop somewhere too."""
INSTRUCTIONS = re.compile(r"(?s)(?:## cacp\n|<server name=\"cacp\">)(.*)")
"""Where an agent shows its model the instructions of the server, which its user named cacp."""
WISH = re.compile(r"(?m)^- ([^{\n]+) (\{.*\})")
CHANGED = re.compile(r"(?m)^- \w+: ")
"""In the result of a change: a line for each of its members."""
ASK = "Ask the other agents of a project a question"
"""What it wants when it doesn't know enough to build."""

Called = tuple[OfferedTool, Json]


@dataclass(frozen=True, slots=True)
class Wish:
    """Something to do, with the details that are known."""

    words: str
    details: Json


@dataclass(slots=True)
class Follower:
    """One agent's model. `reply` is what its API answers."""

    sheet: Sheet
    wishes: list[Wish] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    """What tools have answered."""
    shown: int = 0
    """How often hooks showed it calls to make, before it asked."""
    _opened: bool = False
    _question: str = ""
    """The id of its question, once it is asked."""
    _wish: Wish | None = None
    """The wish that its last call is for."""
    _looks: bool = False
    """Whether its last call was to read what it judges."""
    _looked: str = ""
    """What that showed."""
    _begins: bool = False
    """Whether its last call was the one to begin with."""
    _calls: int = 0
    _tried: set[str] = field(default_factory=set)
    """The calls of this turn."""

    def reply(self, request: ModelRequest) -> ModelAnswer:
        """Its next call, or a text that ends its turn."""
        if not request.tools:
            return ModelAnswer("A title", why="no tools")
        text, is_answer = _latest(request.turns)
        if is_answer:
            self._learn(text)
        else:
            self._begin(text)
            self.shown += any(written_calls(text, request.tools))
        self._wish = None
        call = None
        if self._calls < CALLS_MAX:
            call = self._wished(request.tools) or self._followed(text, request)
        if call is None:
            return ModelAnswer("I am done for now.", why="nothing that it could do")
        tool, params = call
        self._calls += 1
        self._tried.add(_key(tool, params))
        return ModelAnswer(call=ToolCall(f"call_{len(request.turns)}", tool, params), why="told")

    def _begin(self, text: str) -> None:
        """A turn begins with the user's words, and what hooks have added."""
        self._calls, self._begins, self._looked = 0, False, ""
        self._tried.clear()
        if not self._opened:
            self._opened = True
            matches = WISH.findall(text)
            self.wishes += [Wish(words, json.loads(details)) for words, details in matches]

    def _learn(self, text: str) -> None:
        """A tool has answered."""
        self.answers.append(text)
        if self._looks:
            self._looked, self._looks = text, False
        if self._wish is not None and CHANGED.search(text):
            self.wishes.remove(self._wish)
            if self._wish.words == ASK:
                self._question = value_of("packetId", text) or ""

    # --- wishes ---------------------------------------------------------------------------------

    def _wished(self, tools: Sequence[OfferedTool]) -> Called | None:
        """The call for its first wish, or for what it must read before."""
        for wish in self.wishes[:1]:
            tool = max(tools, key=lambda tool: _likeness(wish.words, tool.about))
            params, unknown = self._known(tool, wish.details)
            call = (tool, params)
            if unknown:
                shows = first_named(_about(tool, unknown[0]), tools)
                if shows is None:
                    return None
                call = (shows, self._known(shows, {})[0])
            if _key(*call) in self._tried:
                return None
            self._wish = None if unknown else wish
            self._begins = False
            return call
        return None

    def _known(self, tool: OfferedTool, details: Json) -> tuple[Json, list[str]]:
        """The params of a tool that it knows, and the names of those required that it doesn't."""
        properties = tool.schema.get("properties")
        assert isinstance(properties, dict)
        params = {name: details[name] for name in properties if name in details}
        hints = [str(detail) for detail in details.values()]
        unknown = []
        for name in _required(tool):
            value = value_of(name, "\n".join(self.answers), *hints)
            if name not in params and value is None:
                unknown.append(name)
            elif name not in params:
                params[name] = value
        return params, unknown

    # --- what it is told ------------------------------------------------------------------------

    def _followed(self, text: str, request: ModelRequest) -> Called | None:
        """The first call that the text tells it to make; else the call to begin with, unless that
        was the last one."""
        for told in written_calls(text, request.tools):
            call = self._prepared(told, request.tools)
            if call is not None and _key(*call) not in self._tried:
                self._begins = False
                return call
        if self._begins:
            return None
        self._begins = True
        shown = "\n".join(turn.text for turn in request.turns if turn.kind == "system")
        instructions = INSTRUCTIONS.search(shown)
        first = first_named(instructions[1], request.tools) if instructions else None
        return None if first is None else (first, {})

    def _prepared(self, told: WrittenCall, tools: Sequence[OfferedTool]) -> Called | None:
        """The call with its open params filled, or the call that it needs before: to read what it
        judges, or to ask. None to wait."""
        software = self.sheet.software
        if software.culprit == self.sheet.repo and software.fault in told.about:
            software.repaired = True
        if builds(told) and self.sheet.question and not self._answered():
            return self._asking(tools)
        if answers(told) and answer(told.about, self.sheet) is None:
            return None
        if judges(told) and interface(told.about) is None:
            shows = first_named(told.about, tools)
            look = shows and (shows, self._known(shows, told.params)[0])
            if look and _key(*look) not in self._tried:
                self._looks = True
                return look
            if not self._looked:
                return None
            told = replace(told, about=self._looked)
        return told.tool, chosen(told, self.sheet)

    def _asking(self, tools: Sequence[OfferedTool]) -> Called | None:
        """The call that asks its question; once it is asked, the call that shows answers."""
        if not self._question:
            # One that is there has failed in this turn.
            self.wishes = self.wishes or [Wish(ASK, self.sheet.question)]
            return self._wished(tools)
        ask = max(tools, key=lambda tool: _likeness(ASK, tool.about))
        others = [tool for tool in tools if tool is not ask]
        shows = first_named(ask.about, others)
        return None if shows is None else (shows, self._known(shows, {})[0])

    def _answered(self) -> bool:
        """Whether it has read an answer to its question."""
        answer = re.compile(rf"(?i)\brepl[^\n]*{re.escape(self._question)}")
        return bool(self._question) and any(answer.search(text) for text in self.answers)


def _latest(turns: Sequence[Turn]) -> tuple[str, bool]:
    """What has been said to it since it last spoke, and whether that is a tool's answer. The system
    prompt, which every request begins with, is not new."""
    said = list(dropwhile(lambda turn: turn.kind == "system", turns))
    spoken = [place for place, turn in enumerate(said) if turn.kind in ("assistant", "call")]
    new = said[spoken[-1] + 1 :] if spoken else said
    return "\n".join(turn.text for turn in new), any(turn.kind == "result" for turn in new)


def _likeness(wish: str, about: str) -> tuple[bool, int]:
    """How well a description fits a wish: whether both begin with the same verb, and how many words
    of the wish are in its first sentence."""
    wanted = re.findall(r"\w+", wish.lower())
    given = re.findall(r"\w+", re.split(r"[.:(]", about)[0].lower())
    return wanted[:1] == given[:1], len({*wanted} & {*given})


def _about(tool: OfferedTool, name: str) -> str:
    """The description of a param."""
    properties = tool.schema.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    return str(schema.get("description", "")) if isinstance(schema, dict) else ""


def _required(tool: OfferedTool) -> list[str]:
    names = tool.schema.get("required")
    return [str(name) for name in names] if isinstance(names, list) else []


def _key(tool: OfferedTool, params: Json) -> str:
    return json.dumps([tool.called, params], sort_keys=True)
