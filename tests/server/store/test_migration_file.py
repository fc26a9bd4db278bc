"""The files of migrations."""

import hashlib
from pathlib import Path

import pytest

from server.store.migration_file import MigrationFile, in_folder


def test_they_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "0002_second_thing.sql").write_text("SELECT 2;")
    (tmp_path / "0001_first.sql").write_text("SELECT 1;")
    (tmp_path / "notes.sql").write_text("")

    assert in_folder(MigrationFile, tmp_path) == [
        MigrationFile(1, "first", "SELECT 1;"),
        MigrationFile(2, "second_thing", "SELECT 2;"),
    ]


def test_its_digest_is_that_of_its_text() -> None:
    assert MigrationFile(1, "a", "é").digest == hashlib.sha256("é".encode()).hexdigest()


@pytest.mark.parametrize(
    ("sql", "needs"),
    [
        ("-- needs: first\nSELECT 1;", "first"),
        ("-- needs: first_of_all\n-- More.\n", "first_of_all"),
        ("-- More.\n-- needs: first\n", None),
        ("SELECT 1;", None),
    ],
)
def test_its_first_line_says_what_it_needs(sql: str, needs: str | None) -> None:
    assert MigrationFile(2, "second", sql).needs == needs
