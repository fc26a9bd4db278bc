"""JSON values as text: for equality that tells 1 from true, and for readers."""

import json
from typing import Any

import orjson

TEXT_MAX = 200
PATH_MAX = 300


def text_of(value: Any) -> str:
    """A text that is the same for equal values, of any JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        # It knows no halves of characters, no numbers beyond 2^64, and no deep nesting.
        try:
            return json.dumps(value, sort_keys=True)
        except RecursionError:
            return "…"


def value_key(value: Any) -> str:
    """A text that is the same for values that a schema takes for equal: 1 and 1.0 are, 1 and true
    are not."""
    if isinstance(value, str):
        return f'"{value}'
    try:
        return text_of(_with_whole(value))
    except RecursionError:
        return text_of(value)


def _with_whole(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_with_whole(part) for part in value]
    if isinstance(value, dict):
        return {name: _with_whole(part) for name, part in value.items()}
    return value


def same(before: Any, after: Any) -> bool:
    """Whether two values are certainly the same JSON."""
    if not isinstance(before, dict | list) or not isinstance(after, dict | list):
        return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)
    try:
        # Python takes 1 and true for equal, so the texts are compared too.
        return before == after and text_of(before) == text_of(after)
    except RecursionError:
        return False


def path_text(path: tuple[str | int, ...]) -> str:
    """A JSON path, cut to `PATH_MAX` characters.

    >>> path_text(("responses", "200", "content", "application/json", "tags", 0))
    '$.responses["200"].content["application/json"].tags[0]'
    """
    text = "$"
    for step in path:
        if isinstance(step, str) and step[:PATH_MAX].isidentifier() and step.isascii():
            text += f".{step[:PATH_MAX]}"
        else:
            cut = step[:PATH_MAX] if isinstance(step, str) else step
            text += f"[{json.dumps(cut, ensure_ascii=False)}]"
        if len(text) > PATH_MAX:
            return f"{text[: PATH_MAX - 1]}…"
    return text


class _ShownNull:
    """A JSON null to show, where None stands for no value."""


NULL = _ShownNull()


def shown(value: Any) -> Any:
    """A value as `short_text` takes it."""
    return NULL if value is None else value


def short_text(value: Any) -> str | None:
    """The JSON of a value, cut to `TEXT_MAX` characters; None for no value."""
    if value is None:
        return None
    text = "null" if value is NULL else _json(value)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _json(value: Any) -> str:
    """The beginning of a value's JSON, at least."""
    if isinstance(value, str):
        return json.dumps(value[:TEXT_MAX], ensure_ascii=False)
    if isinstance(value, dict) and len(value) > TEXT_MAX:
        value = dict(list(value.items())[:TEXT_MAX])
    if isinstance(value, list):
        value = value[:TEXT_MAX]
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "…"
