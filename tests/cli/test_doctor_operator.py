"""What `cacp doctor` says of the operator key file."""

from contextlib import closing
from pathlib import Path

import pytest

from cli.doctor_operator import operator_check
from server.auth import operator_key
from server.domain.doctor_check import DoctorCheck
from server.store import keys
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare
from tests.cli.run import cacp

pytestmark = pytest.mark.sqlite


@pytest.fixture
def database(tmp_path: Path) -> Path:
    prepare(tmp_path / "cacp.db")
    return tmp_path / "cacp.db"


def check(database: Path) -> DoctorCheck:
    with closing(connect(database)) as db:
        return operator_check(db, database)


def test_each_state_is_named_with_its_remedy(database: Path) -> None:
    assert check(database) == DoctorCheck(
        "operator", "ok", "the next start makes the operator key file"
    )
    cacp("keys", "operator", db=str(database))
    assert check(database).finding == "the operator's key is in cacp.db.operator-key"
    file = operator_key.path_beside(database)
    file.chmod(0o644)
    assert "open to others (mode 0644)" in check(database).finding
    file.chmod(0o600)
    file.write_text(keys.new_operator_key())
    assert "not valid yet" in check(database).finding
    file.unlink()
    lost = check(database)
    assert (lost.state, lost.remedy) == ("warning", "`cacp keys operator` makes it again")
    cacp("keys", "operator", db=str(database))
    assert check(database).state == "ok"
