"""What a model reads in a text: calls that are written out, JSON objects, values of names."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from comply.model.conversation import OfferedTool

Json = dict[str, Any]

_WORD = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_OPENS = re.compile(r"(?: with)?:? `?(?=\{)")
_MARGIN = re.compile(r"(?m)^\| ?")
_QUOTED = re.compile(r"(?m)^\|.*$")
_HEADING = re.compile(r"(?m)^#+ ")
_OPEN_PARAM = re.compile(r"\n +- ([A-Za-z_][\w.]*): ([^\n]*)")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call that a text tells its reader to make. `fill` has what to put into the params that are
    left open, and `about` the rest of the section, down to the next heading."""

    tool: OfferedTool
    params: Json
    fill: dict[str, str]
    about: str


def offered(word: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The tool that a text means by its bare name: agents put the name of the server before it."""
    fitting = [tool for tool in tools if tool.called == word or tool.called.endswith(f"_{word}")]
    return min(fitting, key=lambda tool: len(tool.called), default=None)


def first_named(text: str, tools: Sequence[OfferedTool]) -> OfferedTool | None:
    """The first tool that a text names, outside of what it quotes."""
    named = (offered(match[0], tools) for match in _WORD.finditer(_QUOTED.sub("", text)))
    return next((tool for tool in named if tool is not None), None)


def written_calls(text: str, tools: Sequence[OfferedTool]) -> Iterator[WrittenCall]:
    """The calls in a text: a tool, its params as a JSON object, then on lines of their own the
    params that are left open, each with what to put there. Not those that it quotes: what other
    agents wrote is data."""
    headings = [match.start() for match in _HEADING.finditer(text)]
    for begin, end in pairwise([0, *headings, len(text)]):
        section = text[begin:end]
        for match in _WORD.finditer(section):
            tool, opening = offered(match[0], tools), _OPENS.match(section, match.end())
            line = section.rfind("\n", 0, match.start()) + 1
            if tool is None or opening is None or section.startswith("|", line):
                continue
            params, place = _object_at(section, opening.end())
            if params is None:
                continue
            place += section.startswith("`", place)
            fill = {}
            while open_param := _OPEN_PARAM.match(section, place):
                fill[open_param[1]], place = open_param[2], open_param.end()
            yield WrittenCall(tool, params, fill, section[: match.start()] + section[place:])


def objects(text: str) -> list[Json]:
    """The JSON objects in a text, outermost only. Margins of quoted lines are no part of them."""
    plain = _MARGIN.sub("", text)
    read, place = [], 0
    while (place := plain.find("{", place)) >= 0:
        value, end = _object_at(plain, place)
        if value is not None:
            read.append(value)
        place = end if value is not None else place + 1
    return read


def value_of(name: str, text: str, *hints: str) -> str | None:
    """What a text gives as the value of a name; of several, the last on a line with a hint."""
    pattern = re.compile(rf"\b{re.escape(name)}\b[^\w\n]*([\w-]{{8,}})")
    hits = [(line, match[1]) for line in text.splitlines() for match in pattern.finditer(line)]
    hinted = [value for line, value in hits if any(hint in line for hint in hints)]
    return (hinted or [value for _, value in hits] or [None])[-1]


def _object_at(text: str, place: int) -> tuple[Json | None, int]:
    """The object that begins there, and where it ends."""
    try:
        value, end = json.JSONDecoder().raw_decode(text, place)
    except ValueError:
        return None, place
    return (value, end) if isinstance(value, dict) else (None, place)
