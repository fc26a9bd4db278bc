"""Checks of a message that another node sends, whichever node vouches for it (acp-canonical §4.1,
§12.2, §12.3)."""

from typing import Literal
from uuid import UUID

from schemas.acp_mesh import Letter
from schemas.base import stamp_of
from server.domain.acp import policy
from server.domain.agents import identity
from server.domain.errors import InvalidInput

DAY = 24 * 3600 * 1_000_000
"""How far the time in a message's id may differ from `created_at` (microseconds)."""


def check(letter: Letter, now: int, future_limit: int) -> None:
    """Raises InvalidInput or Forbidden for a message that a correct node would not have sent.

    The sender's node checks who may broadcast and how often (§10.3). Times are stamps.
    """
    message = letter.message
    created = stamp_of(message.created_at)
    if created > now + future_limit:
        raise _invalid("created_at", "must not lie ahead of this node's time")
    if abs(_time_in(message.id) - created) > DAY:
        raise _invalid("id", "its time must be close to created_at")
    broadcast = policy.is_broadcast(message.to)
    named = {identity(agent_id) for agent_id in message.to}
    if message.to != [policy.EVERYONE] and not named.issuperset(letter.recipients):
        raise _invalid("to", "must name every recipient of the letter")
    policy.check(
        message.policy,
        priority=message.priority,
        broadcast=broadcast,
        team=message.team,
        coordinator=True,
    )


def is_over(letter: Letter, now: int, retention: int) -> bool:
    """Whether the message had expired, or outlived its retention, before it arrived. Times and
    lengths are microseconds."""
    expires = letter.message.expires_at
    return (expires is not None and stamp_of(expires) <= now) or (
        stamp_of(letter.message.created_at) < now - retention
    )


def _time_in(message_id: str) -> int:
    return (UUID(message_id).int >> 80) * 1_000


def _invalid(path: Literal["id", "to", "created_at"], problem: str) -> InvalidInput:
    return InvalidInput(f"{path}: {problem}", reason="schema_invalid", path=path)
