"""The model of a compliance test (acpcomply, JSON Template Test Schema)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.jsont import ComplianceTest

STEP: dict[str, Any] = {"delayMs": 1}


def made(**fields: Any) -> ComplianceTest:
    return ComplianceTest.model_validate(
        {"title": "t", "severity": "required", "steps": [STEP], **fields}
    )


def test_defaults_are_the_specifications() -> None:
    test = made(steps=[{"expect": {"messages": [{"response": {}}]}}, {"newSession": {}}])
    assert test.transport == "stdio"
    assert test.init.permission_policy == "yolo"
    assert test.steps[0].expect is not None
    assert test.steps[0].expect.timeout_ms == 10_000
    assert test.steps[1].new_session is not None
    assert test.steps[1].new_session.capture == "sessionId"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"steps": []}, "at least 1"),
        ({"steps": [{}]}, "exactly one of"),
        ({"steps": [STEP | {"send": {}}]}, "exactly one of"),
        ({"steps": [{"delayMs": -1}]}, "greater than or equal to 0"),
        ({"steps": [{"expect": {"messages": [{}]}}]}, "exactly one of response"),
        ({"preconditions": [{"mustBe": True}]}, "exactly one of agentCap"),
        ({"init": {"permissionPolicy": "root"}}, "'none', 'read', 'write' or 'yolo'"),
        ({"severity": None}, "'required' or 'optional'"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        made(**fields)
