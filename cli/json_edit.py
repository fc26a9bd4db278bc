"""Changes to the text of a JSON file that leave the rest of it as it is: order, indentation and
comments stay. Comments and commas before a closing bracket are accepted, because agents' settings
may have them.

Pure: text in, text out. A path is a sequence of member names and positions in lists.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Steps = Sequence[str | int]

_TRIVIA = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATOM = re.compile(r"[^\s,\]}/:]+")
_INDENT = re.compile(r"^[ \t]+(?=\S)", re.MULTILINE)
_DEPTH_MAX = 100


@dataclass(slots=True)
class JsonSpan:
    """A value and its place in a text: from `start` up to `end`, in characters."""

    start: int
    end: int
    value: Any
    children: list["JsonChild"] = field(default_factory=list)


class JsonChild(NamedTuple):
    """A member of an object, or an item of a list, which has no name. `start` is where its name
    begins, if it has one."""

    start: int
    name: str | None
    span: JsonSpan


def loads(text: str) -> Any:
    """The value of a text; {} when it is empty. Raises ValueError, which names the line."""
    return _document(text).value


def with_value(text: str, path: Steps, value: Any) -> str:
    """The text with a value at a path. Missing objects on the way are made. Raises ValueError when
    the text isn't JSON, or the path leads through something else than objects and lists."""
    text = text if text.strip() else "{}\n"
    node = _document(text)
    for depth, step in enumerate(path):
        child = _child(node, step)
        if child is None:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _inserted(text, node, step, value)
        node = child.span
    shown = _shown(value, _indent(text, node.start), text) if "\n" in text.strip() else _line(value)
    return text[: node.start] + shown + text[node.end :]


def with_item(text: str, path: Steps, value: Any) -> str:
    """The text with one more item at the end of the list at a path. A missing list is made. Raises
    ValueError as `with_value`."""
    node = _at(_document(text), path)
    if node is None:
        return with_value(text, path, [value])
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(map(str, path))}: should be a list")
    return _inserted(text, node, None, value)


def without(text: str, path: Steps) -> str:
    """The text without what stands at a path; the same text when nothing does. Raises ValueError as
    `with_value`."""
    node = _at(_document(text), path[:-1])
    child = None if node is None else _child(node, path[-1])
    return text if node is None or child is None else _removed(text, node, child)


def _at(node: JsonSpan | None, path: Steps) -> JsonSpan | None:
    for step in path:
        child = None if node is None else _child(node, step)
        node = None if child is None else child.span
    return node


def _child(node: JsonSpan, step: str | int) -> JsonChild | None:
    if isinstance(step, int):
        if not isinstance(node.value, list):
            raise ValueError(f"what holds item {step} should be a list")
        return node.children[step] if step < len(node.children) else None
    if not isinstance(node.value, dict):
        raise ValueError(f"what holds {step!r} should be an object")
    # Of a name that is given twice, readers take the last.
    return next((child for child in reversed(node.children) if child.name == step), None)


def _inserted(text: str, node: JsonSpan, name: str | int | None, value: Any) -> str:
    """The text with a further child at the end of an object or a list."""
    label = f"{_line(name)}: " if isinstance(name, str) else ""
    close = node.end - 1
    end = len(text[:close].rstrip())
    last = node.children[-1] if node.children else None
    outer = _indent(text, node.start)
    spread = "\n" in text[node.start : close] or (not last and text.strip() == "{}")
    if spread or (not last and "\n" in text.strip()):
        indent = _indent(text, last.start) if last else outer + _unit(text)
        lead, added = f"\n{indent}", label + _shown(value, indent, text)
        tail = text[end:close] if last else f"\n{outer}"
    else:
        lead, added, tail = " " if last else "", label + _line(value), text[end:close]
    if last and _comma(text, last.span) is None:
        added_to = f"{text[: last.span.end]},{text[last.span.end : end]}"
    else:
        added_to, added = text[:end], f"{added}," if last else added
    return added_to + lead + added + tail + text[close:]


def _removed(text: str, node: JsonSpan, child: JsonChild) -> str:
    """The text without a child, its comma and the space before it."""
    start = len(text[: child.start].rstrip())
    place = next(at for at, other in enumerate(node.children) if other is child)
    comma = _comma(text, child.span)
    if comma is None and place:
        comma = _comma(text, node.children[place - 1].span)
    cuts = [(start, child.span.end)]
    if comma is not None:
        cuts.append((comma, comma + 1))
    if start == node.start + 1:
        rest = text[(comma or child.span.end - 1) + 1 :]
        space = len(rest) - len(rest.lstrip())
        closes = rest.lstrip()[:1] in ("}", "]")
        if closes or start == child.start:
            cuts.append((len(text) - len(rest), len(text) - len(rest) + space))
    for left, right in sorted(cuts, reverse=True):
        text = text[:left] + text[right:]
    return text


def _comma(text: str, span: JsonSpan) -> int | None:
    """The position of the comma that follows a value, if one does."""
    place = _skip(text, span.end)
    return place if text[place : place + 1] == "," else None


def _indent(text: str, place: int) -> str:
    """The space at the start of the line of a place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """How far this text indents a level; two spaces if nothing in it is indented."""
    match = _INDENT.search(text)
    return match[0] if match else "  "


def _shown(value: Any, indent: str, text: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return lines.replace("\n", f"\n{indent}")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- reading ------------------------------------------------------------------------------------


def _document(text: str) -> JsonSpan:
    if not text.strip():
        return JsonSpan(0, 0, {})
    node = _value(text, _skip(text, 0), 0)
    end = _skip(text, node.end)
    if end < len(text):
        raise _wrong(text, end, "the end of the file")
    return node


def _value(text: str, place: int, depth: int) -> JsonSpan:
    if depth > _DEPTH_MAX:
        raise _wrong(text, place, "less depth")
    sign = text[place : place + 1]
    if sign in ("{", "["):
        return _container(text, place, depth, "}" if sign == "{" else "]")
    match = (_STRING if sign == '"' else _ATOM).match(text, place)
    if match is None:
        raise _wrong(text, place, "a value")
    try:
        return JsonSpan(place, match.end(), json.loads(match[0]))
    except ValueError:
        raise _wrong(text, place, "a value") from None


def _container(text: str, start: int, depth: int, closing: str) -> JsonSpan:
    children: list[JsonChild] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != closing:
        child = _read_child(text, place, depth, named=closing == "}")
        children.append(child)
        place = _skip(text, child.span.end)
        if text[place : place + 1] == ",":
            place = _skip(text, place + 1)
        elif text[place : place + 1] != closing:
            raise _wrong(text, place, f"a comma or {closing}")
    if closing == "}":
        members = {child.name: child.span.value for child in children}
        return JsonSpan(start, place + 1, members, children)
    return JsonSpan(start, place + 1, [child.span.value for child in children], children)


def _read_child(text: str, place: int, depth: int, *, named: bool) -> JsonChild:
    if not named:
        return JsonChild(place, None, _value(text, place, depth + 1))
    name = _STRING.match(text, place)
    if name is None:
        raise _wrong(text, place, "a name in quotes")
    colon = _skip(text, name.end())
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, "a colon")
    return JsonChild(place, json.loads(name[0]), _value(text, _skip(text, colon + 1), depth + 1))


def _skip(text: str, place: int) -> int:
    """The position after white space and comments."""
    match = _TRIVIA.match(text, place)
    return match.end() if match else place


def _wrong(text: str, place: int, wanted: str) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, place) + 1}: should have {wanted}")
