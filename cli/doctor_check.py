"""One result of `cacp doctor`, as JSON and as lines for a terminal."""

from typing import TYPE_CHECKING, Literal, NamedTuple

from schemas.plain import one_line

if TYPE_CHECKING:
    from rich.text import Text

State = Literal["ok", "warning", "broken"]

SIGNS: dict[State, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}
"""The sign and the colour of each state."""


class DoctorCheck(NamedTuple):
    """`name` says what was checked, `finding` what was found. `remedy` is empty if all is well."""

    name: str
    state: State
    finding: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "name": self.name,
            "state": self.state,
            "found": self.finding,
            "mend": self.remedy,
        }

    def as_text(self) -> "Text":
        """The finding on one line, and the remedy on a second line when there is one."""
        from rich.text import Text

        from cli import views

        sign, tone = SIGNS[self.state]
        text = Text.assemble(
            (f"{sign} ", tone), (f"{self.name:<12} ", "bold"), views.data(self.finding)
        )
        if self.remedy:
            text.append(f"\n  {'':<12} → {one_line(self.remedy)}", tone)
        return text
