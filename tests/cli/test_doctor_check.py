"""One result of `cacp doctor`, for people."""

from cli.doctor_check import as_text
from server.domain.doctor_check import DoctorCheck


def test_people_get_a_line_and_the_remedy_below_it() -> None:
    assert as_text(DoctorCheck("disk", "ok", "9.0 GB free")).plain == "✓ disk         9.0 GB free"
    problem = as_text(DoctorCheck("disk", "broken", "0.0 GB free", "free some space")).plain
    assert problem.splitlines() == [
        "✗ disk         0.0 GB free",
        "               → free some space",
    ]
