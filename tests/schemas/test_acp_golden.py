"""The published schemas take what they should and refuse what they should (acp-canonical §15.2).

Read from the files, with a validator that knows nothing of the models.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from pydantic import TypeAdapter, ValidationError

import schemas
from schemas.acp import SUPPORTED, ACPGivenContext
from schemas.publish import PUBLISHED
from tests.schemas.test_acp import ENVELOPE
from tests.schemas.test_acp_payloads import MINIMAL

FOLDER = Path(schemas.__file__).parent


def problems(name: str, document: object) -> list[str]:
    schema = json.loads((FOLDER / name).read_text())
    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(document)]


WHOLE: dict[str, Any] = ENVELOPE | {
    "team": "alpha",
    "thread_id": "t",
    "reply_to": "01a200d3-c0e1-7539-b1a1-fddaebe9d752",
    "topic": "ports",
    "sequence": 3,
    "expires_at": "2026-02-22T09:30:00.000000+00:00",
    "updated_at": "2026-02-22T09:30:00.000000+00:00",
    "context": {
        "session_id": "s",
        "external_refs": [
            {"type": "ticket", "value": "7", "description": "d", "version": "2"},
        ],
        "artifacts": [
            {
                "type": "file",
                "path": "/a",
                "sha256": "0" * 64,
                "description": "d",
                "version": "v",
                "size_bytes": 7,
                "required": True,
            },
            {"type": "branch", "path": "main"},
        ],
    },
}


def test_a_whole_envelope_is_taken() -> None:
    assert problems("acp.envelope.v1.json", WHOLE) == []
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
        {"context": {"artifacts": [{"type": "file", "path": "notes.md"}]}},
        {"context": {"artifacts": [{"type": "url", "path": "teamspace://core/notes.md"}]}},
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


# --- the schemas and the models ----------------------------------------------------------------


DATES = FormatChecker(formats=())


@DATES.checks("date-time")  # type: ignore[untyped-decorator]
def is_a_date(value: object) -> bool:
    """As RFC 3339 has it; what a pattern can't say is which days there are."""
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return False
    return True


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 3, 1.5, 2**53, 2**53 - 1, "", " ", "x", "3", "true", "*", "1.0.0",
    "1.7.2", "1.0", "01.0.0", "7.0.0", "1.0.0-rc1", "x" * 200, "x" * 201, "x" * 2_001,
    "01a200d3-c0e1-7539-b1a1-fddaebe9d751", "01A200D3-C0E1-7539-B1A1-FDDAEBE9D751",
    "8f14e45f-ceea-467f-9c1d-2b5d0a6f1c2d", "01a200d3-c0e1-7539-c1a1-fddaebe9d751", "yesterday",
    "2026-02-21", "2026-02-21T09:30:00", "2026-02-21T09:30:00Z", "2026-02-21T09:30:00.5+00:00",
    "2026-02-21T09:30:00+01:00", "2026-02-30T09:30:00Z", "2026-02-21T24:30:00Z", "0" * 64,
    "1026-02-21T09:30:00Z", "9999-12-31T23:59:59Z", "2026-02-21 09:30:00Z", 1771666200, "high",
    "pending", "private", "team", "required", "file", "handoff.accept", "task.offer", "other",
    [], ["x"], [""], [1], ["*"], [None], {}, {"x": 1}, [{}],
    "a/b.md", "./a", "~/a", "C:\\a", "c:/a", "C:a", "\\\\srv\\a", "\\a", " /a", "/a/../b", "branch",
    "teamspace://x/a", "TeamSpace:x", " \t\u00a0\u3000teamspace://x", "/teamspace:", "ateamspace:",
    "url", "\n/a", "\ufeffteamspace:x", "\u001cteamspace:x", "\u0085teamspace:x", "x" * 2_000,
]  # fmt: skip


def mutations(document: Any) -> Iterator[Any]:
    """The document with each part of it, at any depth, put in the place of another value, left out
    or added to."""
    yield from VALUES
    if isinstance(document, dict):
        yield {**document, "surprise": 1}
        for name, part in document.items():
            yield {key: value for key, value in document.items() if key != name}
            for changed in mutations(part):
                yield {**document, name: changed}
    if isinstance(document, list):
        yield [*document, *document]
        for place, part in enumerate(document):
            for changed in mutations(part):
                yield [*document[:place], changed, *document[place + 1 :]]


WHOLES: dict[str, Any] = {
    "acp.envelope.v1.json": WHOLE,
    **{f"acp.{type}.v1.json": {"summary": "s", **MINIMAL[type]} for type in SUPPORTED},
}


@pytest.mark.parametrize("name", WHOLES)
def test_the_published_schema_and_the_model_refuse_the_same(name: str) -> None:
    """§12.2, §15.2: whoever reads the schema sends what the node takes, and nothing else."""
    schema = Draft202012Validator(json.loads((FOLDER / name).read_text()), format_checker=DATES)
    model = PUBLISHED[name]
    taken = 0
    for document in mutations(WHOLES[name]):
        try:
            model.model_validate_json(json.dumps(document), strict=True)
            takes = True
        except ValidationError:
            takes = False
        assert schema.is_valid(document) == takes, json.dumps(document)
        taken += takes
    assert taken


def test_what_may_be_sent_is_published_too() -> None:
    """§6: the params of acp/send say of artifacts what the node takes."""
    adapter = TypeAdapter(ACPGivenContext)
    schema = Draft202012Validator(adapter.json_schema())
    for document in mutations({"artifacts": WHOLE["context"]["artifacts"]}):
        try:
            adapter.validate_python(document)
            takes = True
        except ValidationError:
            takes = False
        assert schema.is_valid(document) == takes, json.dumps(document)


@pytest.mark.parametrize(
    ("member", "value"), [("sequence", 3.0), ("created_at", "2026-02-30T09:30:00Z")]
)
def test_what_a_schema_cannot_say_is_in_its_description(member: str, value: object) -> None:
    """Two rules of the envelope are for its reader: how a number is written, and which days there
    are (`format` asserts nothing by itself)."""
    schema = json.loads((FOLDER / "acp.envelope.v1.json").read_text())
    wrong = ENVELOPE | {member: value}
    assert Draft202012Validator(schema).is_valid(wrong)
    with pytest.raises(ValidationError):
        PUBLISHED["acp.envelope.v1.json"].model_validate_json(json.dumps(wrong))
    assert "without a fraction" in schema["description"]
    assert "a valid date" in schema["description"]
