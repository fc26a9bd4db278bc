"""`cacp status`, `projects`, `contracts` and `show` against a real node."""

import json
from pathlib import Path

import pytest

from cli.show import SAID_MAX
from server.methods.cacp.project import OUTLINE_LIMIT
from tests.cli.run import cacp
from tests.support.node import Node, RpcError
from tests.support.team import AGENT, FRONTEND, FRONTEND_AGENT, Team

EVIL = "POST \x1b[2Jx [red]y[/red]"


def test_status_says_who_the_node_is(node: Node) -> None:
    done = cacp("status", url=node.url)
    assert done.exit_code == 0
    for part in ("● healthy", "backend-api", AGENT, "backend, python"):
        assert part in done.stdout
    found = json.loads(cacp("status", "--json", url=node.url).stdout)
    assert found["health"]["status"] == "healthy"
    assert found["holds"]["projects"] >= 0


def test_status_without_the_key_that_is_needed_shows_what_is_public(tmp_path: Path) -> None:
    key = "cacp_sk_" + "z" * 32
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    with Node(tmp_path, host="0.0.0.0", bootstrap_key_file=tmp_path / "key") as node:
        done = cacp("status", url=node.url)
        assert done.exit_code == 0
        assert "● healthy" in done.stdout
        assert "need a key" in done.stderr
        assert "0 projects" in cacp("status", url=node.url, key=key).stdout


def test_projects_and_contracts(node: Node, team: Team) -> None:
    contract = team.proposed(name=EVIL)
    done = cacp("projects", url=node.url)
    assert team.project in done.stdout
    listed = json.loads(cacp("projects", "--json", url=node.url).stdout)
    assert team.project in [one["projectId"] for one in listed]

    done = cacp("contracts", team.project, url=node.url)
    assert contract in done.stdout
    assert "POST x [red]y[/red]" in done.stdout
    assert "\x1b[2J" not in done.stdout
    assert "● proposed" in done.stdout
    [one] = json.loads(cacp("contracts", team.project, "--json", url=node.url).stdout)
    assert one["contractId"] == contract


def test_show_tells_a_contracts_whole_story(node: Node, team: Team) -> None:
    contract = team.proposed()
    team.frontend(
        "contract/respond", contractId=contract, action="request_change", comment="say who"
    )
    team.frontend("context/askQuestion", question="Why?", relatedContracts=[contract])
    team.backend(
        "contract/update",
        contractId=contract,
        content={"method": "GET", "path": "/me"},
        changeNote="shorter",
    )
    team.frontend("contract/respond", contractId=contract, action="agree")
    team.backend("implementation/start", contractId=contract, plan="a view")
    team.backend("implementation/complete", contractId=contract, files=["src/me.py"])
    team.frontend("implementation/complete", contractId=contract, files=["src/me.ts"])
    team.frontend("implementation/verify", contractId=contract, result="success", notes="fits")
    shown = cacp("show", contract, url=node.url).stdout
    told = [
        "proposes version 1",
        "asks for a change to version 1: say who",
        "asks: Why?",
        "writes version 2, which breaks consumers: shorter",
        "- path: /api/v1/users/profile",
        "+ path: /me",
        "agrees to version 2",
        "starts to implement it: a view",
        "has implemented it: src/me.py",
        "verifies: it works together: fits",
    ]
    places = [shown.index(part) for part in told]
    assert places == sorted(places)
    assert "● verified" in shown
    assert len(team.backend("contract/timeline", contractId=contract)["timeline"]) == 8
    assert FRONTEND_AGENT in shown


def test_show_tells_a_projects_story(node: Node, team: Team) -> None:
    contract = team.proposed()
    team.frontend("context/recordDecision", decision="Ids", chosen="UUIDv7", rationale="order")
    shown = cacp("show", team.project, url=node.url).stdout
    for part in ("User Auth", "Login", FRONTEND, contract, "decides: Ids: UUIDv7, because order"):
        assert part in shown


def test_show_takes_a_unique_beginning(node: Node, team: Team) -> None:
    contract = team.proposed()
    told = json.loads(cacp("show", contract[:-2], "--json", url=node.url).stdout)
    assert told["contract"]["contractId"] == contract
    assert told["parties"]
    told = json.loads(cacp("show", team.project[:-2], "--json", url=node.url).stdout)
    assert told["project"]["projectId"] == team.project
    assert [one["contractId"] for one in told["project"]["contracts"]] == [contract]
    assert told["packets"] == []


def test_show_asks_for_no_project_as_a_whole(tmp_path: Path) -> None:
    """It may be larger than one answer may, and its contracts more than a page has."""
    with Node(tmp_path, answer_limit=2**20, requests_per_minute=0) as node:
        team = Team.on(node, node.key(FRONTEND_AGENT, FRONTEND))
        for number in range(3):
            content = {"text": "x" * 400_000}
            team.proposed(name=f"large {number}", content=content)
        for number in range(OUTLINE_LIMIT):
            team.proposed(name=f"small {number}", content={})
        for number in range(SAID_MAX + 2):
            team.frontend("context/askQuestion", question=f"Question {number}?")
        with pytest.raises(RpcError, match="answer would be larger"):
            team.backend("project/get")
        shown = cacp("show", team.project, url=node.url)
        assert shown.exit_code == 0, shown.stderr
        for said in ("large 0", f"small {OUTLINE_LIMIT - 1}", f"Question {SAID_MAX + 1}?"):
            assert said in shown.stdout
        assert "What was said, 2 earlier left out" in shown.stdout
        told = json.loads(cacp("show", team.project, "--json", url=node.url).stdout)
        assert len(told["project"]["contracts"]) == OUTLINE_LIMIT + 3
        assert len(told["packets"]) == SAID_MAX + 2


@pytest.mark.parametrize(
    ("id", "said"), [("zzz", "no project or contract here is named zzz"), ("0", "ids begin with 0")]
)
def test_show_says_why_an_id_is_not_one(node: Node, team: Team, id: str, said: str) -> None:
    team.proposed()
    done = cacp("show", id, url=node.url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


def test_a_name_is_as_good_as_an_id(node: Node, team: Team) -> None:
    contract = team.proposed(name=f"GET /{team.project}")
    name = f"Feature {team.project}"
    node.call("cacp/project/create", name=name, objective="x", repos=[])
    assert "no contract yet" in cacp("contracts", name.upper(), url=node.url).stderr
    assert name in cacp("show", name, url=node.url).stdout
    assert contract in cacp("show", f"get /{team.project}", url=node.url).stdout
    wrong = cacp("contracts", name + "s", url=node.url)
    assert wrong.exit_code == 1
    assert f"did you mean {name}?" in wrong.stderr
