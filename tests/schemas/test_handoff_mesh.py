"""What nodes say to each other about handoffs (acp-canonical §7)."""

from typing import get_args

import pytest
from pydantic import ValidationError

from schemas.handoff_mesh import HandoffCallParams, HandoffCallResult, RefusalKind

ID = "019a0000-0000-7000-8000-000000000000"


def test_a_forwarded_call_is_checked_as_the_agents_own() -> None:
    given = {"source_agent": "n", "agent": "a", "call": {"action": "get", "handoff_id": ID}}
    assert HandoffCallParams.model_validate(given).call.action == "get"
    for call in ({"action": "get"}, {"action": "get", "handoff_id": ID, "from": "b"}, {}):
        with pytest.raises(ValidationError):
            HandoffCallParams.model_validate(given | {"call": call})


def test_a_refusal_is_of_a_kind_that_a_step_has() -> None:
    refusal = {"message": "m", "data": {"reason": "r"}}
    for kind in get_args(RefusalKind):
        HandoffCallResult.model_validate({"refusal": refusal | {"kind": kind}})
    with pytest.raises(ValidationError):
        HandoffCallResult.model_validate({"refusal": refusal | {"kind": "Unavailable"}})
