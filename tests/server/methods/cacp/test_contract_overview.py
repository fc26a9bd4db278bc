"""cacp/contract/overview: what a reader of a contract needs for the next step."""

from typing import Any

import pytest

from tests.support.node import RpcError
from tests.support.team import CONTENT, FRONTEND, FRONTEND_AGENT, Team


def overview(agent: Any, contract: str, **params: Any) -> Any:
    return agent("contract/overview", contractId=contract, **params)


def test_the_other_partys_request_and_what_changed_since(team: Team) -> None:
    contract = team.agreed()
    asked = {"body": ["name", "mail"]}
    team.frontend(
        "contract/respond",
        contractId=contract,
        action="request_change",
        comment="Add the mail",
        suggestedChange=asked,
    )
    shown = overview(team.backend, contract)
    [response] = shown["responses"]
    assert (response["action"], response["comment"]) == ("request_change", "Add the mail")
    assert response["suggestedChange"] == asked
    assert (response["name"], response["agentId"]) == (FRONTEND, FRONTEND_AGENT)
    assert shown["contract"]["content"] == CONTENT
    assert {party["name"] for party in shown["parties"]} == {FRONTEND, "backend-api"}
    assert "changesSince" not in shown, "the backend wrote the current version"

    update = {**CONTENT, "path": "/api/v2/users/profile", "body": ["mail"]}
    team.backend("contract/update", contractId=contract, content=update, changeNote="As asked")
    shown = overview(team.frontend, contract)
    assert shown["responses"] == []
    assert shown["changeNote"] == "As asked"
    since = shown["changesSince"]
    assert (since["version"], since["basis"], since["more"]) == (1, "previous", 0)
    assert since["lines"][-1] == '+ body: ["mail"]'
    assert shown["conflicts"] == 0


def test_changes_since_the_version_that_the_caller_agreed_to(team: Team) -> None:
    contract = team.proposed()
    team.frontend("contract/update", contractId=contract, content={**CONTENT, "v": 2})
    team.backend("contract/update", contractId=contract, content={**CONTENT, "v": 3})
    since = overview(team.frontend, contract)["changesSince"]
    lines = ["- v: 2", "+ v: 3"]
    assert since | {"version": 2, "basis": "agreed", "lines": lines, "more": 0} == since
    assert (since["verdict"], since["provider"]) == ("unknown", "unknown")
    assert [change["path"] for change in since["changes"]] == ["$.v"]
    assert "changesSince" not in overview(team.backend, contract), "it wrote that"
    stranger = team.node.key("aid://example.com/reader@1.0.0", "elsewhere")
    shown = team.node.call(
        "cacp/contract/overview", key=stranger, projectId=team.project, contractId=contract
    )
    assert shown["changesSince"] == since | {"basis": "previous"}
    assert shown["ownSteps"] == []
    [awaited] = shown["awaitedSteps"]
    assert (awaited["kind"], awaited["name"]) == ("respond", FRONTEND)
    [item] = team.frontend("attention/list", kinds=["respond"])["items"]
    assert (awaited["id"], awaited["since"]) == (item["id"], item["since"])


def test_the_callers_own_step_is_that_of_attention(team: Team) -> None:
    contract = team.proposed()
    [own] = overview(team.frontend, contract)["ownSteps"]
    [item] = team.frontend("attention/list", kinds=["respond"])["items"]
    assert own == {name: item[name] for name in own}
    assert overview(team.backend, contract)["ownSteps"] == []


def test_a_failed_verification_with_its_report(team: Team) -> None:
    contract = team.implemented()
    details = {"case": "empty name", "status": 500}
    team.frontend(
        "implementation/verify",
        contractId=contract,
        result="failure",
        notes="500 for an empty name",
        failureDetails=details,
    )
    shown = overview(team.backend, contract, includeHistory=True)
    assert shown["round"] == 2
    [failed] = shown["verifications"]
    assert (failed["round"], failed["result"], failed["notes"]) == (
        1,
        "failure",
        "500 for an empty name",
    )
    assert failed["failureDetails"] == details
    assert {work["status"] for work in shown["contract"]["implementations"]} == {"needs_revision"}
    assert shown["contract"]["history"] == []


def test_a_contract_that_is_not_there(team: Team) -> None:
    with pytest.raises(RpcError, match="There is no contract none"):
        overview(team.backend, "none")


def test_who_provides_and_who_consumes(team: Team) -> None:
    shown = overview(team.frontend, team.proposed())
    assert shown["projectName"] == "User Auth"
    assert {party["name"]: (party["side"], party["role"]) for party in shown["parties"]} == {
        "backend-api": ("provider", "backend"),
        FRONTEND: ("consumer", "frontend"),
    }
