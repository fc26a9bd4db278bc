"""A PostgreSQL server for tests, and databases on it.

All workers of a run share one server, which the first that needs it starts. It ends, and its files
go, with the last of them, SIGKILL included. `CACP_TEST_DATABASE_URL` names a server instead, whose
user may create databases.
"""

import atexit
import fcntl
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from cli.local_postgresql import LocalPostgresql
from server.domain.location import DatabaseUrl
from server.store.postgresql.migrate import MIGRATIONS, prepare

NAMED = "CACP_TEST_DATABASE_URL"
"""The variable that names a server."""
RUN = "PYTEST_XDIST_TESTRUNUID"
"""The variable that tells the workers of one run from those of others."""
TEMPLATE_LOCK = 7_236_187
"""The advisory lock of whoever makes the template."""
PLAIN = "ENCODING 'UTF8' TEMPLATE template0"
FAST: Mapping[str, str | int] = {
    "max_connections": 500,
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "wal_keep_size": 0,
    "max_wal_size": "256MB",
}
"""Settings for tests in which nothing happens to the server."""


@cache
def server() -> DatabaseUrl:
    """The URL of the server that this run's tests share; don't stop it. Started if need be."""
    if named := os.environ.get(NAMED):
        return DatabaseUrl(named)
    run = os.environ.get(RUN) or f"{os.getpid()}"
    folder = Path(tempfile.gettempdir(), f"cacp-postgresql-{run}")
    while True:
        _make(folder)
        try:
            lifeline = os.open(folder / "in-use", os.O_CREAT | os.O_RDWR)
        except FileNotFoundError:
            continue
        fcntl.flock(lifeline, fcntl.LOCK_SH)
        if _is_at(folder / "in-use", lifeline):
            break
        # The last worker has just ended, and the server with it.
        os.close(lifeline)
    with (folder / "starting").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        told = folder / "url"
        if not told.exists():
            _KEPT.append(_started(folder))
            told.write_text(_KEPT[0].url())
        return DatabaseUrl(told.read_text())


_KEPT: list[LocalPostgresql] = []
"""The server, in the worker that started it."""


@atexit.register
def _leave() -> None:
    for kept in _KEPT:
        kept.leave()


def _started(folder: Path) -> LocalPostgresql:
    return LocalPostgresql(
        folder, settings=FAST, lifeline=folder / "in-use", removed=folder
    ).start()


def _make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    # The account that runs the server where root tests must reach its data.
    folder.chmod(0o711)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def own_server(**settings: str | int) -> Iterator[LocalPostgresql]:
    """A running server of its own, which a test may stop, kill, or give a standby
    (`server.standby(server.folder / NAME, NAME)`, which the test stops). It syncs to its disk."""
    folder = _new_folder()
    made = LocalPostgresql(folder, settings=settings, removed=folder)
    try:
        yield made.start()
    finally:
        made.remove()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that the account can enter under which a server runs where root tests."""
    folder = _new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _new_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="cacp-postgresql-own-"))
    _make(folder)
    return folder


def fresh_database() -> DatabaseUrl:
    """A new database with a node's tables, in which no node has been. `drop` it: it takes 10 MB."""
    name = f"test_{uuid.uuid4().hex}"
    template = _template(server())
    execute(server(), f"CREATE DATABASE {name} TEMPLATE {template}{_strategy(server())}")
    return at(server(), name)


def empty_database() -> DatabaseUrl:
    """A new database without tables."""
    name = f"test_{uuid.uuid4().hex}"
    execute(server(), f"CREATE DATABASE {name} {PLAIN}{_strategy(server())}")
    return at(server(), name)


def drop(url: DatabaseUrl) -> None:
    """Delete a database, also one that somebody uses."""
    execute(server(), f"DROP DATABASE IF EXISTS {urlsplit(url).path[1:]} WITH (FORCE)")


@contextmanager
def database() -> Iterator[DatabaseUrl]:
    """A fresh database, dropped afterwards."""
    url = fresh_database()
    try:
        yield url
    finally:
        drop(url)


def at(url: str, name: str) -> DatabaseUrl:
    """The URL of another database on the same server."""
    return DatabaseUrl(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))


def execute(url: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a statement outside a transaction, on a connection of its own. Returns its rows."""
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


@cache
def _strategy(url: str) -> str:
    """Files are copied faster than logged pages, where nothing is synced; 14 knows no other way."""
    [[version]] = execute(url, "SELECT current_setting('server_version_num')::int")
    return " STRATEGY FILE_COPY" if version >= 150_000 else ""


@cache
def _template(url: str) -> str:
    """The database on the server that others are copies of; made once for all workers."""
    content = hashlib.sha256(
        b"".join(path.read_bytes() for path in sorted(MIGRATIONS.glob("*.sql")))
    )
    name = f"cacp_template_{content.hexdigest()[:16]}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(%s)", [TEMPLATE_LOCK])
        if db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            # Under another name until it is whole.
            db.execute(f"DROP DATABASE IF EXISTS {name}_new WITH (FORCE)".encode())
            db.execute(f"CREATE DATABASE {name}_new {PLAIN}".encode())
            _fill(at(url, f"{name}_new"))
            db.execute(f"ALTER DATABASE {name}_new RENAME TO {name}".encode())
    return name


def _fill(url: DatabaseUrl) -> None:
    """Make the tables, without what each database has of its own."""
    prepare(url)
    execute(url, "DELETE FROM meta WHERE name IN ('database', 'epoch', 'secret')")
    execute(url, "UPDATE cluster SET stamp = 0")
    execute(url, "VACUUM FREEZE")
