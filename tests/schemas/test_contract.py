"""Contracts and their methods (CACP 2.0, Contract; Contract Methods)."""

from typing import Any

import pytest

from schemas.contract import (
    Contract,
    GetContractParams,
    ListContractsParams,
    ProposeParams,
    RespondParams,
    RespondResult,
    UpdateContractParams,
)
from tests.schemas.refusals import refusal, without

PLACE = {"projectId": "f0ebc7e6", "contractId": "695296cc"}
PROPOSAL: dict[str, Any] = {
    "projectId": "f0ebc7e6",
    "type": "api_endpoint",
    "name": "Get User Profile",
    "content": {"method": "GET", "path": "/api/v1/users/profile"},
}
CONTRACT: dict[str, Any] = {
    "contract_id": "695296cc",
    "type": "api_endpoint",
    "name": "Get User Profile",
    "version": 2,
    "status": "agreed",
    "content": {"method": "GET"},
    "proposed_by": "r1",
    "implementations": [{"repo_id": "r1", "agent_id": "a", "status": "pending"}],
    "history": [
        {"version": 1, "content": {}, "proposed_by": "r1", "timestamp": "2026-02-21T09:30:00"}
    ],
    "created_at": "2026-02-21T09:30:00",
    "updated_at": "2026-02-21T09:30:00Z",
}


def test_the_specs_examples_are_accepted() -> None:
    assert ProposeParams.model_validate(PROPOSAL).name == "Get User Profile"
    respond = PLACE | {"action": "agree", "comment": "Looks good!"}
    assert RespondParams.model_validate(respond).action == "agree"
    assert Contract.model_validate(CONTRACT).implementations[0].files == []


@pytest.mark.parametrize("name", ["changeNote", "changeNotes"])
def test_clients_spell_the_note_of_an_update_in_two_ways(name: str) -> None:
    params = UpdateContractParams.model_validate(PLACE | {"content": {}, name: "nullable"})
    assert params.change_note == "nullable"


@pytest.mark.parametrize("change", ["use cursor", {"paging": "cursor"}, ["a"], None])
def test_a_suggested_change_is_any_json(change: Any) -> None:
    sent = PLACE | {"action": "request_change", "suggestedChange": change}
    assert RespondParams.model_validate(sent).suggested_change == change


def test_lists_and_history_have_defaults() -> None:
    assert ListContractsParams.model_validate({"projectId": "p"}).limit == 1_000
    assert GetContractParams.model_validate(PLACE).include_history is False


def test_a_result_names_the_status_in_both_ways() -> None:
    result = RespondResult(
        status="change_requested", version=1, contract_status="negotiating", contract_version=1
    )
    assert result.model_dump(by_alias=True) == {
        "status": "change_requested",
        "version": 1,
        "contractStatus": "negotiating",
        "contractVersion": 1,
    }


@pytest.mark.parametrize(
    ("sent", "where", "message"),
    [
        (without(PROPOSAL, "projectId"), "projectId", "Field required"),
        (PROPOSAL | {"type": "endpoint"}, "type", "Input should be 'api_endpoint', 'event_schema'"),
        (PROPOSAL | {"content": "GET /"}, "content", "Input should be a valid dictionary"),
        (PROPOSAL | {"name": ""}, "name", "String should have at least 1 character"),
        (PROPOSAL | {"parties": []}, "parties", "List should have at least 1 item"),
        (PROPOSAL | {"urgent": True}, "urgent", "Extra inputs are not permitted"),
    ],
)
def test_a_proposal_is_refused_where_it_is_wrong(
    sent: dict[str, Any], where: str, message: str
) -> None:
    place, said = refusal(ProposeParams, sent)
    assert place == where
    assert said.startswith(message)


def test_an_action_is_one_of_three() -> None:
    assert refusal(RespondParams, PLACE | {"action": "shrug"}) == (
        "action",
        "Input should be 'agree', 'request_change' or 'reject'",
    )


def test_versions_count_from_1() -> None:
    sent = PLACE | {"content": {}, "version": 0}
    assert refusal(UpdateContractParams, sent) == (
        "version",
        "Input should be greater than or equal to 1",
    )
