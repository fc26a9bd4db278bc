"""The records of project tokens, and the secret that signs them (design §6)."""

import secrets
from typing import NamedTuple

from server.store.connection import Connection
from server.store.sql import SQL


class Token(NamedTuple):
    """A token as it is listed; the token itself is not stored. Times are stamps."""

    token_id: str
    project_id: str
    agent_id: str
    created_at: int
    expires_at: int
    revoked_at: int | None


def node_secret(db: Connection) -> bytes:
    """The 32 bytes that sign this node's tokens, created at first use."""
    SQL.insert_secret(db, value=secrets.token_hex(32))
    return bytes.fromhex(SQL.node_secret(db))


def add(db: Connection, *, project_id: str, agent_id: str, now: int, expires_at: int) -> str:
    """Record a token that is about to be issued; returns its id."""
    token_id = f"tok_{secrets.token_hex(6)}"
    SQL.insert_token(
        db,
        token_id=token_id,
        project_id=project_id,
        agent_id=agent_id,
        created_at=now,
        expires_at=expires_at,
    )
    return token_id


def is_active(db: Connection, token_id: str) -> bool:
    """Whether the token was recorded here and is not revoked."""
    return SQL.active_token(db, token_id=token_id) is not None


def every(db: Connection) -> list[Token]:
    """Every token that was ever made, oldest first."""
    return [Token(*row) for row in SQL.all_tokens(db)]


def revoke(db: Connection, token_id: str, *, now: int) -> bool:
    """Revoke a token for good. False when there is no such token, or it was revoked before."""
    return bool(SQL.revoke_token(db, token_id=token_id, revoked_at=now))
