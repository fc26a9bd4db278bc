"""What `cacp doctor` says of variables, clock and permissions."""

from pathlib import Path

import pytest

from cli.doctor_machine import clock_check
from tests.cli.doctoring import examined, execute, new_database

pytestmark = pytest.mark.sqlite


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_open_permissions_and_a_clock_that_is_behind_are_warnings(db: Path) -> None:
    db.chmod(0o644)
    execute(
        db,
        "INSERT INTO projects (project_id, name, objective, status, agreement_policy, created_at,"
        " stamp) VALUES ('p', 'n', 'o', 'planning', 'any', 1, 4000000000000000)",
    )
    status, found = examined(db)
    assert status == 0
    assert found["permissions"]["state"] == "warning"
    assert found["permissions"]["mend"] == f"chmod 0600 {db}"
    assert found["stamps"]["state"] == "warning"


@pytest.mark.parametrize(
    ("now", "state"), [(0, "broken"), (1_800_000_000, "ok"), (5_000_000_000, "broken")]
)
def test_the_clock(now: float, state: str) -> None:
    assert clock_check(now).state == state


def test_a_misspelt_variable(db: Path) -> None:
    status, found = examined(db, prot="9000")
    assert (status, found["variables"]["state"]) == (0, "warning")
    assert "CACP_PROT" in found["variables"]["found"]
    assert found["variables"]["mend"] == "did you mean CACP_PORT?"


def test_before_the_first_start(tmp_path: Path) -> None:
    status, found = examined(tmp_path / "deep" / "none.db")
    assert status == 0
    assert "the first start creates it" in found["database"]["found"]
    assert list(tmp_path.iterdir()) == []
