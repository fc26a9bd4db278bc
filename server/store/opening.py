"""Opens a node's database, which is an SQLite file or is on a PostgreSQL server."""

from server.domain.location import DatabaseUrl, Location
from server.store.connection import Connection
from server.store.sqlite.connection import Durability
from server.store.storage import Prepared, Storage

__all__ = ["Durability", "connect", "prepare", "storage_at"]


def storage_at(location: Location, durability: Durability = "FULL") -> Storage:
    """The storage of a database. It opens nothing yet."""
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.storage import PgStorage

        return PgStorage(location)
    from server.store.sqlite.storage import SqliteStorage

    return SqliteStorage(location, durability)


def prepare(location: Location, durability: Durability = "FULL") -> Prepared:
    """Create or migrate a database, as its kind does; raises Unavailable and ValueError."""
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.migrate import prepare as prepare_database

        return prepare_database(location)
    from server.store.sqlite.migrate import prepare as prepare_file

    return prepare_file(location, durability)


def connect(location: Location, *, durability: Durability = "FULL") -> Connection:
    """A connection of its own, in autocommit mode. Raises what the driver raises."""
    if isinstance(location, DatabaseUrl):
        from server.store.postgresql.connection import PgConnection

        return PgConnection(location)
    from server.store.sqlite.connection import connect as connect_file

    return connect_file(location, durability=durability)
