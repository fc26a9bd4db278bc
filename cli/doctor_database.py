"""What `cacp doctor` checks in the database file: log, schema, integrity, stamps, what waits."""

import sqlite3
from pathlib import Path

from server.domain.doctor_check import DoctorCheck, State
from server.store.connection import Connection

RESTORE = "stop the node and restore the file from a backup"


def log_check(path: Path, durability: str) -> DoctorCheck:
    """Whether the write-ahead log can be read to its end.

    A power cut may damage it where commits are not synced; with durability FULL it must not.
    """
    from server.store.sqlite.migrate import check_log
    from server.store.sqlite.schema import SchemaDamaged

    try:
        check_log(path)
    except SchemaDamaged as error:
        finding, _, remedy = str(error).partition(". ")
        state: State = "broken" if durability == "FULL" else "warning"
        return DoctorCheck("log", state, finding, remedy)
    return DoctorCheck("log", "ok", "every commit in it can be read")


def schema_check(db: sqlite3.Connection) -> DoctorCheck:
    """Whether the tables are those of this release."""
    from server.store.sqlite.migrate import pending
    from server.store.sqlite.schema import SchemaDamaged

    try:
        migrations = pending(db)
    except SchemaDamaged as error:
        return DoctorCheck("schema", "broken", str(error), f"{RESTORE}: no node opens it as it is")
    except ValueError as error:
        finding, _, remedy = str(error).partition(". ")
        return DoctorCheck("schema", "broken", finding, remedy or "name the right file with --db")
    if migrations:
        finding = f"the next start runs {', '.join(migrations)}"
        return DoctorCheck(
            "schema", "warning", finding, "start the node: it creates a backup first"
        )
    return DoctorCheck("schema", "ok", "the tables are those of this release")


def integrity_check(db: sqlite3.Connection) -> DoctorCheck:
    """SQLite's own check of the file, then its foreign keys."""
    from server.store.sqlite import database_integrity

    damage = database_integrity.damage(db)
    if damage:
        return DoctorCheck("integrity", "broken", "; ".join(damage[:3]), RESTORE)
    broken_references = database_integrity.broken_references(db)
    if broken_references:
        finding = ", ".join(
            f"{count} row{'s' if count > 1 else ''} of {table} refer{'' if count > 1 else 's'}"
            for table, count in broken_references.items()
        )
        return DoctorCheck("integrity", "broken", f"{finding} to nothing", RESTORE)
    return DoctorCheck("integrity", "ok", "the file is sound")


def search_check(db: Connection) -> DoctorCheck:
    """Whether the index of full-text search is sound and complete."""
    from server.store import search

    damage = search.damage(db)
    if damage is not None:
        remedy = "`cacp reindex` builds it anew; nothing is lost with it"
        return DoctorCheck("search", "warning", f"the index is damaged: {damage}", remedy)
    waiting = search.waiting(db)
    if waiting or not search.is_ready(db):
        return DoctorCheck("search", "ok", f"about {waiting:,} documents are not indexed yet")
    return DoctorCheck("search", "ok", "everything is indexed")
