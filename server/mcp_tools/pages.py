"""Long answers of tools in pages, so that no answer fills a model's context.

A page ends at the end of a line where it can. A fence that is open at its end is closed, and opened
again with its label on the next page, so agents' text is enclosed on every page. The mark of the
next page holds the offset and a digest of everything before it: a text that has changed there
meanwhile is shown from its beginning again, instead of with a gap that nobody sees.
"""

import re
from hashlib import sha256
from typing import NamedTuple

from server.domain.untrusted import FENCE, MARGIN

PAGE_MAX = 20_000
"""Characters of an answer, with everything that is said about further pages."""
NOTE_MAX = 1_500
"""Characters kept free for the note about the rest, which `calls` adds to a page."""

CONTINUED = "[Continued.]"
IN_A_LINE = "[Continued in the middle of a line.]"
CHANGED = "[This has changed since the page before: here it is from its beginning.]"

_MARK = re.compile(r"([0-9]{1,12})\.([0-9a-f]{8})")
_OPENING = f"{FENCE}untrusted\n"


class InvalidMark(Exception):
    """No page has given this mark."""


class Page(NamedTuple):
    """A page, and the mark of the next one; None for the last page."""

    text: str
    mark: str | None


def page(whole: str, mark: str | None, limit: int = PAGE_MAX) -> Page:
    """The page of `whole` that begins at `mark`, in at most `limit` characters.

    Raises InvalidMark.
    """
    start = 0 if mark is None else _start(whole, mark)
    if start is None:
        beginning = page(whole, None, limit - len(CHANGED) - 1)
        return Page(f"{CHANGED}\n{beginning.text}", beginning.mark)
    head = _head(whole, start) if start else ""
    tail = f"\n{FENCE}"
    if len(head) + len(whole) - start <= limit:
        return Page(head + whole[start:], None)
    end = _end(whole, start, start + limit - len(head) - len(tail))
    body = whole[start:end]
    if _open_label(whole, end):
        body = body.removesuffix("\n") + tail
    return Page(head + body, f"{end}.{_digest(whole[:end])}")


def _start(whole: str, mark: str) -> int | None:
    """The offset at which a page begins; None when the text before it has changed."""
    match = _MARK.fullmatch(mark)
    if match is None:
        raise InvalidMark
    start = int(match[1])
    if start >= len(whole) or _digest(whole[:start]) != match[2]:
        return None
    return start


def _digest(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:8]


def _head(whole: str, start: int) -> str:
    """What a page that begins at `start` shows before it."""
    broken = whole[start - 1] != "\n"
    label = _open_label(whole, start)
    fence = f"{label}\n{_OPENING}{MARGIN if broken else ''}" if label else ""
    return f"{IN_A_LINE if broken else CONTINUED}\n{fence}"


def _open_label(whole: str, at: int) -> str:
    """The label of the fence that is open at an offset; empty outside fences."""
    opening = whole.rfind(f"\n{_OPENING}", 0, at)
    if opening < 0 or whole.find(f"\n{FENCE}\n", opening + 1, at) > -1 or at <= opening + 1:
        return ""
    return whole[whole.rfind("\n", 0, opening) + 1 : opening]


def _end(whole: str, start: int, end: int) -> int:
    """Where a page that may reach to `end` ends: after a line if there is one, else in a line. It
    also ends in a fenced line that would leave it half empty."""
    line = whole.rfind("\n", start, end) + 1
    if line > start and whole.startswith(_OPENING, line):
        # Not between a fence and its label.
        line = whole.rfind("\n", start, line - 1) + 1
    elif 2 * (line - start) < end - start and _open_label(whole, end):
        return end
    if line > start:
        return line
    if _open_label(whole, end):
        return end
    # In a line of the node's own: never within a code span, whose text is another agent's.
    begin = whole.rfind("\n", 0, start) + 1
    for place in range(end, start, -1):
        if whole[place - 1] == " " and whole.count("`", begin, place) % 2 == 0:
            return place
    return end
