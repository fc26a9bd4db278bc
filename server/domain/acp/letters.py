"""What a node checks of a message that another node brings, whoever vouches for it
(acp-canonical §4.1, §12.2, §12.3)."""

from typing import Literal
from uuid import UUID

from schemas.acp_mesh import Letter
from schemas.base import stamp_of
from server.domain.acp import policy
from server.domain.agents import identity
from server.domain.errors import InvalidInput

DAY = 24 * 3600 * 1_000_000
"""How far a message's id, which holds a time, may be from when it was made (microseconds)."""


def check(letter: Letter, now: int, future_limit: int) -> None:
    """Raises InvalidInput, or Forbidden, for what no node of ours would have let out.

    Who may broadcast, and how often, is for the sender's node to say (§10.3). Times are stamps.
    """
    message = letter.message
    created = stamp_of(message.created_at)
    if created > now + future_limit:
        raise _invalid("created_at", "it is ahead of this node's time")
    if abs(_time_in(message.id) - created) > DAY:
        raise _invalid("id", "it is not of the time when the message was made")
    broadcast = policy.is_broadcast(message.to)
    named = {identity(agent_id) for agent_id in message.to}
    if message.to != [policy.EVERYONE] and not named.issuperset(letter.recipients):
        raise _invalid("to", "it names not all whom the message is brought for")
    policy.check(
        message.policy,
        priority=message.priority,
        broadcast=broadcast,
        team=message.team,
        coordinator=True,
    )


def is_over(letter: Letter, now: int, retention: int) -> bool:
    """Whether the message's time was over before it came; times and lengths are microseconds."""
    expires = letter.message.expires_at
    return (expires is not None and stamp_of(expires) <= now) or (
        stamp_of(letter.message.created_at) < now - retention
    )


def _time_in(message_id: str) -> int:
    return (UUID(message_id).int >> 80) * 1_000


def _invalid(path: Literal["id", "to", "created_at"], problem: str) -> InvalidInput:
    return InvalidInput(f"{path}: {problem}", reason="schema_invalid", path=path)
