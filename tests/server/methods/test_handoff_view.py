"""Who sees which handoffs (acp-canonical §12.3)."""

from server.domain.errors import NotFound
from tests.desk import ANA, BEN, CLEO, DORA, Desk, package


def ids(desk: Desk, agent: str, **params: object) -> list[str]:
    return [one["handoffId"] for one in desk.handoff(agent, "list", **params)["handoffs"]]


def test_a_list_is_of_ones_own_handoffs(desk: Desk) -> None:
    one = desk.offered(ANA, BEN, package=package("t1"))
    two = desk.offered(BEN, CLEO, package=package("t2"))
    assert ids(desk, BEN) == [two, one]
    assert ids(desk, BEN, role="sender") == [two]
    assert ids(desk, BEN, role="receiver") == [one]
    assert ids(desk, BEN, task_id="t1", status="proposed") == [one]
    assert ids(desk, BEN, status="accepted") == ids(desk, DORA) == []


def test_a_list_goes_page_by_page(desk: Desk) -> None:
    made = [desk.offered(package=package(f"t{number}")) for number in range(3)]
    page = desk.handoff(ANA, "list", limit=2)
    rest = desk.handoff(ANA, "list", limit=2, cursor=page["nextCursor"])
    found = [one["handoffId"] for one in page["handoffs"] + rest["handoffs"]]
    assert found == made[::-1]
    assert "nextCursor" not in rest


def test_who_owned_the_task_before_sees_what_became_of_it(desk: Desk) -> None:
    desk.accepted()
    second = desk.accepted(BEN, CLEO)
    assert desk.handoff(ANA, "get", handoff_id=second)["handoff"]["status"] == "accepted"
    desk.refused(NotFound, DORA, "get", handoff_id=second)


def test_members_see_the_teamspaces_handoffs_unless_they_are_restricted(desk: Desk) -> None:
    members = [{"agent_id": BEN, "role": "executor"}, {"agent_id": CLEO, "role": "researcher"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    open_ = desk.offered(package=package("t1"), team="core")
    secret = package("t2", policy={"classification": "restricted"})
    closed = desk.offered(package=secret, team="core")
    assert ids(desk, CLEO, team="core") == [open_]
    assert ids(desk, BEN, team="core") == [closed, open_]
    assert ids(desk, DORA, team="core") == []
    desk.refused(NotFound, CLEO, "get", handoff_id=closed)
