"""What is checked of a draft before anything is loaded (acp-canonical §12.2, §12.3)."""

from typing import Any

import pytest

from schemas.acp import PAYLOAD_MAX
from schemas.base import iso
from server.domain.acp.drafts import (
    Draft,
    checked_payload,
    expiry,
    fingerprint,
    payload_members,
    recipients,
)
from server.domain.errors import InvalidInput, Refusal, TooLarge

NOW = 1_800_000_000_000_000
BEN = "aid://example.com/ben"


def draft(**given: Any) -> Draft:
    return Draft(**{"type": "knowledge.push", "to": [BEN], "payload": {"summary": "s"}} | given)


def test_a_retry_has_the_same_fingerprint_and_another_message_a_different_one() -> None:
    assert fingerprint(draft()) == fingerprint(draft(to=(BEN,)))
    assert fingerprint(draft()) != fingerprint(draft(payload={"summary": "t"}))


def test_an_agent_is_a_recipient_once_whatever_its_version() -> None:
    assert recipients(draft(to=[f"{BEN}@1.0.0", f"{BEN}@2.0.0"])) == [f"{BEN}@2.0.0"]


def test_a_message_expires_in_the_future_or_never() -> None:
    assert expiry(draft(), NOW) is None
    assert expiry(draft(expires_at=iso(NOW + 1)), NOW) == iso(NOW + 1)
    with pytest.raises(InvalidInput) as refused:
        expiry(draft(expires_at=iso(NOW)), NOW)
    assert refused.value.message == f"expires_at: must be later than now ({iso(NOW)})"


@pytest.mark.parametrize(
    ("type", "version", "payload", "kind", "reason"),
    [
        ("knowledge.push", "2.0.0", {"summary": "s"}, InvalidInput, "unsupported_version"),
        ("knowledge.push", "1.0.0", {}, InvalidInput, "schema_invalid"),
        ("knowledge.push", "1.0.0", {"summary": {1, 2}}, InvalidInput, "schema_invalid"),
        ("knowledge.push", "1.0.0", {"summary": "s" * PAYLOAD_MAX}, TooLarge, "payload_too_large"),
    ],
)
def test_a_wrong_payload_is_refused(
    type: str, version: str, payload: Any, kind: type[Refusal], reason: str
) -> None:
    with pytest.raises(kind) as refused:
        checked_payload(type, version, payload)
    assert refused.value.data["reason"] == reason


def test_a_refused_payload_says_what_its_type_takes() -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_payload("knowledge.query", "1.0.0", {"text": "Which port?"})
    assert refused.value.message == (
        "payload.summary is required; payload.question is required; payload.text is not known "
        "here. A payload of knowledge.query takes summary (required), details, question (required)"
    )
    assert payload_members("status.complete") == "summary (required), details"


def test_a_payload_is_kept_as_it_was_given() -> None:
    assert checked_payload("knowledge.push", "1.0.0", {"summary": "s"}) == b'{"summary":"s"}'
