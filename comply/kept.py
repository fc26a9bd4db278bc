"""What a report keeps of a test that is over, whatever its subject said: every form of report shows
this and no more."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from comply.matching import Mismatch
from comply.record import Frame, Nearest
from comply.result import Result
from comply.template import text_of

FRAMES = 100
"""How many messages of one test."""
WHOLE = 60_000
"""How many characters they may have together."""
TEXT = 20_000
"""How many one message may have beside them, such as the one that came nearest."""
REASON = 2_000
MISMATCHES = 20


def shorten(result: Result, frames: Sequence[Frame]) -> None:
    """Give a result what is kept of these frames, and bound all else that it says."""
    result.frames = shortened(frames)
    result.reason = cut(result.reason, REASON)
    if result.near is not None:
        expected, message = (_cut(one, TEXT) for one in (result.near.expected, result.near.message))
        result.near = Nearest(expected, message, _fewer(result.near.mismatches))


def shortened(frames: Sequence[Frame]) -> list[Frame]:
    """The first and the last of many, with a note between them, and long ones cut."""
    if (gone := len(frames) - FRAMES) > 0:
        first, last = frames[: FRAMES // 2], frames[-FRAMES // 2 :]
        note = Frame(last[0].at, False, "note", f"… {gone} more messages")
        frames = [*first, note, *last]
    width = _width([len(text_of(one.message)) for one in frames], WHOLE)
    return [replace(one, message=_cut(one.message, width)) for one in frames]


def cut(text: str, width: int) -> str:
    """
    >>> cut("abcdef", 4)
    'abcd… 2 more characters'
    """
    return text if len(text) <= width else f"{text[:width]}… {len(text) - width} more characters"


def _width(lengths: Sequence[int], whole: int) -> int:
    """The width to which all must be cut so that together they have no more than `whole`: what
    short ones leave goes to long ones.

    >>> _width([10, 10, 500, 900], 220)
    100
    """
    left = whole
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return whole


def _cut(message: JsonValue, width: int) -> JsonValue:
    text = text_of(message)
    return message if len(text) <= width else cut(text, width)


def _fewer(mismatches: tuple[Mismatch, ...]) -> tuple[Mismatch, ...]:
    kept = [Mismatch(cut(one.path, REASON), cut(one.problem, REASON)) for one in mismatches]
    more = len(kept) - MISMATCHES
    return (*kept[:MISMATCHES], *([Mismatch("…", f"{more} more")] if more > 0 else []))
