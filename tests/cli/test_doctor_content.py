"""What `cacp doctor` says of the content that a node holds."""

import sqlite3
from contextlib import closing
from pathlib import Path

from cli.doctor_content import content_checks
from server.store.migrate import prepare


def test_an_empty_database_is_in_order_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    prepare(tmp_path / "cacp.db")
    with closing(sqlite3.connect(tmp_path / "cacp.db")) as db:
        assert {state for _, state, _, _ in content_checks(db)} == {"ok"}
        rows = [("p", f"f{number}", "ab", 1, None, b"x") for number in range(4)]
        db.executemany("INSERT INTO file_contents VALUES (?, ?, ?, ?, ?, ?)", rows)
        found = {name: (state, text) for name, state, text, _ in content_checks(db)}
        assert found["files"] == ("broken", "not what their SHA-256 says: f0, f1, f2 and 1 more")
