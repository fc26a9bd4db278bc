"""One result of `cacp doctor`, for programs."""

from server.domain.doctor_check import DoctorCheck


def test_programs_get_each_field() -> None:
    check = DoctorCheck("disk", "warning", "0.5 GB free", "free some space")
    assert check.as_json() == {
        "name": "disk",
        "state": "warning",
        "found": "0.5 GB free",
        "mend": "free some space",
    }
