"""Moves a node out of a database on PostgreSQL, and into one (`server.store.move`)."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from graphlib import TopologicalSorter
from typing import Any

import psycopg
from psycopg.sql import SQL as STATEMENT
from psycopg.sql import Composed, Identifier, Literal

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store import content_integrity, portable
from server.store.portable import Row
from server.store.postgresql import fitness
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import checked, create, missing, refusal
from server.store.postgresql.text import from_stored, to_stored

BATCH = 5_000
LOCK_MS = 5_000


class PgSource:
    """A database that no replica uses, with the lock of whoever writes."""

    def __init__(self, lock: "psycopg.Connection[Any]", view: "psycopg.Connection[Any]") -> None:
        self._lock = lock
        self._view = view
        self._identities = dict(view.execute(_IDENTITIES).fetchall())

    def count(self, table: str) -> int:
        statement = STATEMENT("SELECT count(*) FROM {}").format(Identifier(table))
        [[count]] = self._view.execute(statement).fetchall()
        return int(count)

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        return _rows(self._view, table, columns, self._identities.get(table))

    def counters(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        for table, column in self._identities.items():
            row = self._view.execute(_COUNTER, (table, column)).fetchone()
            if row is not None and row[0] is not None:
                counted[table] = int(row[0])
        return counted

    def last_stamp(self) -> int:
        row = self._view.execute("SELECT stamp FROM cluster WHERE id = 1").fetchone()
        return int(row[0]) if row else 0

    def moved_to(self) -> str | None:
        row = self._view.execute(_OF_META, (portable.MOVED,)).fetchone()
        return str(row[0]) if row else None

    def mark_moved(self, place: str) -> None:
        self._lock.execute(_PUT_META, (portable.MOVED, to_stored(place)))
        # A replica that was stopped in the midst of its work finds nothing to lock any more.
        self._lock.execute("DELETE FROM cluster")
        self._lock.commit()


@contextmanager
def running_source(url: str) -> Iterator[PgSource]:
    """Open a database to copy it while replicas use it. Raises Unavailable and ValueError."""
    try:
        with closing(_connect(url)) as view:
            fitness.check_server(view, reads_only=True)
            _check_node(view)
            view.commit()
            view.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            view.read_only = True
            yield PgSource(view, view)
    except psycopg.Error as error:
        raise refusal(error) from error


@contextmanager
def source(url: str) -> Iterator[PgSource]:
    """Open a database to move it. Raises Unavailable while a replica runs, and ValueError when it
    is not one of this release."""
    try:
        with ExitStack() as opened:
            lock = opened.enter_context(closing(_connect(url)))
            fitness.check_server(lock)
            _check_node(lock)
            lock.commit()
            lock.execute(STATEMENT("SET LOCAL lock_timeout = {}").format(Literal(LOCK_MS)))
            lock.execute("SELECT stamp FROM cluster FOR UPDATE")
            [(running,)] = lock.execute(_RUNNING).fetchall()
            if running:
                raise Unavailable(
                    f"{running} replicas run on this database, or did 10 seconds ago: stop them",
                    reason="storage_locked",
                )
            view = opened.enter_context(closing(_connect(url)))
            view.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            view.read_only = True
            yield PgSource(lock, view)
    except psycopg.Error as error:
        raise refusal(error) from error


class PgTarget:
    """A database that is marked as unfinished until it is whole."""

    def __init__(self, db: "psycopg.Connection[Any]", url: str) -> None:
        self._db = db
        self._url = url

    def order(self, tables: Iterable[str]) -> list[str]:
        wanted = set(tables)
        needs: dict[str, set[str]] = {table: set() for table in wanted}
        for table, needed in self._db.execute(_REFERENCES).fetchall():
            if table in wanted and table != needed:
                needs[table].add(needed)
        return [table for table in TopologicalSorter(needs).static_order() if table in wanted]

    def fill(self, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
        statement = STATEMENT("COPY {} ({}) FROM STDIN").format(Identifier(table), _named(columns))
        with self._db.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row([to_stored(cell) if cell.__class__ is str else cell for cell in row])

    def filled(self, counters: dict[str, int], last_stamp: int) -> None:
        # Triggers have queued what is queued anyhow when the index is made.
        self._db.execute("DELETE FROM search_queue")
        for table, column in self._db.execute(_IDENTITIES).fetchall():
            statement = STATEMENT(
                "SELECT setval(pg_get_serial_sequence({}, {}), greatest({}, 1, max({})),"
                " greatest({}, max({}), 0) > 0) FROM {}"
            ).format(
                *(Literal(table), Literal(column)),
                *(Literal(counters.get(table, 0)), Identifier(column)) * 2,
                Identifier(table),
            )
            self._db.execute(statement)
        self._db.execute("UPDATE cluster SET stamp = %s", (last_stamp,))
        self._db.commit()
        # The planner knows nothing of the rows yet.
        self._db.autocommit = True
        self._db.execute("ANALYZE")
        self._db.autocommit = False

    def rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Row]:
        return _rows(self._db, table, columns, None)

    def damage(self) -> str | None:
        with closing(PgConnection(self._url)) as db:
            return content_integrity.damage(db)

    def finish(self) -> None:
        self._db.execute("DELETE FROM meta WHERE name = %s", (portable.MOVING,))
        self._db.commit()


@contextmanager
def target(url: str, place: str) -> Iterator[PgTarget]:
    """Make the tables in an empty database to move a node into, from `place`. Raises ValueError
    when it holds a node that is not an unfinished copy."""
    try:
        with closing(_connect(url)) as db:
            db.autocommit = True
            if not _is_free(db):
                raise ValueError(
                    f"{DatabaseUrl(url).shown} holds a node already: a node is moved into an empty "
                    "database"
                )
            create(db)
            db.autocommit = False
            named = STATEMENT(", ").join(map(Identifier, sorted(portable.tables())))
            db.execute(STATEMENT("TRUNCATE {} RESTART IDENTITY CASCADE").format(named))
            db.execute(_PUT_META, (portable.MOVING, to_stored(place)))
            db.commit()
            yield PgTarget(db, url)
    except psycopg.Error as error:
        raise refusal(error) from error


def _check_node(db: "psycopg.Connection[Any]") -> None:
    """Raises ValueError unless a node of this release is in the database."""
    if not fitness.tables(db):
        raise ValueError("There is no node in this database")
    if unmade := missing(db):
        raise ValueError(
            f"The database is of an older release ({', '.join(unmade)} to run): "
            "`cacp migrate` brings it up to date"
        )


def _is_free(db: "psycopg.Connection[Any]") -> bool:
    """Whether nothing is in a database but an unfinished copy, or tables that no node has used."""
    fitness.check_server(db)
    if not fitness.tables(db):
        return True
    missing(db)
    names = {name for (name,) in db.execute("SELECT name FROM meta").fetchall()}
    return portable.MOVING in names or portable.EPOCH not in names


def _connect(url: str) -> "psycopg.Connection[Any]":
    return psycopg.connect(checked(url), prepare_threshold=None)


def _rows(
    db: "psycopg.Connection[Any]", table: str, columns: tuple[str, ...], order: str | None
) -> Iterator[Row]:
    by = STATEMENT(" ORDER BY {}").format(Identifier(order)) if order else STATEMENT("")
    with db.cursor(name="cacp_move") as cursor:
        cursor.itersize = BATCH
        cursor.execute(
            STATEMENT("SELECT {} FROM {}{}").format(_named(columns), Identifier(table), by)
        )
        for row in cursor:
            yield tuple(from_stored(cell) if cell.__class__ is str else cell for cell in row)


def _named(columns: tuple[str, ...]) -> Composed:
    return STATEMENT(", ").join(map(Identifier, columns))


_OF_META = "SELECT value FROM meta WHERE name = %s"
_PUT_META = (
    "INSERT INTO meta (name, value) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_RUNNING = "SELECT count(*) FROM replicas WHERE seen_at > now() - interval '10 seconds'"
_IDENTITIES = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND is_identity = 'YES'
"""
_COUNTER = """
SELECT last_value FROM pg_sequences
WHERE schemaname = current_schema() AND format('%%I.%%I', schemaname, sequencename)
      = pg_get_serial_sequence(format('%%I.%%I', current_schema(), %s::TEXT), %s)
"""
_REFERENCES = """
SELECT CAST(conrelid AS REGCLASS)::TEXT, CAST(confrelid AS REGCLASS)::TEXT FROM pg_constraint
WHERE contype = 'f' AND connamespace = (
    SELECT oid FROM pg_namespace WHERE nspname = current_schema())
"""
