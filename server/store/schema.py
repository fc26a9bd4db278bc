"""The schema that the migrations make, and which of them a database has had (design §3).

Migrations are told by name and content, never by number: numbers were given anew when branches
met, so that one number has meant several things.
"""

import hashlib
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orjson

MIGRATIONS = Path(__file__).parent / "migrations"

RECORD = "table migrations"
"""Where a database keeps the names and digests of the migrations that it has had."""

Elements = frozenset[str]
"""What a schema consists of: `table peers`, `column peers.secret`, `index digests_by_place`."""

LASTING = ("CREATE ", "INSERT ", "DELETE ")
"""What of a dump makes anything: it deletes where SQLite counts, to set that too."""

_ELEMENTS = """
SELECT type || ' ' || name FROM sqlite_master
WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite_%'
UNION ALL
SELECT 'column ' || m.name || '.' || c.name
FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`. Its number is the place in which it runs, its name what it is."""

    number: int
    name: str
    sql: str

    @property
    def digest(self) -> str:
        """SHA-256 of its text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def run(self, connection: sqlite3.Connection) -> None:
        """Run its statements, in the caller's transaction."""
        _run(self.sql, connection)


@dataclass(frozen=True, slots=True)
class Repair:
    """What brings a database that had an earlier form of a migration to the one of today."""

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
        # What is forgotten here is heard again from each peer, whose epoch it was.
        "DELETE FROM directories;"
        " ALTER TABLE directories ADD COLUMN epoch TEXT NOT NULL DEFAULT ''",
    ),
)


class Damaged(ValueError):
    """A database whose tables are not what its migrations made."""


def migrations(folder: Path | None = None) -> list[Migration]:
    """Every migration of this release, in the order in which they run."""
    return [
        Migration(int(file.stem.split("_")[0]), file.stem.split("_", 1)[1], file.read_text())
        for file in sorted((folder or MIGRATIONS).glob("[0-9]*.sql"))
    ]


def elements(connection: sqlite3.Connection) -> Elements:
    """The schema of a database."""
    return frozenset(one for (one,) in connection.execute(_ELEMENTS))


@dataclass(frozen=True, slots=True)
class Made:
    """What the migrations make of an empty database."""

    additions: dict[str, Elements]
    """What each adds to the schema of today, by its name: what a later one takes away again is
    nothing that a database must have."""
    statements: tuple[str, ...]
    """Make the same at once."""


@cache
def made(known: tuple[Migration, ...]) -> Made:
    """Run the migrations in memory."""
    added: dict[str, Elements] = {}
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as empty:
        before = elements(empty)
        for migration in known:
            migration.run(empty)
            after = elements(empty)
            added[migration.name] = after - before
            before = after
        lasting = tuple(one for one in empty.iterdump() if one.startswith(LASTING))
    return Made({name: those & before for name, those in added.items()}, lasting)


def deduce(found: Elements, known: tuple[Migration, ...]) -> tuple[set[str], list[Repair]]:
    """Which migrations a database has had that keeps no record of them, and how to bring those to
    today's form of which it had another.

    Raises Damaged when it has some of what a migration adds and not the rest.
    """
    had: set[str] = set()
    repairs: list[Repair] = []
    for name, added in made(known).additions.items():
        lacking = added - found
        if lacking == added:
            continue
        if lacking:
            repair = next(
                (one for one in REPAIRS if one.name == name and one.lacks == lacking), None
            )
            if repair is None:
                raise Damaged(f"The database has only a part of {name}: {_named(lacking)} missing")
            repairs.append(repair)
        had.add(name)
    return had, repairs


def check(found: Elements, known: tuple[Migration, ...]) -> None:
    """Raises Damaged when a schema lacks anything that the migrations make. What an operator has
    added, an index say, is no harm."""
    for name, added in made(known).additions.items():
        if lacking := added - found:
            raise Damaged(f"The database lacks {_named(lacking)}, which {name} made")


def _named(lacking: Iterable[str]) -> str:
    first, *rest = sorted(lacking, key=lambda one: (not one.startswith("table"), one))
    return f"{first} and {len(rest)} more" if rest else first


def _run(sql: str, connection: sqlite3.Connection) -> None:
    """Statements may call digest_of_parties(body of a version): what its key says of them."""
    connection.create_function("digest_of_parties", 1, _digest_of_parties, deterministic=True)
    bare = re.sub(r"--[^\n]*", "", sql)
    for statement in filter(None, (part.strip() for part in bare.split(";"))):
        connection.execute(statement)


def _digest_of_parties(body: str) -> str:
    # SQLite's own functions cut a text at its first NUL.
    parties = sorted({str(one).encode().hex() for one in orjson.loads(body)["parties"]})
    return hashlib.sha256(",".join(parties).encode()).hexdigest()
