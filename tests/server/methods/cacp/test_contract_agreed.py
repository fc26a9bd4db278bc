"""cacp/contract/agreed: what holds, while other versions are negotiated."""

from typing import Any

from proof.probe_outcome import contract_digest
from tests.support.team import CONTENT, FRONTEND, REPO, Team


def agreed(team: Team, **params: Any) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = team.frontend("contract/agreed", **params)["contracts"]
    return listed


def test_what_was_never_agreed_does_not_hold(team: Team) -> None:
    team.proposed()
    assert agreed(team) == []


def test_an_agreed_version_has_all_that_binds_a_repo(team: Team) -> None:
    contract = team.agreed(name="Get profile", dialect="endpoint")
    assert agreed(team) == [
        {
            "contractId": contract,
            "type": "api_endpoint",
            "name": "Get profile",
            "version": 1,
            "digest": contract_digest(CONTENT),
            "dialect": "endpoint",
            "content": CONTENT,
            "parties": [
                {"repoId": team.repo_id(REPO), "name": REPO, "side": "provider"},
                {"repoId": team.repo_id(FRONTEND), "name": FRONTEND, "side": "consumer"},
            ],
            "currentVersion": 1,
            "status": "agreed",
        }
    ]


def test_a_version_holds_until_the_next_is_agreed(team: Team) -> None:
    contract = team.agreed()
    team.backend("contract/respond", contractId=contract, action="request_change", comment="?")
    more = CONTENT | {"response": {"name": "string"}}
    team.backend("contract/update", contractId=contract, content=more)
    (held,) = agreed(team)
    assert (held["version"], held["content"], held["currentVersion"], held["status"]) == (
        1,
        CONTENT,
        2,
        "proposed",
    )
    assert "dialect" not in held
    team.frontend("contract/respond", contractId=contract, action="agree")
    (held,) = agreed(team)
    assert (held["version"], held["content"], held["digest"]) == (2, more, contract_digest(more))


def test_a_version_holds_no_more_if_who_agreed_asks_for_a_change(team: Team) -> None:
    contract = team.agreed()
    team.frontend("contract/respond", contractId=contract, action="request_change", comment="?")
    assert agreed(team) == []


def test_roles_that_a_version_gives(team: Team) -> None:
    team.agreed(roles={REPO: "consumer", FRONTEND: "provider"})
    (held,) = agreed(team)
    assert {party["name"]: party["side"] for party in held["parties"]} == {
        REPO: "consumer",
        FRONTEND: "provider",
    }


def test_in_pages(team: Team) -> None:
    contracts = sorted([team.agreed(), team.proposed(name="b"), team.agreed(name="c")])
    seen: list[str] = []
    cursor: dict[str, str] = {}
    pages = 0
    while True:
        page = team.backend("contract/agreed", limit=1, **cursor)
        seen += [held["contractId"] for held in page["contracts"]]
        pages += 1
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert pages == 3
    assert len(seen) == 2
    assert set(seen) < set(contracts)
