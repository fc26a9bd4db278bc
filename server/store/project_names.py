"""The names of the projects, for commands that work on the file. Imports little."""

import sqlite3

from server.store.sql import SQL


def every(db: sqlite3.Connection) -> dict[str, str]:
    """The name of each project, by its id."""
    return dict(SQL.project_names(db))
