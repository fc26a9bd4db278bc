"""The envelope and its parts (acp-canonical §4-§6)."""

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.acp import (
    RESERVED,
    SUPPORTED,
    ACPMessageEnvelope,
    ACPPolicy,
    check_type,
    check_version,
)

ENVELOPE = {
    "id": "01a200d3-c0e1-7539-b1a1-fddaebe9d751",
    "protocol": "acp",
    "version": "1.0.0",
    "from": "aid://example.com/a@1.0.0",
    "to": ["aid://example.com/b@1.0.0"],
    "type": "knowledge.push",
    "priority": "normal",
    "status": "pending",
    "payload": {"summary": "hello"},
    "policy": {"visibility": "private", "sensitivity": "low", "human_gate": "none"},
    "created_at": "2026-02-21T09:30:00.000000+00:00",
}


def test_an_envelope_has_the_members_of_the_specification() -> None:
    assert set(ACPMessageEnvelope.model_json_schema(by_alias=True)["properties"]) == {
        "id", "protocol", "version", "from", "to", "team", "thread_id", "reply_to", "type", "topic",
        "priority", "status", "sequence", "expires_at", "payload", "policy", "context",
        "created_at", "updated_at",
    }  # fmt: skip
    ACPMessageEnvelope.model_validate(ENVELOPE)


@pytest.mark.parametrize("required", [*ENVELOPE])
def test_what_an_envelope_must_have(required: str) -> None:
    with pytest.raises(ValidationError):
        ACPMessageEnvelope.model_validate({k: v for k, v in ENVELOPE.items() if k != required})


def test_a_recipient_alone_is_a_list_too() -> None:
    """§2.5."""
    wrongs: tuple[object, ...] = ([], "aid://example.com/b")
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            ACPMessageEnvelope.model_validate(ENVELOPE | {"to": wrong})


def test_types_are_those_of_the_catalogue() -> None:
    """§5.1."""
    assert (len(SUPPORTED), len(RESERVED)) == (12, 12)
    for type in SUPPORTED:
        check_type(type)


def test_another_major_version_is_refused() -> None:
    """§3."""
    check_version("1.7.2")
    with pytest.raises(Exception, match="another major version"):
        check_version("2.0.0")


def test_a_policy_says_all_three() -> None:
    assert TypeAdapter(ACPPolicy).validate_python({}).model_dump() == ENVELOPE["policy"]
