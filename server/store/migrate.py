"""Migrations, run at start, each in a transaction and with a backup made first (design §3)."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from server.domain.errors import Unavailable
from server.store import schema
from server.store.database import Durability, connect, copy_to, unavailable
from server.store.place import make_folder, sync_folder
from server.store.sql import SQL
from server.store.wal import HEADER_BYTES, unreadable_commits

log = structlog.get_logger()

SECRETS = (
    *("key_projects", "keys", "tokens", "invites", "wanted_peers", "peers", "api_keys"),
    *("answers", "node"),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A database that is ready: its epoch, and the stamp that nothing in it is after."""

    epoch: str
    last_stamp: int


def prepare(path: Path, durability: Durability = "FULL") -> Prepared:
    """Make or migrate the database at `path`, and give a restored copy a new epoch.

    A copy `NAME.before-MIGRATION` is made before an existing database is changed. A log that can't
    be read to its end is refused when `durability` is FULL, and warned of when it is NORMAL, under
    which a power cut may take the last commits. Raises `Unavailable` when the file is no database
    or can't be written, ValueError when a newer release wrote it or its tables are not what the
    migrations made.
    """
    try:
        make_folder(path.parent)
        # What a new file, and the log beside it, may be opened by: this user alone.
        path.touch(mode=0o600)
        try:
            check_log(path)
        except schema.Damaged as damage:
            # Without a sync of each commit, a power cut leaves such a log too.
            if durability == "FULL":
                raise
            log.warning("log_unreadable", error=str(damage))
        with closing(connect(path)) as connection:
            _migrate(connection, path)
            return Prepared(_epoch(connection), _last_stamp(connection))
    except sqlite3.Error as error:
        raise unavailable(error) from error
    except OSError as error:
        raise Unavailable("The database can't be used", reason="storage_failed") from error


def check_log(path: Path) -> None:
    """Raises Damaged when acknowledged writes are in the database's log that SQLite can't read, and
    would leave out without a word. Changes nothing."""
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size <= HEADER_BYTES:
        # Nothing is in it. Beside it may stand the journal of a first start that lost power, which
        # SQLite plays back when it may write.
        return
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as reading:
        schema.elements(reading)
        lost = unreadable_commits(path)
    if lost:
        raise schema.Damaged(
            f"The log {wal.name} is damaged: {lost} commits in it or more can't be read. "
            "`cacp backup FILE` saves what can; restore that, or an older backup"
        )


def pending(connection: sqlite3.Connection) -> list[str]:
    """The migrations that the next start would run, by name. Changes nothing.

    Raises ValueError when a node would refuse the database.
    """
    known = tuple(schema.migrations())
    had, repairs = _had(connection, known)
    missing = [one.name for one in known if one.name not in had]
    if not missing and not repairs:
        schema.check(schema.elements(connection), known)
    return [one.name for one in repairs] + missing


def copy(source: Path, target: Path, *, without_secrets: bool = False) -> None:
    """A consistent copy of a database, live or not, marked so that it gets an epoch of its own.

    `without_secrets` leaves out keys, tokens, invites, peers and the node's own secret: what starts
    on such a copy is another node. Raises FileExistsError rather than overwrite anything.
    """
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as live:
        copy_to(target, live)
    if without_secrets:
        with closing(sqlite3.connect(target, isolation_level=None)) as made:
            for what in (*SECRETS, "undelivered"):
                getattr(SQL, f"redact_{what}")(made)
            # What is deleted stands in free pages until they are written anew.
            made.execute("VACUUM")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    known = tuple(schema.migrations())
    if not schema.elements(connection):
        _make(connection, known)
    had, repairs = _had(connection, known)
    missing = [one for one in known if one.name not in had]
    if had and (missing or repairs):
        first = f"{missing[0].number:04d}_{missing[0].name}" if missing else repairs[0].name
        _back_up(path, f"{path.name}.before-{first}")
    if had > _recorded(connection):
        with _transaction(connection):
            for repair in repairs:
                repair.run(connection)
            for one in known:
                if one.name in had:
                    _record(connection, one)
    for one in missing:
        with _transaction(connection):
            # Another process may have been faster.
            if one.name not in _recorded(connection):
                one.run(connection)
                _record(connection, one)
    schema.check(schema.elements(connection), known)


def _make(connection: sqlite3.Connection, known: tuple[schema.Migration, ...]) -> None:
    """What all migrations make, at once."""
    with _transaction(connection):
        # Another process may have been faster.
        if not schema.elements(connection):
            for statement in schema.made(known).statements:
                connection.execute(statement)
            for one in known:
                _record(connection, one)


def _had(
    connection: sqlite3.Connection, known: tuple[schema.Migration, ...]
) -> tuple[set[str], list[schema.Repair]]:
    """The names of the migrations that a database has had, none for a new one, and what is to be
    mended of them.

    Raises ValueError when another program or a newer release wrote it, or its tables fit none.
    """
    found = schema.elements(connection)
    if not found:
        return set(), []
    version = _version(connection) if "table meta" in found else 0
    if not version:
        raise ValueError("The database belongs to another program: name another file")
    repairs: list[schema.Repair] = []
    if schema.RECORD in found:
        had = _recorded(connection)
        newer = had - {one.name for one in known}
    elif version > known[-1].number:
        had, newer = set(), {f"version {version}"}
    else:
        had, repairs = schema.deduce(found, known)
        newer = set()
    if newer:
        names = ", ".join(sorted(newer))
        raise ValueError(
            f"A newer release wrote the database: this one doesn't know {names}. "
            "Run the newer release, or restore an older backup"
        )
    return had, repairs


_RECORDS = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL)"


def _recorded(connection: sqlite3.Connection) -> set[str]:
    if schema.RECORD not in schema.elements(connection):
        return set()
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def _record(connection: sqlite3.Connection, migration: schema.Migration) -> None:
    connection.execute(_RECORDS)
    connection.execute(
        "INSERT INTO migrations (name, sha256) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (migration.name, migration.digest),
    )
    # Releases before the record know a newer database by this number, and leave it alone.
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('schema_version', ?) ON CONFLICT (name)"
        " DO UPDATE SET value = MAX(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))",
        (str(migration.number),),
    )


def _back_up(path: Path, name: str) -> None:
    """Copy under another name first: a start that is killed leaves no half copy of this name."""
    part = path.with_name(f"{name}.part")
    part.unlink(missing_ok=True)
    copy(path, part)
    part.replace(path.with_name(name))
    sync_folder(path.parent)


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
    """The number that was the newest migration's when the database was made or migrated last."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    return int(row[0]) if row else 0


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
