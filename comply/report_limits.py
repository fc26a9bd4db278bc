"""Bounds what reports keep of a test, however much its subject sent. Every report form shows the
same."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from comply.matching import Mismatch
from comply.record import Frame, Nearest
from comply.result import CaseResult
from comply.template import text_of

FRAMES = 100
"""The most messages kept of one test."""
WHOLE = 60_000
"""The most characters of these messages together."""
TEXT = 20_000
"""The most characters of any other single message, such as the nearest one."""
REASON = 2_000
MISMATCHES = 20


def shorten(result: CaseResult, frames: Sequence[Frame]) -> None:
    """Keep a bounded part of these frames in the result, and bound its other texts."""
    result.frames = shortened(frames)
    result.reason = cut(result.reason, REASON)
    if result.near is not None:
        expected, message = (
            _cut(value, TEXT) for value in (result.near.expected, result.near.message)
        )
        result.near = Nearest(expected, message, _fewer(result.near.mismatches))


def shortened(frames: Sequence[Frame]) -> list[Frame]:
    """The first and the last frames with a note between them, long messages cut."""
    if (gone := len(frames) - FRAMES) > 0:
        first, last = frames[: FRAMES // 2], frames[-FRAMES // 2 :]
        note = Frame(last[0].at, False, "note", f"… {gone} more messages")
        frames = [*first, note, *last]
    width = _width([len(text_of(frame.message)) for frame in frames], WHOLE)
    return [replace(frame, message=_cut(frame.message, width)) for frame in frames]


def cut(text: str, width: int) -> str:
    """
    >>> cut("abcdef", 4)
    'abcd… 2 more characters'
    """
    return text if len(text) <= width else f"{text[:width]}… {len(text) - width} more characters"


def _width(lengths: Sequence[int], whole: int) -> int:
    """The width to cut each text to so that all together have at most `whole` characters. What
    short texts leave over goes to long ones.

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
    kept = [
        Mismatch(cut(mismatch.path, REASON), cut(mismatch.problem, REASON))
        for mismatch in mismatches
    ]
    more = len(kept) - MISMATCHES
    return (*kept[:MISMATCHES], *([Mismatch("…", f"{more} more")] if more > 0 else []))
