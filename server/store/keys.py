"""Keys of callers (CACP 2.0, Headers; design §6): `cacp_sk_…`, stored only as hashes."""

import re
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import orjson

from server.domain.agents import RunnerKey, identity, same_agent
from server.store.connection import Connection
from server.store.sql import SQL, Row

KeyTrust = Literal["verified", "known", "peer", "runner"]

PREFIX = "cacp_sk_"
OPERATOR_PREFIX = "cacp_sk_operator_"
"""Begins the operator's key, so that it is never taken for an agent's."""
PATTERN = re.compile(rb"cacp_sk_[A-Za-z0-9_-]{16,128}")
"""Matches a key."""


class Key(NamedTuple):
    """A key as it is listed, without the key itself. Times are stamps."""

    key_id: str
    agent_id: str
    repo: str
    trust: KeyTrust
    created_at: int
    revoked_at: int | None
    projects: frozenset[str] | None = None
    """The projects that the key is limited to; None for all."""
    human: bool = False


class Holder(NamedTuple):
    """The agent and the rights behind a key."""

    agent_id: str
    repo: str
    trust: KeyTrust
    revoked_at: int | None
    projects: frozenset[str] | None = None
    """The projects that the key is limited to; None for all."""
    human: bool = False


def new_key() -> str:
    """A key that nobody can guess: 256 random bits."""
    return f"{PREFIX}live_{secrets.token_urlsafe(32)}"


def new_operator_key() -> str:
    """An operator's key, as hard to guess."""
    return f"{OPERATOR_PREFIX}{secrets.token_urlsafe(32)}"


def hash_of(key: bytes) -> str:
    """The stored hash of a key. Random keys of 256 bits need no salt and no slow hash."""
    return sha256(key).hexdigest()


def add(
    db: Connection,
    key: str,
    *,
    agent_id: str,
    repo: str,
    trust: KeyTrust = "verified",
    human: bool = False,
    public_key: str | None = None,
    projects: Iterable[str] = (),
    now: int,
) -> str | None:
    """Register `key` and return its id; None when it was registered or revoked before. Without
    `projects` the key is for all. `public_key` is that with which a runner signs receipts."""
    key_id = f"key_{secrets.token_hex(6)}"
    added = SQL.insert_key(
        db,
        key_id=key_id,
        hash=hash_of(key.encode()),
        agent_id=agent_id,
        repo=repo,
        trust=trust,
        created_at=now,
        human=human,
        public_key=public_key,
    )
    if not added:
        return None
    for project_id in set(projects):
        SQL.insert_key_project(db, key_id=key_id, project_id=project_id)
    return key_id


def holder(db: Connection, hashed: str) -> Holder | None:
    """The holder of the key with this hash, also of a revoked one; None for an unknown key."""
    row: Row | None = SQL.key_by_hash(db, hash=hashed)
    return Holder._make(_read(row)) if row else None


def _read(row: Row) -> list[Any]:
    """A row with its last two columns, the projects (JSON) and the human flag, decoded."""
    *rest, projects, human = row
    return [*rest, frozenset(orjson.loads(projects)) or None, bool(human)]


def runner(db: Connection, public_key: str) -> RunnerKey | None:
    """The runner's key with this public part, also a revoked one; None for an unknown one."""
    row: Row | None = SQL.runner_key(db, public_key=public_key)
    if row is None:
        return None
    agent_id, repo, revoked_at, projects = row
    limited = frozenset(orjson.loads(projects)) or None
    return RunnerKey(agent_id, repo, revoked_at is not None, limited)


def every(db: Connection) -> list[Key]:
    """Every key that was ever made, oldest first."""
    return [Key._make(_read(row)) for row in SQL.all_keys(db)]


def revoke(db: Connection, key_id: str, *, now: int) -> bool:
    """Revoke a key for good. False when there is no such active key."""
    return bool(SQL.revoke_key(db, key_id=key_id, revoked_at=now))


def any_active(db: Connection) -> bool:
    """Whether there is any active key."""
    return SQL.any_active_key(db) is not None


def is_keyed(db: Connection, agent_id: str) -> bool:
    """Whether the agent, in any of its versions, has an active key, other than as a runner."""
    alike = SQL.agents_with_key(db, identity=identity(agent_id))
    return any(same_agent(known_id, agent_id) for (known_id,) in alike)


def is_operators(db: Connection, hashed: str) -> bool:
    """Whether the operator's key has this hash."""
    stored: str | None = SQL.operator_key(db)
    return stored == hashed


def has_operator(db: Connection) -> bool:
    """Whether the node has an operator's key."""
    return SQL.operator_key(db) is not None


def put_operator(db: Connection, key: str) -> None:
    """Make `key` the operator's; the one before is no longer valid."""
    SQL.put_operator_key(db, hash=hash_of(key.encode()))


def drop_operator(db: Connection) -> None:
    """Leave the node without an operator's key."""
    SQL.drop_operator_key(db)
