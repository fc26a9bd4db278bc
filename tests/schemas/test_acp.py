"""The envelope and its parts (acp-canonical §4-§6)."""

import pytest
from pydantic import ValidationError

from schemas.acp import (
    RESERVED,
    SUPPORTED,
    ACPContext,
    ACPGivenContext,
    ACPGivenPolicy,
    ACPMessageEnvelope,
    ACPPolicy,
    check_type,
    check_version,
)
from tests.schemas.refusals import refusal

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
    """§4; a caller may leave out what is as by default."""
    assert ACPGivenPolicy().whole().model_dump() == ENVELOPE["policy"]
    for wrong in ({}, {"visibility": "team"}):
        with pytest.raises(ValidationError):
            ACPPolicy.model_validate(wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "8f14e45f-ceea-467f-9c1d-2b5d0a6f1c2d"},
        {"id": "01A200D3-C0E1-7539-B1A1-FDDAEBE9D751"},
        {"reply_to": "yesterday's"},
        {"version": "7.0.0"},
        {"version": "1.0"},
        {"policy": {}},
        {"created_at": "yesterday"},
        {"created_at": "2026-02-21"},
        {"created_at": "2026-02-21T09:30:00"},
        {"created_at": "2026-02-30T09:30:00Z"},
        {"created_at": "1026-02-21T09:30:00Z"},
        {"expires_at": "2026-02-21T09:30:00+01:00"},
        {"sequence": 2**53},
        {"sequence": "3"},
    ],
)
def test_what_is_no_envelope(wrong: dict[str, object]) -> None:
    """§3, §4: ids are UUIDv7, times are ISO 8601 UTC, and the major version is ours."""
    with pytest.raises(ValidationError):
        ACPMessageEnvelope.model_validate(ENVELOPE | wrong)


@pytest.mark.parametrize("version", ["1.0.0", "1.7.2"])
def test_a_minor_version_ahead_is_an_envelope(version: str) -> None:
    taken = ACPMessageEnvelope.model_validate(ENVELOPE | {"version": version})
    assert taken.version == version


@pytest.mark.parametrize(
    "path", ["notes.md", "teamspace://core/notes.md", " teamspace://core/notes.md"]
)
def test_an_artifact_is_named_as_the_specification_has_it(path: str) -> None:
    """§6; what a message was once sent with is read as it is."""
    context = {"artifacts": [{"type": "file", "path": path}]}
    assert ACPContext.model_validate(context).artifacts
    assert refusal(ACPGivenContext, context)[0] == "artifacts.0"
    absolute = {"artifacts": [{"type": "file", "path": "/srv/notes.md"}]}
    assert ACPGivenContext.model_validate(absolute).artifacts
