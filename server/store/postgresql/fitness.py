"""Whether a server and a database can hold a node, and what is missing if not."""

from typing import Any, Protocol

from server.domain.errors import Unavailable
from server.store.postgresql.errors import WORDS

OLDEST = 140_000
"""The oldest server that is supported, as PostgreSQL numbers its versions: 14."""


class PgAsked(Protocol):
    """Any connection to PostgreSQL, for statements without parameters."""

    def execute(self, sql: str, /) -> Any: ...


def check_server(db: PgAsked, *, reads_only: bool = False) -> None:
    """Raises ValueError for a server or a database that can't hold a node, and Unavailable for one
    that takes no writes now, unless it is only to be read."""
    [(version, shown, encoding, schema, name)] = db.execute(_SERVER).fetchall()
    if version < OLDEST:
        raise ValueError(f"The server is PostgreSQL {shown}: a node needs 14 or newer")
    if encoding != "UTF8":
        raise ValueError(
            f"The database {name} has the encoding {encoding}: a node needs UTF8. "
            "Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    if schema is None:
        raise ValueError(
            f"No schema of the database {name} can be used: grant USAGE on a schema of the user's "
            "search_path"
        )
    [(read_only,)] = db.execute(_READ_ONLY).fetchall()
    if read_only and not reads_only:
        raise Unavailable(WORDS["storage_read_only"], reason="storage_read_only")


def check_may_create(db: PgAsked) -> None:
    """Raises ValueError when this user can't make tables."""
    [(may, user, schema)] = db.execute(_MAY_CREATE).fetchall()
    if not may:
        raise ValueError(
            f'The user {user} may not create tables in the schema "{schema}". '
            f'GRANT CREATE ON SCHEMA "{schema}" TO "{user}", or run `cacp migrate` as its owner'
        )


def check_may_write(db: PgAsked) -> None:
    """Raises ValueError when this user can't read and write each table."""
    refused = [table for (table,) in db.execute(_UNWRITABLE).fetchall()]
    if refused:
        [(_, user, schema)] = db.execute(_MAY_CREATE).fetchall()
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise ValueError(
            f"The user {user} may not read and write the table {refused[0]}{more}. GRANT SELECT, "
            f'INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{schema}" TO "{user}"'
        )


def tables(db: PgAsked) -> set[str]:
    """The tables and views in the database's schema, without those of extensions."""
    return {name for (name,) in db.execute(_TABLES).fetchall()}


_SERVER = """
SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version'),
       current_setting('server_encoding'), current_schema(), current_database()
"""
_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'"
_MAY_CREATE = """
SELECT has_schema_privilege(current_schema(), 'CREATE'), current_user, current_schema()
"""
_UNWRITABLE = """
SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE nspname = current_schema() AND relkind = 'r' AND NOT (
    has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
    AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')
)
ORDER BY relname
"""
_TABLES = """
SELECT relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace
WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT EXISTS (
    SELECT 1 FROM pg_depend AS d
    WHERE d.classid = CAST('pg_class' AS REGCLASS) AND d.objid = c.oid AND d.deptype = 'e'
)
"""
