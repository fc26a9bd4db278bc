"""A result of `cacp doctor` as lines for a terminal."""

from typing import TYPE_CHECKING

from schemas.plain import one_line
from server.domain.doctor_check import DoctorCheck, State

if TYPE_CHECKING:
    from rich.text import Text

SIGNS: dict[State, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}
"""The sign and the colour of each state."""


def as_text(check: DoctorCheck) -> "Text":
    """The finding on one line, and the remedy on a second line when there is one."""
    from rich.text import Text

    from cli import views

    sign, tone = SIGNS[check.state]
    text = Text.assemble(
        (f"{sign} ", tone), (f"{check.name:<12} ", "bold"), views.data(check.finding)
    )
    if check.remedy:
        text.append(f"\n  {'':<12} → {one_line(check.remedy)}", tone)
    return text
