"""The agents that registered at this node's exchange (CACP 2.0, ADP Integration)."""

import sqlite3
from typing import NamedTuple

from schemas.adp import Manifest
from server.domain.agents import identity
from server.domain.directory import DirectoryEntry, protocols_of, words_of
from server.store.sql import SQL

KEPT = 24 * 3600 * 1_000_000
"""Microseconds after which an entry that wasn't renewed is no longer found."""


class Registered(NamedTuple):
    """An agent's entry: its manifest, and who entered it."""

    manifest: Manifest
    registrar: str
    verified: bool


def put(db: sqlite3.Connection, registered: Registered, *, now: int) -> None:
    """Enter an agent, or renew its entry."""
    manifest = registered.manifest
    SQL.put_directory(
        db,
        agent=identity(manifest.aid),
        aid=manifest.aid,
        manifest=manifest.model_dump_json(by_alias=True, exclude_none=True),
        words=" ".join(sorted(words_of(manifest))),
        protocols=" ".join(sorted(protocols_of(manifest))),
        registrar=registered.registrar,
        verified=int(registered.verified),
        at=now,
    )


def forget(db: sqlite3.Connection, *, now: int) -> None:
    """Delete the entries that weren't renewed."""
    SQL.forget_directory(db, before=now - KEPT)


def entries(db: sqlite3.Connection, *, now: int) -> list[DirectoryEntry]:
    """All that a search looks at."""
    return [DirectoryEntry(*row) for row in SQL.directory_entries(db, after=now - KEPT)]


def agents(db: sqlite3.Connection) -> list[str]:
    """Every agent that has an entry, without its version."""
    return [agent for (agent,) in SQL.directory_agents(db)]


def find(db: sqlite3.Connection, agent_id: str, *, now: int) -> Registered | None:
    """The entry of an agent, in whichever version it registered."""
    row = SQL.directory_listing(db, agent=identity(agent_id), after=now - KEPT)
    if row is None:
        return None
    manifest, registrar, verified = row
    return Registered(Manifest.model_validate_json(manifest), registrar, bool(verified))


def count(db: sqlite3.Connection, *, now: int) -> int:
    """How many agents are found at all."""
    return int(SQL.directory_count(db, after=now - KEPT))
