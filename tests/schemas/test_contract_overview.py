"""cacp/contract/overview on the wire."""

import pytest
from pydantic import ValidationError

from schemas.contract_overview import ChangesSince, ContractResponse, OverviewParams


def test_params() -> None:
    given = {"projectId": "p", "contractId": "c"}
    assert not OverviewParams.model_validate(given).include_history
    with pytest.raises(ValidationError):
        OverviewParams.model_validate(given | {"view": "timeline"})


def test_a_response_has_any_suggested_change() -> None:
    response = {
        "repoId": "r",
        "agentId": "aid://a",
        "action": "request_change",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    for change in ({"a": 1}, ["a"], "text", 3):
        model = ContractResponse.model_validate(response | {"suggestedChange": change})
        assert model.suggested_change == change


def test_changes_since_a_version() -> None:
    change = {
        "path": "$.a",
        "rule": "value_added",
        "provider": "unknown",
        "consumer": "unknown",
        "after": "1",
        "why": "Its effect can't be decided from the content.",
    }
    since = {
        "verdict": "unknown",
        "provider": "unknown",
        "consumer": "unknown",
        "changes": [change],
        "moreChanges": 0,
        "version": 1,
        "basis": "agreed",
        "lines": ["+ a: 1"],
        "more": 0,
    }
    model = ChangesSince.model_validate(since)
    assert model.model_dump(by_alias=True, exclude_none=True) == since
