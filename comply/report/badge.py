"""A badge for a README: how many of the applicable required tests pass."""

from collections.abc import Sequence
from html import escape

from comply.result import Subject, Verdict

_CHARACTER = 6.6
_GOOD, _BAD = "#2f7d32", "#b3261e"


def badge(subjects: Sequence[Subject], label: str = "compliance") -> str:
    """An SVG of one line: `label | 41/41`."""
    counted = [
        result
        for subject in subjects
        for result in subject.results
        if result.required and result.verdict is not Verdict.NA
    ]
    passed = sum(result.verdict is Verdict.PASS for result in counted)
    value = f"{passed}/{len(counted)}"
    left, right = (round(len(text) * _CHARACTER) + 12 for text in (label, value))
    colour = _GOOD if counted and passed == len(counted) else _BAD
    said = escape(f"{label}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
        f' aria-label="{said}"><title>{said}</title>'
        f'<rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14">{escape(label)}</text>'
        f'<text x="{left + right / 2}" y="14">{value}</text></g></svg>\n'
    )
