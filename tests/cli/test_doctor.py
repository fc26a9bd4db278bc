"""`cacp doctor` as a user meets it: what is wrong, how to repair it; it changes nothing."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli.doctoring import examined, execute, new_database
from tests.cli.run import cacp
from tests.support.node import free_port


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


@pytest.mark.sqlite
def test_a_sound_node_that_is_down(db: Path) -> None:
    before = hashlib.sha256(db.read_bytes()).digest()
    status, found = examined(db)
    assert status == 0
    assert {check["state"] for check in found.values()} == {"ok"}
    assert "is free" in found["port"]["found"]
    assert hashlib.sha256(db.read_bytes()).digest() == before


def test_wrong_settings(db: Path) -> None:
    status, found = examined(db, durability="MAYBE")
    assert (status, list(found)) == (1, ["settings"])
    assert "CACP_DURABILITY" in found["settings"]["found"]


def test_without_db_it_looks_where_serve_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CACP_DB", raising=False)
    done = cacp("doctor", "--json", port=str(free_port()))
    found = {check["name"]: check["found"] for check in json.loads(done.stdout)["checks"]}
    assert found["database"].startswith("data/cacp.db does not exist yet")


@pytest.mark.sqlite
def test_what_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("x" * 5000)
    status, found = examined(tmp_path / "bad.db")
    assert (status, found["database"]["state"]) == (1, "broken")
    assert examined(tmp_path)[1]["database"]["found"] == f"{tmp_path} is not a file"
    other = tmp_path / "other.db"
    execute(other, "CREATE TABLE t (a)")
    assert "another program" in examined(other)[1]["schema"]["found"]


@pytest.mark.sqlite
def test_people_see_what_is_wrong_and_how_to_mend_it(db: Path) -> None:
    db.chmod(0o666)
    shown = cacp("doctor", db=str(db), port=str(free_port())).stdout
    assert "✓ integrity    the file is sound" in shown
    assert "! permissions" in shown
    assert f"→ chmod 0600 {db}" in shown
