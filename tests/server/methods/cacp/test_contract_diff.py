"""cacp/contract/diff: two versions beside each other."""

from typing import Any

import pytest

from tests.support.node import RpcError
from tests.support.team import FRONTEND, REPO, Team

BEFORE = {"method": "GET", "path": "/a", "response": {"total": "number"}}
AFTER = {"method": "GET", "path": "/a", "response": {"cents": "integer"}}


@pytest.fixture
def contract(team: Team) -> str:
    """A contract of three versions, the last like the first."""
    made = team.backend("contract/propose", type="api_endpoint", name="n", content=BEFORE)
    at = {"contractId": made["contractId"]}
    team.backend("contract/update", **at, content=AFTER, changeNote="Cents")
    team.backend("contract/update", **at, content={**BEFORE, "path": "/b"})
    return str(made["contractId"])


def test_each_change_and_whom_it_breaks(team: Team, contract: str) -> None:
    diff = team.backend("contract/diff", contractId=contract, **{"from": 1, "to": 2})
    assert (diff["verdict"], diff["provider"], diff["consumer"]) == ("breaking",) * 3
    assert [(c["path"], c["provider"], c["consumer"]) for c in diff["changes"]] == [
        ("$.response.total", "compatible", "breaking"),
        ("$.response.cents", "breaking", "compatible"),
    ]
    assert (diff["moreChanges"], diff["moreRows"]) == (0, 0)
    assert (diff["from"]["version"], diff["from"]["name"]) == (1, REPO)
    assert (diff["to"]["version"], diff["to"]["changeNote"]) == (2, "Cents")
    [changed] = [row for row in diff["rows"] if row["kind"] == "changed"]
    assert [part["text"] for part in changed["after"]["parts"] if part["changed"]] == [
        "cents",
        "integer",
    ]


def test_the_default_is_the_last_change(team: Team, contract: str) -> None:
    last = team.frontend("contract/diff", contractId=contract)
    assert (last["from"]["version"], last["to"]["version"]) == (2, 3)
    up_to_two = team.frontend("contract/diff", contractId=contract, to=2)
    assert (up_to_two["from"]["version"], up_to_two["to"]["version"]) == (1, 2)


def test_a_first_version_is_compared_with_itself(team: Team) -> None:
    same = team.backend("contract/diff", contractId=team.proposed())
    assert (same["verdict"], same["changes"], same["rows"]) == ("same", [], [])


@pytest.mark.parametrize("which", ["from", "to"])
def test_a_version_that_is_not_there_is_named(team: Team, contract: str, which: str) -> None:
    given: dict[str, Any] = {which: 9}
    with pytest.raises(RpcError) as error:
        team.backend("contract/diff", contractId=contract, **given)
    assert error.value.data["path"] == which
    assert "no version 9; it has 1, 2, 3" in error.value.message


def test_an_unknown_contract_is_named(team: Team) -> None:
    with pytest.raises(RpcError) as error:
        team.backend("contract/diff", contractId="nothing")
    assert error.value.data["kind"] == "contract"


# --- cacp/contract/compare ------------------------------------------------------------------------


def test_versions_are_compared_by_what_they_break(team: Team, contract: str) -> None:
    answer = team.backend("contract/compare", contractId=contract, **{"from": 1, "to": 2})
    assert (answer["verdict"], answer["provider"], answer["against"], answer["version"]) == (
        "breaking",
        "breaking",
        1,
        2,
    )
    assert answer["dialect"] == "endpoint"
    assert answer["concerns"] == [FRONTEND]
    broken = {change["path"]: change.get("breaks") for change in answer["changes"]}
    assert broken == {"$.response.total": "consumer", "$.response.cents": "provider"}


def test_the_default_is_the_version_before(team: Team, contract: str) -> None:
    answer = team.backend("contract/compare", contractId=contract)
    assert (answer["version"], answer["against"]) == (3, 2)
    first = team.backend("contract/compare", contractId=team.proposed())
    assert (first["version"], first["against"], first["verdict"]) == (1, 1, "same")


def test_a_content_that_nobody_has_proposed(team: Team, contract: str) -> None:
    given: dict[str, Any] = {"contractId": contract, "content": {**BEFORE, "path": "/b"}}
    same = team.frontend("contract/compare", **given)
    assert same["verdict"] == "same"
    assert "version" not in same
    more = {"method": "GET", "path": "/b", "response": {"total": "number", "cents": "integer?"}}
    assert team.frontend("contract/compare", **{**given, "content": more})["verdict"] == (
        "compatible"
    )
    with pytest.raises(RpcError) as error:
        team.frontend("contract/compare", **{**given, "dialect": "openapi"})
    assert error.value.reason == "invalid_content"
    assert team.contract(contract)["version"] == 3
