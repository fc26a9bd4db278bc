"""Describes validation errors for the sender of an input: in the terms of JSON, not of Python."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ErrorType

from schemas.base import COMMIT_PATTERN

_STRING = "should be a string"
_INTEGER = "should be a whole number"
_NUMBER = "should be a number"
_BOOLEAN = "should be true or false"
_LIST = "should be a list"
_OBJECT = "should be an object"

NOT_TEXT = frozenset({_INTEGER, _NUMBER, _BOOLEAN, _LIST, _OBJECT})
"""The problems of a string in place of another type."""

_WORDS = {
    "missing": "required",
    "extra_forbidden": "is not known here",
    "none_required": "should be left out",
    "string_type": _STRING,
    "string_unicode": "should be valid Unicode",
    "string_too_short": "should have at least {min_length:d} characters",
    "string_too_long": "should have at most {max_length:d} characters",
    "string_pattern_mismatch": "should match {pattern}",
    "literal_error": "should be {expected}",
    "enum": "should be {expected}",
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": "is too large a number",
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "should be a finite number",
    "greater_than": "should be more than {gt}",
    "greater_than_equal": "should be {ge} or more",
    "less_than": "should be less than {lt}",
    "less_than_equal": "should be {le} or less",
    "multiple_of": "should be a multiple of {multiple_of}",
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "set_type": _LIST,
    "frozen_set_type": _LIST,
    "iterable_type": _LIST,
    "too_short": "should have at least {min_length:d} items",
    "too_long": "should have at most {max_length:d} items",
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "dataclass_exact_type": _OBJECT,
    "json_type": "should be a string that holds JSON",
    "json_invalid": "is not JSON: {error}",
    "recursion_loop": "refers to itself",
    "union_tag_invalid": "should have the member {discriminator}, one of {expected_tags}",
    "union_tag_not_found": "should have the member {discriminator}",
}
_PATTERNS = {
    COMMIT_PATTERN: "should be the whole hash of a commit, as `git rev-parse HEAD` prints it",
}
"""Patterns that say less than words."""
_OWN = frozenset({"value_error", "assertion_error"})
"""Errors with messages of this project's own models."""
FROM_PYDANTIC = frozenset(get_args(ErrorType)) - _OWN
_SINGULAR = re.compile(r"\b1 (character|item)s\b")
_PYTHON = {"True": "true", "False": "false", "None": "null"}


def problem_of(item: ErrorDetails) -> str:
    """One of a ValidationError's errors as a predicate: "should be a list", "required"."""
    kind = item["type"]
    if kind not in FROM_PYDANTIC:
        message = item["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return message if message[1:2].isupper() else message[:1].lower() + message[1:]
    words = _WORDS.get(kind)
    if words is None:
        return "is not a valid value"
    context = item.get("ctx", {})
    known = _PATTERNS.get(context.get("pattern", ""))
    return known or _SINGULAR.sub(r"1 \1", words.format(**_in_json(context)))


def problem_text(item: ErrorDetails, whole: str) -> str:
    """The same with where it is: "tasks.0.id: required". `whole` names the input itself."""
    return f"{'.'.join(map(str, item['loc'])) or whole}: {problem_of(item)}"


def _in_json(ctx: Mapping[str, Any]) -> dict[str, Any]:
    """Context values in JSON notation: a instead of 'a', true instead of True."""
    shown = dict(ctx)
    for name in ("expected", "expected_tags", "discriminator"):
        if name in shown:
            bare = str(shown[name]).replace("'", "")
            shown[name] = re.sub(r"\b(True|False|None)\b", lambda match: _PYTHON[match[0]], bare)
    return shown
