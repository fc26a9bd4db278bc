"""acp/team (acp-canonical §8)."""

from typing import Any

import pytest

from schemas.teamspace import TeamRole
from server.domain.acp.teams import MATRIX, ROLES, Authority, may
from server.domain.errors import Conflict, Forbidden, InvalidInput, NotFound
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, InProcessNode, package


def made(desk: InProcessNode, *members: tuple[str, TeamRole]) -> None:
    given = [{"agent_id": agent, "role": role} for agent, role in members]
    desk.team(ANA, "create", team="core", name="Core", purpose="The core", members=given)


def test_who_creates_a_teamspace_coordinates_it(desk: InProcessNode) -> None:
    made(desk, (f"{BEN}@2.0.0", "executor"))
    manifest = desk.team(BEN, "get", team="core")["manifest"]
    assert manifest == {
        "protocol": "acp",
        "version": "1.0.0",
        "teamspace_id": "core",
        "name": "Core",
        "purpose": "The core",
        "status": "active",
        "created_by": ANA,
        "created_at": manifest["created_at"],
        "members": [
            {"agent_id": ANA, "role": "coordinator"},
            {"agent_id": BEN, "role": "executor"},
        ],
    }
    assert desk.team(BEN, "list")["teams"] == [
        {"team": "core", "name": "Core", "status": "active", "role": "executor"}
    ]
    assert desk.team(CLEO, "list")["teams"] == []
    data = desk.refused(Conflict, CLEO, "create", "acp/team", team="core", name="Mine")
    assert data["reason"] == "team_exists"


@pytest.mark.parametrize("action", ["get", "close", "log"])
def test_for_others_there_is_no_such_teamspace(desk: InProcessNode, action: str) -> None:
    made(desk)
    params = {"log": "roles"} if action == "log" else {}
    data = desk.refused(NotFound, CLEO, action, "acp/team", team="core", **params)
    assert data["kind"] == "teamspace"


CALLS: dict[Authority, tuple[str, dict[str, Any]]] = {
    "create_task": ("createTask", {"task_id": "new", "title": "New"}),
    "assign_owner": ("assign", {"task_id": "task-1", "agent_id": BEN}),
    "block_work": ("block", {"task_id": "task-1", "code": "security", "detail": "A leak"}),
    "close_high_risk": ("completeTask", {"task_id": "risky"}),
    "manage_members": ("addMember", {"agent_id": DORA, "role": "reviewer"}),
    "close_team": ("close", {}),
}
"""How a caller asks for what a row of the table grants; the others are handoffs."""


@pytest.mark.parametrize("authority", CALLS)
def test_the_table_is_enforced(desk: InProcessNode, authority: Authority) -> None:
    """§8.4: who may not is refused, who may is not."""
    made(desk, (BEN, "executor"), (CLEO, "reviewer"))
    desk.team(ANA, "createTask", team="core", task_id="task-1", title="One")
    desk.team(ANA, "createTask", team="core", task_id="risky", title="Two", high_risk=True)
    action, params = CALLS[authority]
    for role in sorted(ROLES, key=lambda role: may(authority, role)):
        desk.team(ANA, "changeRole", team="core", agent_id=CLEO, role=role)
        if may(authority, role):
            desk.team(CLEO, action, team="core", **params)
            return
        data = desk.refused(Forbidden, CLEO, action, "acp/team", team="core", **params)
        assert (data["reason"], data["role"]) == ("role_authority", role)
    raise AssertionError("the table lets nobody")


def test_every_authority_is_enforced_somewhere() -> None:
    assert set(MATRIX) - set(CALLS) == {"approve_handoff", "accept_task"}


def test_an_integrator_assigns_merge_tasks_only(desk: InProcessNode) -> None:
    made(desk, (BEN, "integrator"), (CLEO, "executor"))
    desk.team(ANA, "createTask", team="core", task_id="merge", title="M", kind="merge")
    desk.team(ANA, "createTask", team="core", task_id="plain", title="P")
    done = desk.team(BEN, "assign", team="core", task_id="merge", agent_id=CLEO)
    assert done["task"]["owner"] == CLEO
    given = {"team": "core", "task_id": "plain", "agent_id": CLEO}
    assert (
        desk.refused(Forbidden, BEN, "assign", "acp/team", **given)["authority"] == "assign_owner"
    )


def test_a_teamspace_keeps_a_coordinator(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"))
    for action, params in (("removeMember", {}), ("changeRole", {"role": "executor"})):
        given = {"team": "core", "agent_id": ANA, **params}
        data = desk.refused(Conflict, ANA, action, "acp/team", **given)
        assert data["reason"] == "last_coordinator"
    desk.team(ANA, "changeRole", team="core", agent_id=BEN, role="coordinator")
    desk.team(BEN, "removeMember", team="core", agent_id=ANA)
    assert desk.team(ANA, "list")["teams"] == []


def test_members_are_named_right(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"))
    given = {"team": "core", "agent_id": BEN, "role": "reviewer"}
    data = desk.refused(Conflict, ANA, "addMember", "acp/team", **given)
    assert data["reason"] == "already_member"
    data = desk.refused(NotFound, ANA, "changeRole", "acp/team", **given | {"agent_id": CLEO})
    assert data["kind"] == "member"


def test_a_closed_teamspace_takes_nothing(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"))
    desk.team(ANA, "close", team="core", detail="Done")
    given = {"team": "core", "task_id": "t", "title": "T"}
    assert desk.refused(Conflict, ANA, "createTask", "acp/team", **given)["reason"] == "team_closed"
    assert desk.team(ANA, "get", team="core")["manifest"]["status"] == "closed"
    offer: dict[str, Any] = {"to": BEN, "reason": "r", "package": package(), "team": "core"}
    assert desk.refused(Conflict, ANA, "initiate", **offer)["reason"] == "team_closed"


def test_assigning_begins_a_new_chain(desk: InProcessNode) -> None:
    """The coordinator's way out of a circle (§7.2 rule 6)."""
    made(desk, (BEN, "executor"), (CLEO, "integrator"))
    desk.team(ANA, "createTask", team="core", task_id="task-1", title="One", agent_id=BEN)
    second = desk.accepted(BEN, CLEO)
    given = {"team": "core", "task_id": "task-1", "agent_id": BEN}
    data = desk.refused(Conflict, ANA, "assign", "acp/team", **given)
    assert (data["reason"], data["handoffId"]) == ("ownership_conflict", second)
    desk.handoff(ANA, "revoke", handoff_id=second, detail="back")
    desk.team(ANA, "assign", team="core", task_id="task-1", agent_id=CLEO)
    assert desk.accepted(CLEO, BEN)


def test_an_offer_makes_no_task_of_the_teamspaces(desk: InProcessNode) -> None:
    """It is the teamspace's once it is accepted there."""
    made(desk, (BEN, "executor"))
    first = desk.offered(team="core")
    given = {"team": "core", "task_id": "task-1", "title": "T"}
    assert desk.refused(Conflict, ANA, "createTask", "acp/team", **given)["reason"] == "task_exists"
    desk.handoff(ANA, "reject", handoff_id=first, code="other", detail="withdrawn")
    assert desk.team(BEN, "get", team="core")["tasks"] == []
    assert desk.offered(CLEO, DORA)


def test_a_task_stays_its_teamspaces_after_its_handoff(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"))
    first = desk.accepted(team="core")
    desk.handoff(BEN, "complete", handoff_id=first, summary="done")
    desk.handoff(ANA, "close", handoff_id=first)
    (task,) = desk.team(BEN, "get", team="core")["tasks"]
    assert (task.get("owner"), task["status"]) == (None, "completed")
    given: dict[str, Any] = {"to": DORA, "reason": "r", "package": package()}
    assert desk.refused(Conflict, CLEO, "initiate", **given)["reason"] == "ownership_conflict"
    desk.team(ANA, "assign", team="core", task_id="task-1", agent_id=BEN)


def test_a_revocation_gives_an_assigned_task_back(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"), (CLEO, "executor"))
    desk.team(ANA, "createTask", team="core", task_id="task-1", title="T", agent_id=BEN)
    first = desk.accepted(BEN, CLEO)
    desk.handoff(ANA, "revoke", handoff_id=first, detail="back")
    assert desk.team(BEN, "get", team="core")["tasks"][0]["owner"] == BEN


def test_a_closed_teamspace_keeps_no_id_of_a_task(desk: InProcessNode) -> None:
    """But for what a member has accepted and still owns."""
    made(desk, (BEN, "executor"), (CLEO, "executor"))
    for name, owner in (("task-1", {}), ("task-2", {"agent_id": BEN}), ("task-3", {})):
        desk.team(ANA, "createTask", team="core", task_id=name, title="T", **owner)
    desk.accepted(ANA, BEN, package=package("task-3"))
    desk.team(ANA, "close", team="core")
    assert desk.accepted(DORA, CLEO)
    desk.team(DORA, "create", team="other", name="Other")
    desk.team(DORA, "createTask", team="other", task_id="task-2", title="Mine")
    data = desk.refused(Conflict, DORA, "initiate", to=CLEO, reason="r", package=package("task-3"))
    assert data["reason"] == "ownership_conflict"


def test_an_owner_completes_its_task(desk: InProcessNode) -> None:
    made(desk, (BEN, "executor"))
    desk.team(ANA, "createTask", team="core", task_id="t", title="T", agent_id=BEN)
    data = desk.refused(Forbidden, ANA, "completeTask", "acp/team", team="core", task_id="t")
    assert data["reason"] == "not_the_owner"
    done = desk.team(BEN, "completeTask", team="core", task_id="t")
    assert done["task"]["status"] == "completed"
    data = desk.refused(Conflict, BEN, "completeTask", "acp/team", team="core", task_id="t")
    assert data["reason"] == "task_status"


def test_the_logs(desk: InProcessNode) -> None:
    """§8.2: each has what belongs into it, in order."""
    made(desk, (BEN, "executor"))
    desk.team(ANA, "createTask", team="core", task_id="task-1", title="One")
    desk.team(BEN, "decide", team="core", title="Use tokens", detail="They expire")
    ref = {"type": "branch", "path": "feature/login"}
    desk.team(BEN, "registerArtifact", team="core", artifact_id="login", ref=ref)
    desk.accepted()

    def log(name: str) -> list[Any]:
        return [one["line"] for one in desk.team(BEN, "log", team="core", log=name)["lines"]]

    assert [one["event"] for one in log("roles")] == ["create", "addMember"]
    assert [one["event"] for one in log("decisions")] == ["createTask", "decide"]
    assert log("artifacts")[0]["ref"] == ref
    assert [one["step"] for one in log("handoffs")] == ["draft", "propose", "accept", "pass"]
    sent = [one["message"]["type"] for one in log("messages")]
    assert sent == ["handoff.initiate", "handoff.accept"]
    page = desk.team(BEN, "log", team="core", log="handoffs", limit=3)
    rest = desk.team(BEN, "log", team="core", log="handoffs", cursor=page["nextCursor"])
    assert [one["line"]["step"] for one in rest["lines"]] == ["pass"]
    assert "nextCursor" not in rest
    given = {"team": "core", "title": "t", "detail": "d"}
    assert desk.refused(NotFound, CLEO, "decide", "acp/team", **given)["kind"] == "teamspace"


def test_the_log_of_handoffs_keeps_what_is_restricted_to_itself(desk: InProcessNode) -> None:
    """Not every member may see a restricted handoff; every member reads the log."""
    made(desk, (BEN, "executor"), (CLEO, "researcher"))
    restricted = package(policy={"classification": "restricted"})
    handoff_id = desk.accepted(package=restricted, team="core")
    desk.handoff(BEN, "complete", handoff_id=handoff_id, summary="The password is 1234")
    assert desk.handoff(CLEO, "list", team="core")["handoffs"] == []
    for log in ("handoffs", "messages"):
        assert "1234" not in str(desk.team(CLEO, "log", team="core", log=log)["lines"])


def test_a_teamspace_has_so_many_members_at_most(desk: InProcessNode) -> None:
    """What the manifest's schema holds (§15.2)."""
    others: list[tuple[str, TeamRole]] = [(f"aid://x.example/a{n}", "executor") for n in range(200)]
    given = {
        "team": "core",
        "name": "Core",
        "members": [{"agent_id": agent, "role": role} for agent, role in others],
    }
    refused = desk.refused(InvalidInput, ANA, "create", "acp/team", **given)
    assert refused["path"] == "members"
    made(desk, *others[:199])
    one_more = {"team": "core", "agent_id": BEN, "role": "executor"}
    assert desk.refused(Conflict, ANA, "addMember", "acp/team", **one_more)["limit"] == 200
