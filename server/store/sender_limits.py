"""The rate limits and circuit breakers of senders, and the audit events (acp-canonical §12.4,
§12.8)."""

from typing import Any

import orjson

from server.domain.acp.breaker import CLOSED, CircuitBreaker
from server.domain.acp.message_rate import Kind
from server.store.connection import Connection
from server.store.sql import SQL, plain

# On the hot path.
_BREAKER = plain(SQL.breaker)
_STAMPS = plain(SQL.send_stamps)
_PUT_STAMPS = plain(SQL.put_send_stamps)


def stamps(db: Connection, sender: str, kind: Kind) -> list[int]:
    """The stamps of the sender's messages that its rate limit still counts."""
    row = db.execute(_STAMPS, (sender, kind)).fetchone()
    return orjson.loads(row[0]) if row else []


def put_stamps(db: Connection, sender: str, kind: Kind, stamps: list[int]) -> None:
    db.execute(_PUT_STAMPS, (sender, kind, orjson.dumps(stamps).decode()))


def breaker(db: Connection, name: str) -> CircuitBreaker:
    row = db.execute(_BREAKER, (name,)).fetchone()
    return CircuitBreaker(*row) if row else CLOSED


def put_breaker(db: Connection, name: str, breaker: CircuitBreaker) -> None:
    if breaker == CLOSED:
        SQL.drop_breaker(db, name=name)
    else:
        SQL.put_breaker(db, name=name, **breaker._asdict())


def audit(
    db: Connection,
    *,
    at: str,
    actor: str,
    action: str,
    outcome: str,
    message_id: str | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append an audit event. Audit events are never changed or removed."""
    SQL.append_audit(
        db,
        at=at,
        actor=actor,
        action=action,
        outcome=outcome,
        message_id=message_id,
        detail=orjson.dumps(detail).decode() if detail else None,
    )
