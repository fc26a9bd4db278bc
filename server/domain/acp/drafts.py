"""A message as its sender gives it, and the checks that need nothing but the draft itself
(acp-canonical §3, §12.2, §12.3)."""

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import orjson
from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from schemas.acp import (
    PAYLOAD_MAX,
    VERSION,
    ACPContext,
    ACPGivenPolicy,
    ACPMessageType,
    ACPPolicy,
    ACPPriority,
    ACPSupportedType,
    check_type,
    check_version,
)
from schemas.acp_payloads import PAYLOADS
from schemas.base import JsonObject, iso, stamp_of
from server.domain.agents import identity
from server.domain.errors import InvalidInput, TooLarge
from server.domain.invalid import invalid_input

DEFAULT_POLICY = ACPGivenPolicy().whole()
_DEFAULT_POLICY_JSON = DEFAULT_POLICY.model_dump_json()


class Draft(NamedTuple):
    """A message that is not written yet. `to` holds agent ids, or `*` alone; `client_id` is the
    sender's own id for the message."""

    type: ACPMessageType
    to: Sequence[str]
    payload: JsonObject
    policy: ACPPolicy = DEFAULT_POLICY
    priority: ACPPriority = "normal"
    version: str = VERSION
    team: str | None = None
    thread_id: str | None = None
    reply_to: str | None = None
    topic: str | None = None
    sequence: int | None = None
    expires_at: str | None = None
    context: ACPContext | None = None
    client_id: str | None = None


def policy_json(policy: ACPPolicy) -> str:
    """A policy as it is stored. Most messages have the default, whose text is made once."""
    return _DEFAULT_POLICY_JSON if policy is DEFAULT_POLICY else policy.model_dump_json()


def fingerprint(draft: Draft) -> str:
    """SHA-256, hex, of all that the sender gave: equal for a retry of the same message."""
    whole = {
        **draft._asdict(),
        "to": list(draft.to),
        "policy": draft.policy.model_dump(),
        "context": draft.context and draft.context.model_dump(),
    }
    return hashlib.sha256(orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)).hexdigest()


def recipients(draft: Draft) -> list[str]:
    """The recipients as the sender named them, each agent once."""
    return list({identity(agent_id): agent_id for agent_id in draft.to}.values())


def expiry(draft: Draft, now: int) -> str | None:
    """When the message expires, as the store keeps it. `now` is a stamp.

    Raises InvalidInput (`schema_invalid`) for a time that has passed.
    """
    if draft.expires_at is None:
        return None
    stamp = stamp_of(draft.expires_at)
    if stamp <= now:
        raise InvalidInput(
            f"expires_at: must be later than now ({iso(now)})",
            reason="schema_invalid",
            path="expires_at",
        )
    return iso(stamp)


def checked_payload(type: str, version: str, payload: JsonObject) -> bytes:
    """The payload as JSON, checked against its type's model.

    Raises InvalidInput (`schema_invalid`, `type_reserved`, `unsupported_version`) and TooLarge
    (`payload_too_large`).
    """
    _check(check_type, type, "type")
    _check(check_version, version, "version")
    try:
        text = orjson.dumps(payload)
    except (orjson.JSONEncodeError, TypeError):
        raise InvalidInput(
            "payload: is not JSON", reason="schema_invalid", path="payload"
        ) from None
    if len(text) > PAYLOAD_MAX:
        raise TooLarge(
            f"payload: {len(text)} bytes as JSON; the limit is {PAYLOAD_MAX}. Put large content "
            "where the recipients can read it, and name it in context.artifacts",
            reason="payload_too_large",
            path="payload",
            limit=PAYLOAD_MAX,
            size=len(text),
            instead="context.artifacts",
        )
    model = PAYLOADS[cast(ACPSupportedType, type)]
    try:
        model.model_validate(payload, strict=True)
    except ValidationError as error:
        refusal = invalid_input(error, within="payload", reason="schema_invalid")
        refusal.message += f". A payload of {type} takes {payload_members(type)}"
        raise refusal from None
    return text


def payload_members(type: str) -> str:
    """The members of a supported type's payload, in a line.

    >>> payload_members("status.blocked")
    'summary (required), details, blocked_on (required), needs'
    """
    members = PAYLOADS[cast(ACPSupportedType, type)].model_fields
    return ", ".join(
        f"{name} (required)" if member.is_required() else name for name, member in members.items()
    )


def _check(check: Callable[[str], None], value: str, path: str) -> None:
    try:
        check(value)
    except PydanticCustomError as error:
        raise InvalidInput(f"{path}: {error.message()}", reason=error.type, path=path) from None
