"""The agents that are registered at this node's exchange (CACP 2.0, ADP Integration)."""

from typing import NamedTuple

from schemas.adp import AdpManifest
from server.domain.agents import identity
from server.domain.directory import DirectoryEntry, protocols_of, words_of
from server.store.connection import Connection
from server.store.sql import SQL

KEPT = 24 * 3600 * 1_000_000
"""Microseconds after which an entry expires unless it is renewed."""


class Registered(NamedTuple):
    """An agent's registration: its manifest, and the agent that registered it."""

    manifest: AdpManifest
    registrar: str
    verified: bool


def put(db: Connection, registered: Registered, *, now: int) -> None:
    """Register an agent, or renew its registration."""
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


def forget(db: Connection, *, now: int) -> None:
    """Delete expired registrations."""
    SQL.forget_directory(db, before=now - KEPT)


def entries(db: Connection, *, now: int) -> list[DirectoryEntry]:
    """The entries that searches look at."""
    return [DirectoryEntry(*row) for row in SQL.directory_entries(db, after=now - KEPT)]


def agents(db: Connection) -> list[str]:
    """Every registered agent, without its version."""
    return [agent for (agent,) in SQL.directory_agents(db)]


def find(db: Connection, agent_id: str, *, now: int) -> Registered | None:
    """The registration of an agent, in any version."""
    row = SQL.directory_listing(db, agent=identity(agent_id), after=now - KEPT)
    if row is None:
        return None
    manifest, registrar, verified = row
    return Registered(AdpManifest.model_validate_json(manifest), registrar, bool(verified))


def count(db: Connection, *, now: int) -> int:
    """The number of agents that searches can find."""
    return int(SQL.directory_count(db, after=now - KEPT))
