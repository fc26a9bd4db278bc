"""The schema that the migrations make, and which migrations a database has had (design §3)."""

import hashlib
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

from server.store.migration_file import MigrationFile, in_folder

MIGRATIONS = Path(__file__).parents[1] / "migrations"

RECORD = "table migrations"
"""The table with the names and digests of the migrations that a database has had."""

Elements = frozenset[str]
"""The elements of a schema, such as `table peers`, `column peers.secret`, `index
digests_by_place`."""

LASTING = ("CREATE ", "INSERT ", "DELETE ")
"""The statements of a dump to keep. Its DELETEs reset SQLite's own counters."""

_ELEMENTS = """
SELECT type || ' ' || name FROM sqlite_master
WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite_%'
UNION ALL
SELECT 'column ' || m.name || '.' || c.name
FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'
"""


@dataclass(frozen=True, slots=True)
class Migration(MigrationFile):
    """One file of `migrations/`."""

    def run(self, connection: sqlite3.Connection) -> None:
        """Run its statements, in the caller's transaction."""
        _run(self.sql, connection)


@dataclass(frozen=True, slots=True)
class Repair:
    """The statements that bring an earlier form of a migration to its present form."""

    name: str
    lacks: Elements
    sql: str

    def run(self, connection: sqlite3.Connection) -> None:
        """Run its statements, in the caller's transaction."""
        _run(self.sql, connection)


REPAIRS = (
    Repair(
        "mail_between_nodes",
        frozenset({"column directories.epoch"}),
        # The deleted directories are fetched again from each peer.
        "DELETE FROM directories;"
        " ALTER TABLE directories ADD COLUMN epoch TEXT NOT NULL DEFAULT ''",
    ),
)


class SchemaDamaged(ValueError):
    """The database's tables differ from what its migrations make."""


def migrations(folder: Path | None = None) -> list[Migration]:
    """Every migration of this release, in the order in which they run."""
    return in_folder(Migration, folder or MIGRATIONS)


def elements(connection: sqlite3.Connection) -> Elements:
    """The schema of a database."""
    return frozenset(element for (element,) in connection.execute(_ELEMENTS))


@dataclass(frozen=True, slots=True)
class Made:
    """The result of running the migrations on an empty database."""

    elements: Elements
    statements: tuple[str, ...]
    """The statements that create the present schema at once."""


@cache
def made(known: tuple[Migration, ...]) -> Made:
    """Run the migrations in memory."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        for migration in known:
            migration.run(empty)
        lasting = tuple(
            statement for statement in empty.iterdump() if statement.startswith(LASTING)
        )
        return Made(elements(empty), lasting)


@cache
def additions(known: tuple[Migration, ...]) -> dict[str, Elements]:
    """The elements that each migration, by name, adds to the present schema, without those that a
    later one removes."""
    added: dict[str, Elements] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        before = elements(empty)
        for migration in known:
            migration.run(empty)
            after = elements(empty)
            added[migration.name] = after - before
            before = after
    return {name: those & before for name, those in added.items()}


def deduce(stored: Elements, known: tuple[Migration, ...]) -> tuple[set[str], list[Repair]]:
    """The migrations that a database without a record has had, and the repairs for those that it
    had in an earlier form.

    Raises SchemaDamaged when it has only some of the elements that a migration adds.
    """
    had: set[str] = set()
    repairs: list[Repair] = []
    for name, added in additions(known).items():
        lacking = added - stored
        if lacking == added:
            continue
        if lacking:
            repair = next(
                (
                    candidate
                    for candidate in REPAIRS
                    if candidate.name == name and candidate.lacks == lacking
                ),
                None,
            )
            if repair is None:
                raise SchemaDamaged(
                    f"The database has only a part of migration {name}: {_named(lacking)} missing"
                )
            repairs.append(repair)
        had.add(name)
    return had, repairs


def check(stored: Elements, known: tuple[Migration, ...]) -> None:
    """Raises SchemaDamaged when a schema lacks an element that the migrations make. Additional
    elements, such as an operator's index, are allowed."""
    # Nearly all lack nothing, and each migration's own additions take longer to find.
    if stored >= made(known).elements:
        return
    for name, added in additions(known).items():
        if lacking := added - stored:
            raise SchemaDamaged(f"The database lacks {_named(lacking)}, which {name} made")


def _named(lacking: Iterable[str]) -> str:
    first, *rest = sorted(lacking, key=lambda element: (not element.startswith("table"), element))
    return f"{first} and {len(rest)} more" if rest else first


def _run(sql: str, connection: sqlite3.Connection) -> None:
    """Run the statements, which may call digest_of_parties(BODY) for the digest in a version's
    key."""
    connection.create_function("digest_of_parties", 1, _digest_of_parties, deterministic=True)
    statement = ""
    for part in re.sub(r"--[^\n]*", "", sql).split(";"):
        # The statements within a trigger end with a semicolon too.
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _digest_of_parties(body: str) -> str:
    # SQLite's own functions cut a text at its first NUL.
    parties = sorted({str(party).encode().hex() for party in orjson.loads(body)["parties"]})
    return hashlib.sha256(",".join(parties).encode()).hexdigest()
