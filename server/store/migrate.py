"""Numbered migrations, run at start, each in a transaction and with a backup made first (§4)."""

import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from server.domain.errors import Unavailable
from server.store.database import connect, unavailable

MIGRATIONS = Path(__file__).parent / "migrations"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A database that is ready: its epoch, and the stamp that nothing in it is after."""

    epoch: str
    last_stamp: int


def prepare(path: Path) -> Prepared:
    """Make or migrate the database at `path`, and give a restored copy a new epoch.

    A copy `NAME.before-000N` is made before an existing database is changed. Raises
    `Unavailable` when the file is no database or can't be written, ValueError when a newer
    release wrote it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What a new file, and the log beside it, may be opened by: this user alone.
        path.touch(mode=0o600)
        with closing(connect(path)) as connection:
            _migrate(connection, path)
            return Prepared(_epoch(connection), _last_stamp(connection))
    except sqlite3.Error as error:
        raise unavailable(error) from error
    except OSError as error:
        raise Unavailable("The database can't be used", reason="storage_failed") from error


def migrations() -> list[tuple[int, str]]:
    """Every migration, as (number, SQL), in order."""
    files = sorted(MIGRATIONS.glob("[0-9]*.sql"))
    return [(int(file.name.split("_")[0]), file.read_text()) for file in files]


def copy(source: Path, target: Path) -> None:
    """A consistent copy of a database, live or not, marked so that it gets an epoch of its own.

    Raises FileExistsError rather than overwrite anything.
    """
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    with (
        closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as live,
        closing(sqlite3.connect(target)) as made,
    ):
        live.backup(made)
        made.execute("INSERT INTO meta (name, value) VALUES ('copied', '1') ON CONFLICT DO NOTHING")
        made.commit()
        made.execute("PRAGMA journal_mode=DELETE")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    known = migrations()
    version = _version(connection)
    newest = known[-1][0]
    if version > newest:
        raise ValueError(
            f"The database is of version {version}; this release knows {newest}. "
            "Run the newer release, or restore an older backup"
        )
    missing = [(number, sql) for number, sql in known if number > version]
    if missing and version > 0:
        _back_up(path, f"{path.name}.before-{missing[0][0]:04d}")
    for number, sql in missing:
        with _transaction(connection):
            # Another process may have been faster.
            if _version(connection) < number:
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO meta (name, value) VALUES ('schema_version', ?)"
                    " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    (str(number),),
                )


def _back_up(path: Path, name: str) -> None:
    """Copy under another name first: a start that is killed leaves no half copy of this name."""
    part = path.with_name(f"{name}.part")
    part.unlink(missing_ok=True)
    copy(path, part)
    part.replace(path.with_name(name))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection) -> int:
    """The number of the newest migration in the database; 0 when it is empty."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return 0
    row = None
    if "meta" in tables:
        row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    if row is None:
        raise ValueError("The database belongs to another program: name another file")
    return int(row[0])


def _statements(sql: str) -> list[str]:
    bare = re.sub(r"--[^\n]*", "", sql)
    return [statement for statement in (part.strip() for part in bare.split(";")) if statement]


def _epoch(connection: sqlite3.Connection) -> str:
    """The store's epoch, renewed in a copy, so that no cursor skips what it writes anew (§4)."""
    with _transaction(connection):
        copied = connection.execute("DELETE FROM meta WHERE name = 'copied'").rowcount
        if copied:
            connection.execute("DELETE FROM meta WHERE name = 'epoch'")
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ('epoch', ?) ON CONFLICT DO NOTHING",
            (str(uuid.uuid4()),),
        )
    row = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    return str(row[0])


def _last_stamp(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT at FROM changes ORDER BY seq DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0
