"""What a node keeps of attention follows from its facts, whatever its history was."""

from contextlib import closing
from pathlib import Path
from typing import Any

from server.store import attention
from server.store.connection import Connection
from server.store.sql import SQL
from tests.support.located import connect, has


def check_attention(db: Connection) -> None:
    """Derive all openings anew and compare. Changes nothing; call it outside a transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        kept = _kept(db)
        attention.rebuild(db)
        assert kept == _kept(db), "what is kept differs from what follows from the facts"
    finally:
        db.execute("ROLLBACK")


def check_attention_at(path: Path) -> None:
    """The same for the database of a node that has stopped, if it has one."""
    if has(path):
        with closing(connect(path)) as db:
            check_attention(db)


def _kept(db: Connection) -> tuple[Any, ...]:
    return sorted(SQL.all_openings(db)), sorted(SQL.all_opening_counts(db))
