"""The conservative repair of nearly-JSON (agent-threader-v2 §5). Pure."""

import re

# Every alternative that opens also matches to the end of the text, so that an unclosed
# string or comment is scanned once and hostile input costs linear time.
_STRING = rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENT = re.compile(_STRING + rb"|//[^\n]*+|/\*(?:.*?\*/|.*+\Z)", re.DOTALL)
_COMMA = re.compile(_STRING + rb"|,(?=\s*+[}\]])", re.DOTALL)
_OUTER_FENCE = re.compile(rb"\A\s*```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```\s*\Z", re.DOTALL)


def _keep_strings(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b""


def repair(text: bytes) -> bytes:
    """`text` without outer Markdown fences, comments and trailing commas.

    Strings are left as they are. The result need not be JSON.
    """
    fenced = _OUTER_FENCE.match(text)
    if fenced:
        text = fenced[1]
    return _COMMA.sub(_keep_strings, _COMMENT.sub(_keep_strings, text))
