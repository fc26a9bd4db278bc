"""Who sees which handoffs (acp-canonical §12.3)."""

from typing import Any

from uuid_utils import uuid7

from server.domain.errors import Conflict, Forbidden, NotFound
from server.store import handoffs
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, HUMAN, InProcessNode, package
from tests.support.node import AGENT


def ids(desk: InProcessNode, agent: str, **params: Any) -> list[str]:
    return [one["handoffId"] for one in desk.handoff(agent, "list", **params)["handoffs"]]


def test_a_list_is_of_ones_own_handoffs(desk: InProcessNode) -> None:
    one = desk.offered(ANA, BEN, package=package("t1"))
    two = desk.offered(BEN, CLEO, package=package("t2"))
    assert ids(desk, BEN) == [two, one]
    assert ids(desk, BEN, role="sender") == [two]
    assert ids(desk, BEN, role="receiver") == [one]
    assert ids(desk, BEN, task_id="t1", status="proposed") == [one]
    assert ids(desk, BEN, status="accepted") == ids(desk, DORA) == []


def test_a_list_goes_page_by_page(desk: InProcessNode) -> None:
    made = [desk.offered(package=package(f"t{number}")) for number in range(3)]
    page = desk.handoff(ANA, "list", limit=2)
    rest = desk.handoff(ANA, "list", limit=2, cursor=page["nextCursor"])
    found = [one["handoffId"] for one in page["handoffs"] + rest["handoffs"]]
    assert found == made[::-1]
    assert "nextCursor" not in rest


def test_a_list_names_what_other_nodes_have_offered(desk: InProcessNode) -> None:
    """In one order and by the same pages as what is held here, for the one who takes it over."""
    far = "aid://example.com/far"
    every: list[str] = []
    for number in range(3):
        every.append(desk.offered(package=package(f"t{number}")))
        every.append(str(uuid7()))
        handoffs.put_elsewhere(desk.db, every[-1], BEN, f"far{number}", far)
    handoffs.put_elsewhere(desk.db, str(uuid7()), CLEO, None, far)
    handoffs.put_elsewhere(desk.db, every[0], BEN, "t0", far)
    pages, cursor = list[str](), dict[str, str | None]()
    for _ in range(3):
        page = desk.handoff(BEN, "list", limit=2, **cursor)
        cursor = {"cursor": page.get("nextCursor")}
        both = page["handoffs"] + page["elsewhere"]
        pages += sorted((one["handoffId"] for one in both), reverse=True)
    assert (pages, cursor) == (every[::-1], {"cursor": None})
    found = desk.handoff(BEN, "list", task_id="far1", status="closed")
    assert found["elsewhere"] == [{"handoffId": every[3], "taskId": "far1", "node": far}]
    for other in ({"role": "sender"}, {"team": "core"}):
        assert "elsewhere" not in desk.handoff(BEN, "list", **other)
    (unnamed,) = desk.handoff(CLEO, "list")["elsewhere"]
    assert "taskId" not in unnamed or unnamed["taskId"] is None
    assert "elsewhere" not in desk.handoff(ANA, "list")


def test_who_owned_the_task_before_sees_what_became_of_it(desk: InProcessNode) -> None:
    desk.accepted()
    second = desk.accepted(BEN, CLEO)
    assert desk.handoff(ANA, "get", handoff_id=second)["handoff"]["status"] == "accepted"
    desk.refused(NotFound, DORA, "get", handoff_id=second)


def test_members_see_the_teamspaces_handoffs_unless_they_are_restricted(
    desk: InProcessNode,
) -> None:
    members = [{"agent_id": BEN, "role": "executor"}, {"agent_id": CLEO, "role": "researcher"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    open_ = desk.offered(package=package("t1"), team="core")
    secret = package("t2", policy={"classification": "restricted"})
    closed = desk.offered(package=secret, team="core")
    assert ids(desk, CLEO, team="core") == [open_]
    assert ids(desk, BEN, team="core") == [closed, open_]
    assert ids(desk, DORA, team="core") == []
    desk.refused(NotFound, CLEO, "get", handoff_id=closed)


def test_who_coordinates_finds_an_offer_that_keeps_a_task_and_ends_it(desk: InProcessNode) -> None:
    """Whom the refused one is told to ask; not the others, who learn nothing of it."""
    members = [{"agent_id": BEN, "role": "executor"}]
    desk.team(ANA, "create", team="core", name="Core", members=members)
    desk.offered(package=package("t1"), team="core")
    desk.offered(package=package("t2"), draft=True)
    taken = desk.offered(package=package("t3"))
    secret = package("t4", policy={"classification": "restricted"})
    hidden = desk.offered(package=secret)
    conflict = desk.refused(Conflict, DORA, "initiate", to=CLEO, reason="r", package=package("t3"))
    assert conflict["ask"] == []
    assert {"handoffId", "status", "owner"}.isdisjoint(conflict)
    for stranger in (DORA, AGENT):
        desk.refused(Forbidden, stranger, "list", role="coordinator")
    proposed = {"role": "coordinator", "status": "proposed"}
    assert ids(desk, AGENT, operator=True, **proposed) == [hidden, taken]
    found = desk.call("acp/handoff", HUMAN, human=True, action="list", role="coordinator")
    assert [one["handoffId"] for one in found["handoffs"]] == [taken]
    end: dict[str, Any] = {"action": "reject", "handoff_id": taken, "code": "other", "detail": "d"}
    desk.refused(NotFound, AGENT, **end)
    desk.call("acp/handoff", AGENT, operator=True, **end)
    desk.offered(DORA, CLEO, package=package("t3"))
