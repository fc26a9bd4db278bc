"""Moves a node out of an SQLite file, and into one (`server.store.move`)."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from server.store import content_integrity, portable
from server.store.portable import Row
from server.store.sqlite import database_integrity
from server.store.sqlite.connection import connect
from server.store.sqlite.file_lock import lock, make_folder, sync_folder
from server.store.sqlite.migrate import missing, prepare, redact
from server.store.stamps import newest_stamp

BATCH = 1_000


class SqliteSource:
    """The file of a node that does not run, in a transaction that keeps others from writing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._unordered = {str(name) for (name,) in db.execute(_WITHOUT_ROWID)}

    def count(self, table: str) -> int:
        [(count,)] = self._db.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608
        return int(count)

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        order = "" if table in self._unordered else " ORDER BY rowid"
        return _rows(self._db, table, columns, order)

    def counters(self) -> dict[str, int]:
        counted = dict(self._db.execute("SELECT name, seq FROM sqlite_sequence"))
        return {str(table): int(seq) for table, seq in counted.items()}

    def last_stamp(self) -> int:
        [(last,)] = self._db.execute("SELECT coalesce(max(at), 0) FROM changes")
        return max(int(last), newest_stamp(self._db))

    def moved_to(self) -> str | None:
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", (portable.MOVED,))
        return next((str(place) for (place,) in row), None)

    def mark_moved(self, place: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (portable.MOVED, place))
        self._db.execute("COMMIT")


@contextmanager
def source(path: Path) -> Iterator[SqliteSource]:
    """Open a file to move it. Raises Unavailable while a node runs on it, and ValueError when it is
    not one of this release."""
    if not path.is_file():
        raise ValueError(f"There is no database at {path.absolute()}")
    locked = lock(path)
    try:
        with closing(connect(path)) as db:
            db.execute("BEGIN IMMEDIATE")
            if unmade := missing(db):
                raise ValueError(
                    f"The database is of an older release ({', '.join(unmade)} to run): "
                    "`cacp migrate` brings it up to date"
                )
            yield SqliteSource(db)
    finally:
        if locked is not None:
            os.close(locked)


class SqliteTarget:
    """A file that has its name only once it is whole."""

    def __init__(self, db: sqlite3.Connection, part: Path, path: Path) -> None:
        self._db = db
        self._part = part
        self._path = path

    def order(self, tables: Iterable[str]) -> list[str]:
        # References are checked at the end.
        return sorted(tables)

    def fill(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        names = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" * len(columns))
        self._db.executemany(
            f'INSERT INTO "{table}" ({names}) VALUES ({marks})',  # noqa: S608
            rows,
        )

    def filled(self, counters: dict[str, int], last_stamp: int) -> None:
        # Triggers have queued what is queued anyhow when the index is made.
        self._db.execute("DELETE FROM search_queue")
        counting = {str(name) for (name,) in self._db.execute(_COUNTING)}
        for table in counting & counters.keys():
            self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self._db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, counters[table]))
        self._db.execute("COMMIT")

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        return _rows(self._db, table, columns, "")

    def damage(self) -> str | None:
        if broken := database_integrity.broken_references(self._db):
            return f"rows of {min(broken)} refer to nothing"
        return content_integrity.damage(self._db)

    def redact(self) -> None:
        """Delete the secrets."""
        redact(self._db)

    def finish(self) -> None:
        self._db.execute("DELETE FROM meta WHERE name = ?", (portable.MOVING,))
        self._db.close()
        with self._part.open("rb") as file:
            os.fsync(file.fileno())
        # Fails when there is a file meanwhile.
        os.link(self._part, self._path)
        self._part.unlink()
        sync_folder(self._path.parent)


@contextmanager
def target(path: Path, place: str) -> Iterator[SqliteTarget]:
    """Make a file to move a node into, from `place`. Raises ValueError when there is one."""
    if path.exists() and path.stat().st_size:
        raise ValueError(f"{path} exists already: a node is moved into a new file")
    make_folder(path.parent)
    part = path.with_name(f"{path.name}.moving")
    with ExitStack() as made:
        for leftover in _files(part):
            leftover.unlink(missing_ok=True)
            made.callback(leftover.unlink, missing_ok=True)
        prepare(part)
        path.unlink(missing_ok=True)
        db = made.enter_context(closing(sqlite3.connect(part, isolation_level=None)))
        # A copy that is interrupted is made anew: it needs neither a log nor syncs.
        db.execute("PRAGMA journal_mode=OFF")
        db.execute("PRAGMA synchronous=OFF")
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute("BEGIN IMMEDIATE")
        for table in portable.tables():
            but = " WHERE name <> 'schema_version'" if table == "meta" else ""
            db.execute(f'DELETE FROM "{table}"{but}')  # noqa: S608
        db.execute("INSERT INTO meta VALUES (?, ?)", (portable.MOVING, place))
        yield SqliteTarget(db, part, path)


def _files(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]


def _rows(
    db: sqlite3.Connection, table: str, columns: tuple[str, ...], order: str
) -> Iterator[Row]:
    names = ", ".join(f'"{column}"' for column in columns)
    cursor = db.execute(f'SELECT {names} FROM "{table}"{order}')  # noqa: S608
    cursor.arraysize = BATCH
    while batch := cursor.fetchmany():
        yield from batch


_WITHOUT_ROWID = "SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%'"
_COUNTING = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
