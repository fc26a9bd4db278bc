"""The published schemas take what they should and refuse what they should (acp-canonical §15.2).

Read from the files, with a validator that knows nothing of the models.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

import schemas
from schemas.acp import SUPPORTED
from tests.schemas.test_acp import ENVELOPE
from tests.schemas.test_acp_payloads import MINIMAL

FOLDER = Path(schemas.__file__).parent


def problems(name: str, document: object) -> list[str]:
    schema = json.loads((FOLDER / name).read_text())
    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


def test_a_whole_envelope_is_taken() -> None:
    whole: dict[str, Any] = ENVELOPE | {
        "team": "alpha",
        "thread_id": "t",
        "reply_to": "m",
        "topic": "ports",
        "sequence": 3,
        "expires_at": "2026-02-22T09:30:00.000000+00:00",
        "updated_at": "2026-02-22T09:30:00.000000+00:00",
        "context": {
            "session_id": "s",
            "external_refs": [{"type": "ticket", "value": "7", "version": "2"}],
            "artifacts": [{"type": "file", "path": "/a", "sha256": "0" * 64, "required": True}],
        },
    }
    assert problems("acp.envelope.v1.json", whole) == []
    assert problems("acp.envelope.v1.json", ENVELOPE) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": "aid://example.com/b"},
        {"to": []},
        {"protocol": "smtp"},
        {"version": "one"},
        {"priority": "urgent"},
        {"status": "lost"},
        {"type": "chat"},
        {"policy": {"visibility": "public"}},
        {"signed_by": "somebody"},
        {"context": {"artifacts": [{"type": "file", "path": "/a", "sha256": "short"}]}},
        {"context": {"external_refs": [{"type": "teamspace", "value": "x"}]}},
    ],
)
def test_what_is_no_envelope_is_refused(wrong: dict[str, Any]) -> None:
    assert problems("acp.envelope.v1.json", ENVELOPE | wrong)


@pytest.mark.parametrize("type", SUPPORTED)
def test_each_payload_is_taken_whole_and_refused_without_a_part(type: str) -> None:
    name = f"acp.{type}.v1.json"
    whole = {"summary": "s", **MINIMAL[type]}
    assert problems(name, whole | {"details": {"any": [1]}}) == []
    for member in whole:
        assert problems(name, {key: value for key, value in whole.items() if key != member})
    assert problems(name, whole | {"mood": "good"})
