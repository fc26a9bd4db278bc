"""A badge for a README: how many of the required tests pass, and how many are untested."""

from collections.abc import Sequence
from html import escape

from comply.result import Subject, Tally, tally

_CHARACTER = 6.6
_GOOD, _BAD, _PARTLY, _NONE = "#2f7d32", "#b3261e", "#8a5a00", "#555"


def badge(subjects: Sequence[Subject], label: str = "compliance") -> str:
    """An SVG of one line: `label | 41/41`.

    Green: every required test passes. Red: one fails, or a message breaks the protocol. Brown: none
    fails, but some were not tested. Grey: none was.
    """
    counts = tally(subjects)
    value, colour = value_of(counts), colour_of(counts)
    left, right = (round(len(text) * _CHARACTER) + 12 for text in (label, value))
    whole = escape(f"{label}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
        f' aria-label="{whole}"><title>{whole}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14">{value}</text></g></svg>\n'
    )


def value_of(counts: Tally) -> str:
    """
    >>> value_of(Tally(24, 3, 0))
    '3/24, 21 not tested'
    """
    if not counts.passed + counts.failed + counts.breaking:
        return "not tested"
    missing = f", {counts.untested} not tested" if counts.untested else ""
    broken = f", {counts.breaking} broken" if counts.breaking else ""
    return f"{counts.passed}/{counts.required}{missing}{broken}"


def colour_of(counts: Tally) -> str:
    if counts.failed or counts.breaking:
        return _BAD
    if not counts.passed:
        return _NONE
    return _PARTLY if counts.untested else _GOOD
