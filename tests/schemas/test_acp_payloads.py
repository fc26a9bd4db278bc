"""Payloads by type (acp-canonical §5.1, §7.3)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.acp import SUPPORTED
from schemas.acp_payloads import PAYLOADS

MINIMAL: dict[str, dict[str, Any]] = {
    "handoff.initiate": {"handoff_id": "h"},
    "handoff.accept": {"handoff_id": "h"},
    "handoff.reject": {"handoff_id": "h", "reason": "timeout_risk", "detail": "two days late"},
    "handoff.complete": {"handoff_id": "h"},
    "status.update": {},
    "status.blocked": {"blocked_on": "the schema"},
    "status.complete": {},
    "knowledge.push": {},
    "knowledge.query": {"question": "Which port?"},
    "knowledge.response": {"query_id": "m", "answer": "8080"},
    "system.ack": {"message_id": "m"},
    "system.error": {"code": "disk_full"},
}


def test_every_supported_type_has_a_model() -> None:
    assert set(PAYLOADS) == set(SUPPORTED) == set(MINIMAL)


@pytest.mark.parametrize("type", SUPPORTED)
def test_a_payload_needs_a_summary_and_what_its_type_says(type: Any) -> None:
    model = PAYLOADS[type]
    whole = {"summary": "s", **MINIMAL[type]}
    model.model_validate(whole | {"details": {"any": ["thing"]}}, strict=True)
    for name in whole:
        with pytest.raises(ValidationError):
            model.model_validate({k: v for k, v in whole.items() if k != name})
    with pytest.raises(ValidationError):
        model.model_validate(whole | {"unknown": 1})


def test_a_rejection_has_a_reason_of_the_list() -> None:
    """§7.3."""
    with pytest.raises(ValidationError):
        PAYLOADS["handoff.reject"].model_validate(
            {"summary": "s", "handoff_id": "h", "reason": "bored", "detail": "d"}
        )
