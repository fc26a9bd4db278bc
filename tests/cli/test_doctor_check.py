"""One result of `cacp doctor`, for programs and for people."""

from cli.doctor_check import DoctorCheck


def test_programs_get_each_field() -> None:
    check = DoctorCheck("disk", "warning", "0.5 GB free", "free some space")
    assert check.as_json() == {
        "name": "disk",
        "state": "warning",
        "found": "0.5 GB free",
        "mend": "free some space",
    }


def test_people_get_a_line_and_the_remedy_below_it() -> None:
    assert DoctorCheck("disk", "ok", "9.0 GB free").as_text().plain == "✓ disk         9.0 GB free"
    problem = DoctorCheck("disk", "broken", "0.0 GB free", "free some space").as_text().plain
    assert problem.splitlines() == [
        "✗ disk         0.0 GB free",
        "               → free some space",
    ]
