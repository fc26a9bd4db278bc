"""One result of `cacp doctor`, which the page shows too where the node can check it itself."""

from typing import Literal, NamedTuple

State = Literal["ok", "warning", "broken"]


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
