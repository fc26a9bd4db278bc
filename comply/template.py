"""`${variables}` in test files: JSON text before parsing, values after (acpcomply, Test Model).

A variable outside a string stands for JSON, one inside a string for text. Values that are known
only while the test runs (`${sessionId}`, captures) are put in step by step.
"""

import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

Variables = Mapping[str, JsonValue]

_BARE = "\ue000"
"""Starts the string that stands in for a variable outside strings."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\$\{([A-Za-z_]\w*)\}', re.DOTALL)
_NAME = re.compile(r"\$\{([A-Za-z_]\w*)\}")


class UnknownVariable(ValueError):
    """The variable is neither built in nor captured by an earlier step."""

    def __init__(self, name: str, known: Variables) -> None:
        super().__init__(f"${{{name}}} is not set; there are {', '.join(sorted(known))}")
        self.name = name


def to_json(text: str) -> str:
    """The text with each bare variable made a string, so that it parses. Lines stay lines.

    >>> to_json('{"v": ${version}}').replace("\\ue000", "=")
    '{"v": "=version"}'
    """
    return _TOKEN.sub(lambda match: f'"{_BARE}{match[1]}"' if match[1] else match[0], text)


def fill(value: JsonValue, variables: Variables) -> JsonValue:
    """`value` with its variables replaced. Raises UnknownVariable."""
    return _fill(value, variables, pattern=False)


def fill_pattern(value: JsonValue, variables: Variables) -> JsonValue:
    """Like `fill`, for what is expected: there a variable's text stands for itself, not a regex."""
    return _fill(value, variables, pattern=True)


def names(value: JsonValue) -> Iterator[str]:
    """Every variable in `value`, with repetitions."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from names(key)
            yield from names(item)
    elif isinstance(value, list):
        for item in value:
            yield from names(item)
    elif isinstance(value, str):
        if value.startswith(_BARE):
            yield value[len(_BARE) :]
        else:
            yield from _NAME.findall(value)


def literal(value: JsonValue) -> JsonValue:
    """The expectation that this value meets, and objects and lists that contain it."""
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal(item) for item in value]
    return f"^{re.escape(value)}$" if isinstance(value, str) else value


def text_of(value: JsonValue) -> str:
    """A value as text, for strings and regexes: a string as it is, else compact JSON.

    >>> text_of([200.0, "a"])
    '[200,"a"]'
    """
    if isinstance(value, str):
        return value
    return json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":"))


def _whole(value: JsonValue) -> JsonValue:
    """`value` with whole floats as integers, as ECMAScript writes them."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def _fill(value: JsonValue, variables: Variables, *, pattern: bool) -> JsonValue:
    if isinstance(value, dict):
        return {
            text_of(_fill(key, variables, pattern=False)): _fill(item, variables, pattern=pattern)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_fill(item, variables, pattern=pattern) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith(_BARE):
        variable = _look_up(value[len(_BARE) :], variables)
        return literal(variable) if pattern else variable

    def replaced(match: re.Match[str]) -> str:
        text = text_of(_look_up(match[1], variables))
        return re.escape(text) if pattern else text

    return _NAME.sub(replaced, value)


def _look_up(name: str, variables: Variables) -> JsonValue:
    if name not in variables:
        raise UnknownVariable(name, variables)
    return variables[name]
