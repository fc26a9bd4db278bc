"""`cacp peers ban`, `unban` and `bans`; tests/scenarios shows what a ban does."""

import json
from pathlib import Path

import pytest

from tests.cli.run import cacp

MALLORY = "aid://example.com/mallory@1.0.0"


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=path)
    return path


def test_a_ban_is_listed_until_it_is_lifted(db: str) -> None:
    assert cacp("peers", "bans", db=db).stderr.startswith("There are no bans")
    banned = cacp("peers", "ban", MALLORY, "--reason", "stolen\nkey", db=db)
    assert banned.stderr == f"{MALLORY} is banned.\n"
    [row] = json.loads(cacp("peers", "bans", "--json", db=db).stdout)
    assert (row["agentId"], row["holds"]) == ("aid://example.com/mallory", True)
    assert row["reason"] == "stolen key"
    shown = cacp("peers", "bans", db=db).stdout.splitlines()
    assert shown[0].split() == ["AGENT", "BY", "SINCE", "HOLDS", "REASON"]
    assert " yes " in shown[1]
    assert "may register again" in cacp("peers", "unban", MALLORY, db=db).stderr
    assert json.loads(cacp("peers", "bans", "--json", db=db).stdout) == []


def test_what_can_not_be_banned_or_unbanned_is_refused(db: str) -> None:
    unknown = cacp("peers", "unban", MALLORY, db=db)
    assert (unknown.exit_code, "is not banned" in unknown.stderr) == (1, True)
    itself = cacp("peers", "ban", "aid://localhost/local@2.0.0", db=db)
    assert (itself.exit_code, "is this node itself" in itself.stderr) == (1, True)
