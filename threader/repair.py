"""The conservative repair of nearly-JSON (agent-threader-v2 §5). Pure."""

import re

# Every alternative that opens also matches to the end of the text, so that an unclosed
# string or comment is scanned once and hostile input costs linear time.
_STRING = rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENT = re.compile(_STRING + rb"|//[^\n]*+|/\*(?:.*?\*/|.*+\Z)", re.DOTALL)
_COMMA = re.compile(_STRING + rb"|,(?=\s*+[}\]])", re.DOTALL)
_OPENING = re.compile(rb"```[A-Za-z0-9_-]*+[ \t]*+\r?\n")
_CLOSING = b"```"


def _keep_strings(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b""


def repair(text: bytes) -> bytes:
    """`text` without outer Markdown fences, comments and trailing commas.

    Strings are left as they are. The result need not be JSON.
    """
    return _COMMA.sub(_keep_strings, _COMMENT.sub(_keep_strings, _without_fence(text)))


def _without_fence(text: bytes) -> bytes:
    bare = text.strip()
    opening = _OPENING.match(bare)
    if opening is None or not bare.endswith(_CLOSING, opening.end()):
        return text
    inner = bare[opening.end() : -len(_CLOSING)].rstrip(b" \t")
    return inner.removesuffix(b"\n").removesuffix(b"\r")
