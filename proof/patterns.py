"""Regular expressions of JSON Schema (ECMA-262) as Python reads them, to make texts by."""

import re
import warnings
from collections.abc import Iterable, Mapping

import regex

_CLASSES: Mapping[str, str] = {
    "L": "A-Za-zÀ-ÖØ-öø-ÿ",
    "Lu": "A-ZÀ-ÖØ-Þ",
    "Ll": "a-zß-öø-ÿ",
    "N": "0-9",
    "Nd": "0-9",
    "M": "\u0300-\u0304",
    "P": "!-#%-*,-/:;?@_",
    "S": "$+<=>^`|~",
    "Z": " ",
    "Zs": " ",
    "ASCII": "\x20-\x7e",
    "Alpha": "A-Za-z",
    "Alphabetic": "A-Za-z",
    "Letter": "A-Za-z",
    "Alnum": "A-Za-z0-9",
    "Digit": "0-9",
    "Punct": "!-#%-*,-/:;?@_",
    "Graph": "!-~",
    "Print": " -~",
    "Han": "\u4e00-\u4e10",
    "Hiragana": "\u3041-\u3050",
    "Katakana": "\u30a1-\u30b0",
}
"""Some characters of each class of Unicode: a part is enough to make texts of."""
_ESCAPE = re.compile(r"\\p\{(?:\w+=)?(\w+)\}|\\(.)|\(\?<(?=[A-Za-z_])|([\[\]])", re.DOTALL)
_REPEATED = re.compile(r"\^?((?:\[(?:[^\]\\]|\\.)+\]|\\[wd]|\.))[+*]\$?")
LENGTH_MAX = 2000
PADDING = "a"
SEARCH_SECONDS = 0.1


def python_pattern(pattern: str) -> str | None:
    """An expression whose texts are, as a rule, among those of `pattern`; None if there is none."""
    if len(pattern) > LENGTH_MAX:
        return None
    text, place, inside = "", 0, False
    for match in _ESCAPE.finditer(pattern):
        text += pattern[place : match.start()]
        place = match.end()
        name, escaped, bracket = match.groups()
        if name is not None:
            if name not in _CLASSES:
                return None
            text += _CLASSES[name] if inside else f"[{_CLASSES[name]}]"
        elif bracket is not None and escaped is None:
            inside = bracket == "[" if bracket == "[" or inside else inside
            text += bracket
        elif escaped is None and bracket is None:
            text += "(?P<"
        else:
            text += match[0]
    text += pattern[place:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return None
    return text


def of_length(pattern: str, least: int, most: int | None) -> str:
    """A pattern that is one class of characters, repeated, with the number of them; else itself.

    >>> of_length("^[a-z]+$", 3, 5)
    '[a-z]{3,5}'
    """
    match = _REPEATED.fullmatch(pattern)
    if match is None:
        return pattern
    return f"{match[1]}{{{max(least, 1)},{'' if most is None else most}}}"


def sized(text: str, patterns: Iterable[str], least: int, most: int | None) -> str | None:
    """A text that is made as long as it must be, if it then is one of all patterns; else None."""
    longer = text + (text[-1:] or PADDING) * (least - len(text))
    padded = text + PADDING * (least - len(text))
    for candidate in (longer[:most], padded[:most]):
        if len(candidate) >= least and all(is_in(pattern, candidate) for pattern in patterns):
            return candidate
    return None


def is_in(pattern: str, text: str) -> bool:
    """Whether a text has a match of a pattern, as far as that can be found in a moment."""
    try:
        return regex.search(pattern, text, timeout=SEARCH_SECONDS) is not None
    except (TimeoutError, regex.error):
        return False
