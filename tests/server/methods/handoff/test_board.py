"""acp/handoffs and acp/teams: what each caller sees of handoffs and teamspaces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.in_process_node import ANA, BEN, CLEO, HUMAN, InProcessNode, package


@pytest.fixture
def node(tmp_path: Path) -> Iterator[InProcessNode]:
    with InProcessNode(tmp_path) as made:
        yield made


def handoffs(node: InProcessNode, agent: str, **params: Any) -> list[Any]:
    listed: list[Any] = node.call("acp/handoffs", agent, **params)["handoffs"]
    return listed


def test_each_party_sees_its_handoffs_by_state(node: InProcessNode) -> None:
    offered = node.offered(package=package("task-1"))
    accepted = node.accepted(package=package("task-2"))
    for agent in (ANA, BEN):
        assert [each["handoff"]["handoffId"] for each in handoffs(node, agent)] == [
            accepted,
            offered,
        ]
    assert handoffs(node, CLEO) == []
    [waiting] = handoffs(node, ANA, status="proposed", steps=True)
    assert (waiting["owner"], waiting["isOverdue"]) == (ANA, False)
    assert [step["step"] for step in waiting["steps"]] == ["draft", "propose"]
    [taken] = handoffs(node, BEN, status="accepted")
    assert taken["owner"] == BEN
    assert "steps" not in taken
    node.now += 30 * 24 * 3_600_000_000
    assert all(each["isOverdue"] for each in handoffs(node, ANA))


def test_the_operator_oversees_what_is_outside_teamspaces(node: InProcessNode) -> None:
    offered = node.offered()
    members = [{"agent_id": BEN, "role": "executor"}]
    node.team(ANA, "create", team="desk", name="Desk", members=members)
    inside = node.offered(package=package("task-2"), team="desk")
    [seen] = handoffs(node, HUMAN, operator=True)
    assert seen["handoff"]["handoffId"] == offered
    assert [each["handoff"]["handoffId"] for each in handoffs(node, ANA, team="desk")] == [inside]
    assert handoffs(node, CLEO, team="desk") == []


def test_pages_of_handoffs(node: InProcessNode) -> None:
    ids = [node.offered(package=package(f"task-{number}")) for number in range(3)]
    page = node.call("acp/handoffs", BEN, limit=2)
    assert [each["handoff"]["handoffId"] for each in page["handoffs"]] == [ids[2], ids[1]]
    page = node.call("acp/handoffs", BEN, limit=2, cursor=page["nextCursor"])
    assert [each["handoff"]["handoffId"] for each in page["handoffs"]] == [ids[0]]


def test_teamspaces_with_members_and_tasks(node: InProcessNode) -> None:
    members = [{"agent_id": BEN, "role": "executor"}]
    node.team(ANA, "create", team="desk", name="Desk", members=members)
    node.team(ANA, "createTask", team="desk", task_id="t1", title="Write it", agent_id=BEN)
    node.team(CLEO, "create", team="other", name="Other")
    [team] = node.call("acp/teams", BEN)["teams"]
    assert (team["manifest"]["teamspace_id"], team["role"]) == ("desk", "executor")
    assert [(task["taskId"], task["owner"]) for task in team["tasks"]] == [("t1", BEN)]
    assert node.call("acp/teams", HUMAN)["teams"] == []
    page = node.call("acp/teams", HUMAN, operator=True, limit=1)
    assert [team["manifest"]["name"] for team in page["teams"]] == ["Desk"]
    page = node.call("acp/teams", HUMAN, operator=True, cursor=page["nextCursor"])
    assert [team["manifest"]["name"] for team in page["teams"]] == ["Other"]
