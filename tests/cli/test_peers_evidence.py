"""`cacp peers evidence` and `note` where there is nothing; tests/byzantine has nodes that lie."""

from pathlib import Path

from tests.cli.run import cacp

BETA = "aid://example.com/beta@1.0.0"


def test_without_evidence_it_says_where_to_look(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    shown = cacp("peers", "evidence", BETA, db=db)
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert f"no evidence against {BETA}" in shown.stderr
    assert cacp("peers", "evidence", BETA, "--json", db=db).stdout == "[]\n"
    noted = cacp("peers", "note", BETA, db=db)
    assert (noted.exit_code, "nothing new to note" in noted.stderr) == (1, True)
