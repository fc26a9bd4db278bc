"""What `cacp doctor` says of the content that a node holds."""

import sqlite3
from contextlib import closing
from pathlib import Path

from cli.doctor_content import content_checks
from server.store.sqlite.migrate import prepare


def test_an_empty_database_is_in_order_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    prepare(tmp_path / "cacp.db")
    with closing(sqlite3.connect(tmp_path / "cacp.db")) as db:
        assert {check.state for check in content_checks(db)} == {"ok"}
        rows = [("p", f"f{number}", "ab", 1, None, b"x") for number in range(4)]
        db.executemany("INSERT INTO file_contents VALUES (?, ?, ?, ?, ?, ?)", rows)
        checks = {check.name: check for check in content_checks(db)}
        assert checks["files"].state == "broken"
        assert checks["files"].finding == (
            "contents that don't match their SHA-256: f0, f1, f2 and 1 more"
        )
