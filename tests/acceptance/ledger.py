"""Is what a node's database holds whole? Asked of the database, not of the node."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from server.domain import contract as domain
from server.store import contracts
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.sqlite import schema
from tests.support.located import ON_POSTGRESQL, connect

TABLES = ("projects", "repos", "contracts", "facts", "packets", "files", "changes", "idempotency")


def check(path: Path) -> dict[str, int]:
    """Rows in each table. Raises AssertionError where something is broken or half-written."""
    check_file(path)
    with closing(connect(path)) as db:
        _check_copies(db)
        _check_log(db)
        return {
            table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES
        }


def check_file(path: Path) -> None:
    """SQLite finds nothing wrong with the file. PostgreSQL checks references itself."""
    if not ON_POSTGRESQL:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def _check_copies(db: Connection) -> None:
    """Each contract has its facts, and its materialised copy is what they give (design §7)."""
    columns = "project_id, contract_id, type, name, created_at, version, status, updated_at"
    rows = db.execute(f"SELECT {columns}, document, history FROM contracts").fetchall()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as scratch:
        for statement in schema.made(tuple(schema.migrations())).statements:
            scratch.execute(statement)
        scratch.execute("PRAGMA foreign_keys = OFF")
        for project, contract, kind, name, created, version, status, updated, *texts in rows:
            facts = contracts.facts_of(db, contract)
            assert facts, f"contract {contract} has no facts"
            current = domain.current_of(facts)
            assert (version, status, updated) == (
                current.version,
                domain.status_of(facts),
                domain.updated_at(facts),
            )
            header = ContractHeader(kind, name, created)
            assert texts == _rendered(scratch, project, contract, header, facts)
    known = {contract for _, contract, *_ in rows}
    orphans = db.execute("SELECT DISTINCT contract_id FROM facts").fetchall()
    assert {contract for (contract,) in orphans} == known


def _rendered(
    scratch: sqlite3.Connection,
    project: str,
    contract: str,
    header: ContractHeader,
    facts: domain.Facts,
) -> list[Any]:
    """The copy that the store makes of these facts, on a database of its own."""
    scratch.execute(
        "INSERT INTO contracts VALUES (?, ?, '', '', 0, '', '', 0, 0, '', '', NULL)",
        (project, contract),
    )
    contracts.add(scratch, project, contract, header, {}, facts.values())
    copy = "SELECT document, history FROM contracts WHERE contract_id = ?"
    return list(scratch.execute(copy, (contract,)).fetchone())


def _check_log(db: Connection) -> None:
    """What exists was logged when it was made, and the log has no gaps (design §4). Of a deleted
    project, the log is what stays."""
    deleted = "SELECT project_id FROM project_lifecycle WHERE state = 'deleted'"
    for entity, table, column in (
        ("project", "projects", "project_id"),
        ("contract", "contracts", "contract_id"),
        ("context", "packets", "packet_id"),
        ("file", "files", "file_id"),
    ):
        logged = {
            row[0]
            for row in db.execute(
                f"SELECT entity_id FROM changes WHERE entity = ? AND project_id NOT IN ({deleted})",
                (entity,),
            )
        }
        made = {row[0] for row in db.execute(f"SELECT {column} FROM {table}")}
        assert made == logged, f"{entity}: {made ^ logged}"
    newest, count = db.execute("SELECT max(seq), count(*) FROM changes").fetchone()
    if isinstance(db, sqlite3.Connection):
        assert (newest or 0) == count
    else:
        # A number that was rolled back, as by a kill, is not given again on PostgreSQL.
        assert (newest or 0) >= count
