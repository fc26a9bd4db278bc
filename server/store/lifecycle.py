"""Archived and deleted projects, and what a deletion removes (design §7)."""

from collections.abc import Iterable
from typing import Any

from server.domain.lifecycle import Lifecycle
from server.store import digests
from server.store.connection import Connection
from server.store.sql import SQL


def find(db: Connection, project_id: str) -> Lifecycle | None:
    """A project's lifecycle register; None for one that was never archived or deleted."""
    row = SQL.lifecycle(db, project_id=project_id)
    return Lifecycle(*row) if row else None


def deleted_of(db: Connection, ids: Iterable[str]) -> set[str]:
    """The ids of those projects that are deleted."""
    return {id for id in ids if (known := find(db, id)) is not None and known.is_deleted}


def put(db: Connection, project_id: str, register: Lifecycle) -> None:
    SQL.put_lifecycle(db, project_id=project_id, **register._asdict())


def creator(db: Connection, project_id: str) -> str | None:
    """The agent that created the project at this node; None if that was at another."""
    return SQL.project_creator(db, project_id=project_id)  # type: ignore[no-any-return]


def remove_content(db: Connection, project_id: str) -> dict[str, Any]:
    """Remove everything of a project except its lifecycle register and its changes. Returns how
    much: {contracts, packets, files, bytes}."""
    counts = SQL.content_counts(db, project_id=project_id)
    SQL.end_alarms_of_project(db, project_id=project_id)
    for drop in (
        SQL.drop_exchanged,
        SQL.drop_facts,
        SQL.drop_contract_packets,
        SQL.drop_packets,
        SQL.drop_contracts,
        SQL.drop_file_contents,
        SQL.drop_files,
        SQL.drop_file_requests,
        SQL.drop_openings_of_project,
        SQL.drop_opening_counts_of_project,
        SQL.drop_aliases,
        SQL.drop_releases,
        SQL.drop_stated_releases,
        SQL.drop_claim_conflicts,
        SQL.drop_thread_runs,
        SQL.drop_repos,
        SQL.drop_project,
    ):
        drop(db, project_id=project_id)
    digests.forget_content(db, project_id)
    return dict(zip(("contracts", "packets", "files", "bytes"), counts, strict=True))
