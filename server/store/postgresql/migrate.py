"""Migrations of a database on PostgreSQL, run once however many replicas start (design §3).

The first line of each file, `-- needs: NAME`, says which releases go on while it runs and after it:
those that know the migration of that name. One that only adds what older releases do without needs
the migration before it ("expand"). One that removes or changes what they use needs the migration
since which a release does without ("contract"); it waits until no replica runs that is older.
"""

import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, LockNotAvailable

from server.domain.errors import Unavailable
from server.store import changes, tokens
from server.store.migration_file import MigrationFile, in_folder
from server.store.portable import check_usable
from server.store.postgresql.connection import PgConnection, conninfo
from server.store.postgresql.errors import WORDS, reason_of
from server.store.postgresql.fitness import (
    PgAsked,
    check_may_create,
    check_may_write,
    check_server,
    tables,
)
from server.store.postgresql.identity import Identity, identity_of, is_copy
from server.store.sql import SQL
from server.store.storage import Prepared

MIGRATIONS = Path(__file__).with_name("migrations")

LOCK_KEY = 0x63616370
"""The advisory lock of whoever migrates."""
LOCK_MS = 2_000
"""How long a migration waits for a table, while all who use it wait behind it."""
STATEMENT_SECONDS = 30
"""How long a statement of a migration may hold up the replicas."""
TURN_MS = 600_000
"""How long a start waits for another one that migrates."""
IDLE_MS = 10_000
PATIENCE_SECONDS = 60.0
"""How long a migration is tried again whose tables are in use."""
PAUSE_SECONDS = 0.5
"""Between two attempts; whoever waited behind the one before goes first."""

VOUCH_SECONDS = 10.0
"""How long a start waits for a replica that says that a server which took over has all that the one
before had."""


class Recorded(NamedTuple):
    """A migration that a database has had."""

    name: str
    sha256: str
    needs: str


def migrations() -> list[MigrationFile]:
    """Every migration of this release, in the order in which they run."""
    return in_folder(MigrationFile, MIGRATIONS)


def prepare(
    url: str, *, statement_seconds: int = STATEMENT_SECONDS, new_epoch: bool = False
) -> Prepared:
    """Create the tables in an empty database or migrate them, and give a restored copy, or with
    `new_epoch` any, a new epoch.

    Raises `Unavailable` when the server can't be used now, and ValueError when the database, its
    server or this user can't be a node's, or a newer release wrote the database which this one may
    not run beside.
    """
    try:
        with psycopg.connect(checked(url), autocommit=True, prepare_threshold=None) as db:
            check_server(db)
            create(db, statement_seconds=statement_seconds)
            _check_usable(db)
            identity, vouched = identity_of(db), _is_vouched(db)
        with closing(PgConnection(url)) as connection:
            return _ready(connection, identity, vouched=vouched, new_epoch=new_epoch)
    except psycopg.Error as error:
        raise refusal(error) from error


def create(db: "psycopg.Connection[Any]", *, statement_seconds: int = STATEMENT_SECONDS) -> None:
    """Run the migrations that a database has not had, on a connection in autocommit mode."""
    for migration in _unmade(db):
        _run_patiently(db, migration, statement_seconds)


def pending(db: PgAsked, *, reads_only: bool = False) -> list[str]:
    """The names of the migrations that the next start would run. Changes nothing.

    Raises ValueError and Unavailable when a node would refuse the database, with `reads_only` not
    because it takes no writes now.
    """
    check_server(db, reads_only=reads_only)
    unmade = missing(db)
    if unmade:
        check_may_create(db)
    _check_usable(db)
    return unmade


def missing(db: PgAsked) -> list[str]:
    """Like `pending`, also for a database that was moved, and without asking what this user may."""
    return [migration.name for migration in _unmade(db)]


def checked(url: str) -> str:
    """What libpq is given for a URL. Raises ValueError."""
    try:
        return conninfo(url).decode()
    except psycopg.ProgrammingError as error:
        # The message may quote the URL, and so its password.
        raise ValueError("The database's URL is not one of PostgreSQL") from error


def refusal(error: psycopg.Error) -> Exception:
    """What a start says of a driver's error: in the server's words too, which name what to mend."""
    message = (str(error).strip() or type(error).__name__).partition("\n")[0]
    if isinstance(error, InsufficientPrivilege):
        return ValueError(f"The database's user lacks rights: {message}")
    reason = reason_of(error)
    return Unavailable(f"{WORDS[reason]}: {message}", reason=reason)


# --- which migrations -------------------------------------------------------------------------


def _unmade(db: PgAsked) -> list[MigrationFile]:
    """The migrations of this release that the database has not had. Raises ValueError when a node
    of this release may not run on it."""
    had, known = _had(db), migrations()
    check_record(had, known)
    names = {recorded.name for recorded in had}
    return [migration for migration in known if migration.name not in names]


def _had(db: PgAsked) -> list[Recorded]:
    """The migrations that the database has had; none when it is empty. Raises ValueError when it
    belongs to another program, or this user may not use all of it."""
    named = tables(db)
    if not named:
        return []
    if not {"migrations", "cluster", "meta"} <= named:
        raise ValueError(
            f"The database belongs to another program: it has a table {min(named)}. "
            "Name an empty one, or one of a node"
        )
    check_may_write(db)
    rows = db.execute("SELECT name, sha256, needs FROM migrations ORDER BY name").fetchall()
    return [Recorded(*row) for row in rows]


def _check_usable(db: PgAsked) -> None:
    if "meta" in tables(db):
        check_usable(dict(db.execute("SELECT name, value FROM meta").fetchall()))


def check_record(had: Sequence[Recorded], known: Sequence[MigrationFile]) -> None:
    """Raises ValueError when a release with the migrations `known` may not run on a database that
    has had `had`."""
    digests = {migration.name: migration.digest for migration in known}
    for recorded in had:
        if recorded.name not in digests:
            if recorded.needs not in digests:
                raise ValueError(
                    f"A newer release wrote the database: {recorded.name} needs a release that "
                    f"knows {recorded.needs}. Run the newer release, or restore an older backup"
                )
        elif recorded.sha256 != digests[recorded.name]:
            raise ValueError(
                f"Another build made the database: its migration {recorded.name} differs from this "
                "release's. Run that build"
            )


# --- running them -----------------------------------------------------------------------------


def _run_patiently(
    db: "psycopg.Connection[Any]", migration: MigrationFile, statement_seconds: int
) -> None:
    """Run a migration, again and again while its tables are in use: each attempt holds up the
    replicas for no longer than LOCK_MS."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            _run(db, migration, statement_seconds)
            return
        except (LockNotAvailable, DeadlockDetected):
            if time.monotonic() >= until:
                raise
        time.sleep(PAUSE_SECONDS)


def _run(db: "psycopg.Connection[Any]", migration: MigrationFile, statement_seconds: int) -> None:
    with db.transaction():
        _limit(db, lock_timeout=0, statement_timeout=TURN_MS)
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
        # Another process may have done it meanwhile.
        had = _had(db)
        if any(recorded.name == migration.name for recorded in had):
            return
        check_may_create(db)
        _limit(db, lock_timeout=LOCK_MS, statement_timeout=statement_seconds * 1000)
        if had:
            _check_replicas(db, migration)
            # Like each who writes, so that no write is in the midst of it.
            db.execute("SELECT stamp FROM cluster WHERE id = 1 FOR UPDATE")
        db.execute(migration.sql.encode())
        db.execute(
            "INSERT INTO migrations (name, sha256, needs) VALUES (%s, %s, %s)",
            (migration.name, migration.digest, migration.needs or migration.name),
        )


def _limit(db: "psycopg.Connection[Any]", *, lock_timeout: int, statement_timeout: int) -> None:
    db.execute(
        "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true),"
        " set_config('idle_in_transaction_session_timeout', %s, true)",
        (str(lock_timeout), str(statement_timeout), str(IDLE_MS)),
    )


def _check_replicas(db: "psycopg.Connection[Any]", migration: MigrationFile) -> None:
    """Raises Unavailable while a replica runs that can't go on after the migration."""
    known = [each.name for each in migrations()]
    enough = [*known[known.index(migration.needs or migration.name) :]]
    rows = db.execute(_OLDER, (enough,)).fetchall()
    if rows:
        shown = ", ".join(sorted({version for (version,) in rows}))
        raise Unavailable(
            f"The migration {migration.name} waits for {len(rows)} replicas of an older release "
            f"({shown}): upgrade or stop them, then start again",
            reason="storage_locked",
        )


_OLDER = """
SELECT version FROM replicas
WHERE seen_at > now() - interval '60 seconds' AND NOT migration = ANY (CAST(%s AS TEXT[]))
"""


# --- what each start makes sure of ------------------------------------------------------------


def _is_vouched(db: PgAsked) -> bool:
    """Whether a replica uses the database since the server started or was promoted, for which
    those that run are given the time to connect again."""
    stored = [value for (value,) in db.execute(_IDENTITY).fetchall()]
    until = time.monotonic() + VOUCH_SECONDS
    while True:
        [(vouched,)] = db.execute(_VOUCHED).fetchall()
        if vouched or not stored:
            return bool(vouched)
        known = Identity.parse(stored[0])
        now = identity_of(db)
        if not is_copy(known, now, vouched=False) or is_copy(known, now, vouched=True):
            # Nobody is asked.
            return False
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_SECONDS)


def _ready(
    connection: PgConnection, identity: Identity, *, vouched: bool, new_epoch: bool
) -> Prepared:
    """Make what each database has once, and derive anew what an earlier release derived by other
    rules."""
    # Slow to import: it holds all models that something may wait for.
    from server.store import attention

    stamp = connection.begin_writing()
    try:
        if attention.is_behind(connection):
            attention.rebuild(connection)
        epoch = _epoch(connection, identity, vouched=vouched, new_epoch=new_epoch)
        tokens.node_secret(connection)
        connection.commit()
    except BaseException:
        connection.roll_back()
        raise
    return Prepared(epoch, stamp)


def _epoch(connection: PgConnection, identity: Identity, *, vouched: bool, new_epoch: bool) -> str:
    """The store's epoch. A copy gets a new one, so that no cursor skips what the copy writes
    (design §4)."""
    stored = SQL.meta_value(connection, name="database")
    epoch = SQL.meta_value(connection, name="epoch")
    if new_epoch or (
        stored is not None and is_copy(Identity.parse(stored), identity, vouched=vouched)
    ):
        epoch = None
        # Nobody whose session ended since the copy was made is signed in again.
        SQL.redact_page_sessions(connection)
        SQL.redact_page_links(connection)
    if stored != identity.text:
        changes.put_meta(connection, "database", identity.text)
    if epoch is None:
        epoch = str(uuid.uuid4())
        changes.put_meta(connection, "epoch", epoch)
    return str(epoch)


_VOUCHED = """
SELECT count(*) FROM replicas
WHERE seen_at > pg_postmaster_start_time() AND seen_at > now() - interval '10 seconds'
"""
_IDENTITY = "SELECT value FROM meta WHERE name = 'database'"
