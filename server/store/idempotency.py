"""The idempotency registry: stored answers for retried calls (design §3)."""

from typing import NamedTuple

from server.store.connection import Connection
from server.store.sql import SQL

KEPT = 24 * 3600 * 1_000_000
"""Microseconds for which an answer is kept."""


class KeptAnswer(NamedTuple):
    """The result, as JSON, of the first call with a key, and the hash of its params."""

    params_hash: str
    result: str
    at: int


def find(db: Connection, scope: str, sure: int) -> KeptAnswer | None:
    """The unexpired answer for a key; `sure` is the sure time, a stamp."""
    row = SQL.answer_for(db, scope=scope)
    answer = KeptAnswer(*row) if row else None
    return answer if answer and answer.at > sure - KEPT else None


def keep(db: Connection, scope: str, answer: KeptAnswer, sure: int) -> None:
    """Store an answer, and delete those that are certainly older than a day."""
    SQL.forget_answers(db, before=sure - KEPT)
    SQL.put_answer(db, scope=scope, **answer._asdict())
