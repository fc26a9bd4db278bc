"""The databases that tests know by a path: that SQLite file or, in a run on PostgreSQL, a database
that takes its place."""

import atexit
import os
from pathlib import Path

from server.domain.location import DatabaseUrl, Location
from server.store import opening
from server.store.connection import Connection
from server.store.storage import Prepared
from tests.support import postgresql

ON_POSTGRESQL = os.environ.get("TEST_STORE") == "postgresql"

_PLACED: dict[Path, DatabaseUrl] = {}


def location_of(path: Path | str) -> Location:
    """Where the database of a path is. It is there as long as the path's folder."""
    if not ON_POSTGRESQL:
        return Path(path)
    path = Path(path).absolute()
    if path not in _PLACED:
        _sweep()
        _PLACED[path] = postgresql.fresh_database()
    return _PLACED[path]


def has(path: Path) -> bool:
    """Whether there is a database for a path."""
    return path.absolute() in _PLACED if ON_POSTGRESQL else path.exists()


def connect(path: Path | str) -> Connection:
    """A connection to the database of a path, in autocommit mode. What a crash of a test would lose
    is of no use to anybody."""
    return opening.connect(location_of(path), durability="NORMAL")


def prepare(path: Path | str, durability: opening.Durability = "FULL") -> Prepared:
    """Make or migrate the database of a path."""
    return opening.prepare(location_of(path), durability)


def settings_of(path: Path) -> dict[str, object]:
    """The settings of a node on the database of a path."""
    location = location_of(path)
    on_server = {"database_url": str(location)} if isinstance(location, DatabaseUrl) else {}
    return {"db": path, **on_server}


def _sweep() -> None:
    """Drop the databases of tests whose folders are gone."""
    for path in [path for path in _PLACED if not path.parent.exists()]:
        postgresql.drop(_PLACED.pop(path))


@atexit.register
def _drop_all() -> None:
    # A server of this run goes with its files.
    if postgresql.NAMED in os.environ:
        for url in _PLACED.values():
            postgresql.drop(url)
