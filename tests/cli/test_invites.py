"""`cacp invite` on a real file."""

import json
from pathlib import Path

from tests.cli.run import cacp


def test_an_invite_is_made_listed_and_revoked(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    assert cacp("keys", "create", "a", "--repo", "r", "--create", db=db).exit_code == 0
    made = cacp("invite", "create", "--hours", "2", db=db)
    assert made.exit_code == 0
    invite, _, secret = made.stdout.strip().partition(".")
    assert len(secret) >= 24
    listed = cacp("invite", "list", "--json", db=db)
    [one] = json.loads(listed.stdout)
    assert (one["inviteId"], one["usedBy"], one["revokedAt"]) == (invite, None, None)
    assert secret not in listed.stdout
    assert cacp("invite", "revoke", invite, db=db).exit_code == 0
    again = cacp("invite", "revoke", invite, db=db)
    assert (again.exit_code, "not an open invite" in again.stderr) == (1, True)
    assert invite in cacp("invite", "list", db=db).stdout


def test_the_code_is_part_of_the_json(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    made = json.loads(cacp("invite", "create", "--json", db=db).stdout)
    assert made["code"].startswith(made["inviteId"] + ".")
