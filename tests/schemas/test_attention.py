"""Params and results of cacp/attention/*."""

import pytest
from pydantic import ValidationError

from schemas.attention import ClaimAttentionParams, ListAttentionParams, ListAttentionResult

STEP = {"method": "acp/inbox", "params": {}}
ITEM = {
    "id": "mail-0123456789abcdef01234567",
    "kind": "mail",
    "urgency": "normal",
    "subject": {"type": "mailbox", "id": "a", "name": "inbox"},
    "since": "2026-01-01T00:00:00.000000+00:00",
    "summary": "1 unread message",
    "detail": {},
    "next": [STEP],
}


def test_all_params_are_optional() -> None:
    params = ListAttentionParams.model_validate({})
    assert (params.limit, params.urgent_only, params.after) == (50, False, None)


@pytest.mark.parametrize(
    "given", [{"kinds": []}, {"kinds": ["sleep"]}, {"limit": 201}, {"after": ""}, {"urgent": True}]
)
def test_wrong_params_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ListAttentionParams.model_validate(given)


def test_a_result() -> None:
    result = {"items": [ITEM], "counts": {"mail": 1}, "total": 1, "urgent": 0}
    assert ListAttentionResult.model_validate(result).items[0].next[0].tool is None


def test_a_claim_names_its_session() -> None:
    params = ClaimAttentionParams.model_validate({"session": "s"})
    assert (params.urgent, params.again, params.received, params.wait) == (False, False, None, 0)


@pytest.mark.parametrize(
    "given", [{}, {"session": ""}, {"session": "s", "size": 10}, {"session": "s", "wait": 61}]
)
def test_wrong_claims_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ClaimAttentionParams.model_validate(given)
