"""Migrations, run at start, each in a transaction and with a backup made first (design §3)."""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from server.domain.errors import Unavailable
from server.store.portable import check_usable
from server.store.sql import SQL
from server.store.sqlite import schema
from server.store.sqlite.connection import Durability, connect, copy_to, unavailable
from server.store.sqlite.file_lock import make_folder, sync_folder
from server.store.sqlite.wal import HEADER_BYTES, unreadable_commits
from server.store.storage import Prepared

SECRETS = (
    *("key_projects", "keys", "tokens", "invites", "wanted_peers", "peers", "api_keys"),
    *("answers", "node", "page_sessions", "page_links"),
)


def prepare(path: Path, durability: Durability = "FULL", *, new_epoch: bool = False) -> Prepared:
    """Create or migrate the database at `path`, and give a restored copy, or with `new_epoch` any,
    a new epoch.

    Before an existing database is changed, it is copied to `NAME.before-MIGRATION`. When the log
    can't be read to its end, `durability` FULL refuses the database and NORMAL, under which a power
    cut may lose the last commits, warns. Raises `Unavailable` when the file is no database or can't
    be written, ValueError when a newer release wrote it or its tables differ from what the
    migrations make.
    """
    try:
        make_folder(path.parent)
        # Only this user may open a new file and the log beside it.
        path.touch(mode=0o600)
        try:
            check_log(path)
        except schema.SchemaDamaged as damage:
            # Without a sync for each commit, a power cut may leave such a log as well.
            if durability == "FULL":
                raise
            # Slow to import, and seldom needed: commands prepare databases too.
            import structlog

            structlog.get_logger().warning("log_unreadable", error=str(damage))
        with closing(connect(path)) as connection:
            _migrate(connection, path)
            _derive(connection)
            epoch = _epoch(connection, new_epoch=new_epoch)
            return Prepared(epoch, _last_stamp(connection))
    except sqlite3.Error as error:
        raise unavailable(error) from error
    except OSError as error:
        raise Unavailable(
            f"The database cannot be opened: {error.strerror}", reason="storage_failed"
        ) from error


def check_log(path: Path) -> None:
    """Raises SchemaDamaged when the database's log holds acknowledged writes that SQLite can't read
    and would silently skip. Changes nothing."""
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size <= HEADER_BYTES:
        # The log is empty. There may be a rollback journal of a first start that lost power, which
        # SQLite plays back with write access.
        return
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as reading:
        schema.elements(reading)
        lost = unreadable_commits(path)
    if lost:
        raise schema.SchemaDamaged(
            f"The log {wal.name} is damaged: at least {lost} commits in it can't be read. "
            "`cacp backup FILE` saves the rest; restore that, or an older backup"
        )


def pending(connection: sqlite3.Connection) -> list[str]:
    """The names of the migrations that the next start would run. Changes nothing.

    Raises ValueError when a node would refuse the database.
    """
    unmade = missing(connection)
    _check_usable(connection)
    return unmade


def missing(connection: sqlite3.Connection) -> list[str]:
    """Like `pending`, also for a database that was moved."""
    known = tuple(schema.migrations())
    had, repairs = _had(connection, known)
    unmade = [migration.name for migration in known if migration.name not in had]
    if not unmade and not repairs:
        schema.check(schema.elements(connection), known)
    return [repair.name for repair in repairs] + unmade


def copy(source: Path, target: Path, *, without_secrets: bool = False) -> None:
    """Copy a database consistently, whether or not a node runs on it, and mark the copy so that it
    gets a new epoch.

    `without_secrets` leaves out keys, tokens, invites, peers and the node's own secret, so that a
    start on the copy makes another node. Raises FileExistsError when `target` exists.
    """
    if target.exists():
        raise FileExistsError(f"{target} is there already")
    with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as live:
        copy_to(target, live)
    if without_secrets:
        with closing(sqlite3.connect(target, isolation_level=None)) as made:
            redact(made)


def redact(copied: sqlite3.Connection) -> None:
    """Delete the secrets in a copy."""
    for what in (*SECRETS, "undelivered"):
        getattr(SQL, f"redact_{what}")(copied)
    # Deleted rows stay in free pages until the file is rewritten.
    copied.execute("VACUUM")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    known = tuple(schema.migrations())
    if not schema.elements(connection):
        _make(connection, known)
    had, repairs = _had(connection, known)
    _check_usable(connection)
    unmade = [migration for migration in known if migration.name not in had]
    if had and (unmade or repairs):
        first = f"{unmade[0].number:04d}_{unmade[0].name}" if unmade else repairs[0].name
        _back_up(path, f"{path.name}.before-{first}")
    if had > _recorded(connection):
        with _transaction(connection):
            for repair in repairs:
                repair.run(connection)
            for migration in known:
                if migration.name in had:
                    _record(connection, migration)
    for migration in unmade:
        with _transaction(connection):
            # Another process may have done it meanwhile.
            if migration.name not in _recorded(connection):
                migration.run(connection)
                _record(connection, migration)
    schema.check(schema.elements(connection), known)


def _derive(connection: sqlite3.Connection) -> None:
    """Derive anew what an earlier release has derived by other rules, or not at all."""
    # Slow to import: it holds all models that something may wait for.
    from server.store import attention

    if attention.is_outdated(connection):
        with _transaction(connection):
            attention.rebuild(connection)


def _make(connection: sqlite3.Connection, known: tuple[schema.Migration, ...]) -> None:
    """Create the tables of all migrations at once."""
    with _transaction(connection):
        # Another process may have done it meanwhile.
        if not schema.elements(connection):
            for statement in schema.made(known).statements:
                connection.execute(statement)
            for migration in known:
                _record(connection, migration)


def _had(
    connection: sqlite3.Connection, known: tuple[schema.Migration, ...]
) -> tuple[set[str], list[schema.Repair]]:
    """The names of the migrations that ran on a database, none for a new one, and the repairs that
    they need.

    Raises ValueError when another program or a newer release wrote the database, or its tables
    match no set of migrations.
    """
    stored = schema.elements(connection)
    if not stored:
        return set(), []
    version = _version(connection) if "table meta" in stored else 0
    if not version:
        raise ValueError("The database belongs to another program: name another file")
    repairs: list[schema.Repair] = []
    if schema.RECORD in stored:
        had = _recorded(connection)
        newer = had - {migration.name for migration in known}
    elif version > known[-1].number:
        had, newer = set(), {f"version {version}"}
    else:
        had, repairs = schema.deduce(stored, known)
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
    # Older releases, which keep no such record, recognise a newer database by this number.
    connection.execute(
        "INSERT INTO meta (name, value) VALUES ('schema_version', ?) ON CONFLICT (name)"
        " DO UPDATE SET value = MAX(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))",
        (str(migration.number),),
    )


def _back_up(path: Path, name: str) -> None:
    """Copy the database to `name`, by way of a temporary name, so that a killed start leaves no
    partial copy under this name."""
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
        # A full disk rolls back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_usable(connection: sqlite3.Connection) -> None:
    if "table meta" in schema.elements(connection):
        check_usable(dict(connection.execute("SELECT name, value FROM meta")))


def _version(connection: sqlite3.Connection) -> int:
    """The number of the newest migration when the database was last created or migrated."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    return int(row[0]) if row else 0


def _epoch(connection: sqlite3.Connection, *, new_epoch: bool) -> str:
    """The store's epoch. A copy gets a new one, so that no cursor skips what the copy writes
    (design §4)."""
    with _transaction(connection):
        copied = connection.execute("DELETE FROM meta WHERE name = 'copied'").rowcount
        if copied or new_epoch:
            connection.execute("DELETE FROM meta WHERE name = 'epoch'")
            # Nobody whose session ended since the copy was made is signed in again.
            SQL.redact_page_sessions(connection)
            SQL.redact_page_links(connection)
        connection.execute(
            "INSERT INTO meta (name, value) VALUES ('epoch', ?) ON CONFLICT DO NOTHING",
            (str(uuid.uuid4()),),
        )
    row = connection.execute("SELECT value FROM meta WHERE name = 'epoch'").fetchone()
    return str(row[0])


def _last_stamp(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT at FROM changes ORDER BY seq DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0
