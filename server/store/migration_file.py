"""The files of migrations: SQLite's, and their counterparts for PostgreSQL.

A migration is identified by name and content, never by number: merging branches renumbered some, so
a number may have meant several migrations.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_NEEDS = re.compile(r"\A-- needs: (\w+)\n")


@dataclass(frozen=True, slots=True)
class MigrationFile:
    """One file. Its number is its position in the order, its name identifies it."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """SHA-256 of its text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def needs(self) -> str | None:
        """The migration that a release must know to run on a database which has had this one, as
        its first line says: `-- needs: NAME`. None without such a line."""
        header = _NEEDS.match(self.sql)
        return header[1] if header else None


M = TypeVar("M", bound=MigrationFile)


def in_folder(kind: type[M], folder: Path) -> list[M]:
    """Every migration of a folder, in the order in which they run."""
    return [
        kind(int(file.stem.split("_")[0]), file.stem.split("_", 1)[1], file.read_text())
        for file in sorted(folder.glob("[0-9]*.sql"))
    ]
