"""What a version takes of its project: roles, and what verifies it."""

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import REPO
from tests.support.team import CONTENT, FRONTEND, Team

NEXT = CONTENT | {"path": "/api/v2/users/profile"}


def test_roles_are_those_that_are_named_and_stay_with_an_update(team: Team) -> None:
    roles = {FRONTEND: "both"}
    given = {"type": "event_schema", "name": "Clicks", "content": CONTENT}
    made = team.backend("contract/propose", **given, roles=roles)
    assert made["roles"] == {REPO: "consumer", FRONTEND: "both"}
    at = {"contractId": made["contractId"]}
    team.frontend("contract/respond", **at, action="request_change")
    updated = team.backend("contract/update", **at, content=NEXT)
    assert updated["roles"] == made["roles"]
    shown = team.backend("contract/overview", **at)
    sides = {party["name"]: party["side"] for party in shown["parties"]}
    assert sides == made["roles"]
    turned = team.backend("contract/update", **at, content=CONTENT, roles={REPO: "provider"})
    assert turned["roles"] == {REPO: "provider", FRONTEND: "consumer"}


@pytest.mark.parametrize(
    "roles",
    [{"nobody": "provider"}, {REPO: "consumer", FRONTEND: "consumer"}, {REPO: "server"}, {}],
)
def test_roles_that_fit_no_contract_are_refused(team: Team, roles: dict[str, str]) -> None:
    with refused(-32602, "invalid_params"):
        team.proposed(roles=roles)


def test_a_version_keeps_the_verification_policy_of_its_time(team: Team) -> None:
    contract = team.proposed()
    team.backend("project/updateVerificationPolicy", verificationPolicy="receipt_both")
    assert policy_of(team, contract) == "word"
    team.frontend("contract/respond", contractId=contract, action="request_change")
    team.backend("contract/update", contractId=contract, content=NEXT)
    assert policy_of(team, contract) == "receipt_both"
    assert policy_of(team, team.proposed(name="Other")) == "receipt_both"


def policy_of(team: Team, contract: str) -> str:
    timeline = team.backend("contract/timeline", contractId=contract)
    overview = team.backend("contract/overview", contractId=contract)
    assert timeline["verificationPolicy"] == overview["verificationPolicy"]
    return str(timeline["verificationPolicy"])
