"""Params of acp/* (acp-canonical §11, §12.1)."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.acp_calls import InboxParams, SendParams

GOOD: dict[str, Any] = {"to": ["a"], "type": "knowledge.push", "payload": {"summary": "s"}}


def test_params_are_snake_case_as_the_envelope() -> None:
    SendParams.model_validate(GOOD | {"thread_id": "t", "reply_to": "m", "client_id": "c"})
    with pytest.raises(ValidationError):
        SendParams.model_validate(GOOD | {"threadId": "t"})


@pytest.mark.parametrize("name", ["from", "id", "status", "created_at", "updated_at"])
def test_what_the_node_says_a_caller_may_not(name: str) -> None:
    with pytest.raises(ValidationError):
        SendParams.model_validate(GOOD | {name: "x"})


def test_nobody_waits_for_ever() -> None:
    InboxParams.model_validate({"wait": 60})
    with pytest.raises(ValidationError):
        InboxParams.model_validate({"wait": 61})
