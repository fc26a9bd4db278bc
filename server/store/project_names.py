"""The names of the projects, for commands that work on the file. Imports little."""

from server.store.connection import Connection
from server.store.sql import SQL


def every(db: Connection) -> dict[str, str]:
    """The name of each project, by its id."""
    return dict(SQL.project_names(db))
