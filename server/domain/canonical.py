"""Canonical JSON (RFC 8785), and the digest to which an agreement is bound (design §5)."""

import hashlib
import re
from typing import Any

import orjson
import rfc8785

from server.domain.errors import InvalidInput

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 64
"""The most levels of nesting in content; what contains the content may have more."""
PATH_SHOWN = 500
"""Characters of a path in an error: names in content may be as long as the body."""


def digest(content: Any, where: str = "content") -> str:
    """SHA-256, hex, of the canonical JSON of `content`.

    Raises InvalidInput with the path of a value that has no canonical form: a number beyond
    2^53 - 1, or nesting deeper than 64.
    """
    return hashlib.sha256(canonical(content, where)).hexdigest()


def canonical(content: Any, where: str = "content", depth: int = MAX_DEPTH) -> bytes:
    """The canonical JSON of `content` with at most `depth` levels; raises as `digest` does."""
    try:
        # For plain content orjson's sorted output is RFC 8785's, at a fiftieth of its cost.
        text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        text = b""
    if _is_surely_plain(text, depth) or (check(content, where, depth) and text):
        return text
    return rfc8785.dumps(content)


_SUSPECT = re.compile(rb"[:,\[]-?(?:9\d{15}|\d{17}|\d+[.eE])")
"""Matches a float, or a number near 2^53 or beyond; a match within a string does no harm. Stamps
have 16 digits and don't match."""


def _is_surely_plain(text: bytes, depth: int) -> bool:
    """Whether the sorted JSON is certainly canonical, as for most content, without looking at the
    content itself."""
    return (
        text.isascii()
        and text.count(b"{") + text.count(b"[") <= depth
        and text[:1] in (b"{", b"[", b'"')
        and _SUSPECT.search(text) is None
    )


def check(content: Any, where: str, depth: int = MAX_DEPTH) -> bool:
    """Whether orjson's sorted output is the canonical one; raises as `digest` does."""
    try:
        return _is_plain(content, depth)
    except _NoCanonicalForm as error:
        path = (where + "".join(reversed(error.steps)))[:PATH_SHOWN]
        problem = str(error) or f"is nested deeper than {depth} levels"
        raise InvalidInput(f"{path} {problem}", path=path) from None


class _NoCanonicalForm(Exception):
    """Content without a canonical form; an empty problem means too deep. The path is collected
    while unwinding, so that only a refusal pays for it."""

    def __init__(self, problem: str = "") -> None:
        super().__init__(problem)
        self.steps: list[str] = []


def _is_plain(value: Any, depth: int) -> bool:
    """Whether value holds no float and no key beyond U+D7FF, which orjson and RFC 8785 write
    differently."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return True
        raise _NoCanonicalForm(f"is {value}: an integer that exceeds 2^53 - 1; send it as a string")
    if kind is float:
        if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return False
        # An integer beyond 2^64 is parsed as a float, which has lost its last digits.
        raise _NoCanonicalForm(
            f"is {value}: a number beyond 2^53 - 1 may have lost digits; send it as a string"
        )
    if depth == 0:
        raise _NoCanonicalForm
    is_object = kind is dict
    step: Any = None
    plain = True
    try:
        for step, item in value.items() if is_object else enumerate(value):
            if is_object and not step.isascii() and max(step) > "\ud7ff":
                plain = False
            if not _is_plain(item, depth - 1):
                plain = False
    except _NoCanonicalForm as error:
        error.steps.append(f".{step}" if is_object else f"[{step}]")
        raise
    return plain
