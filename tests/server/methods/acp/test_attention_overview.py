"""cacp/attention/overview: what is open between all agents that a caller may see."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.agents import identity
from server.domain.errors import Forbidden, InvalidInput, NotFound
from server.store import handoffs, keys
from tests.server.methods.cacp.test_attention import BACK, FRONT, Desk
from tests.support.in_process_node import ANA, BEN, HOUR, HUMAN, InProcessNode, package
from tests.support.node import AGENT, REPO
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS

PERSON = Caller(HUMAN, "r", "verified", "key", human=True)
OPERATOR = Caller(AGENT, REPO, "verified", "key", operator=True)
Json = dict[str, Any]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with InProcessNode(tmp_path) as node:
        yield Desk(node)


def agent(address: str) -> Caller:
    return Caller(address, "r", "verified", "key")


def overview(desk: Desk, caller: Caller = PERSON, **params: Any) -> Json:
    shown: Json = desk.call("cacp/attention/overview", caller, **params)
    return shown


def items(desk: Desk, caller: Caller = PERSON, **params: Any) -> list[Json]:
    return list(overview(desk, caller, **params)["items"])


def of_kind(desk: Desk, kind: str, caller: Caller = PERSON) -> list[Json]:
    return [item for item in items(desk, caller) if item["kind"] == kind]


def sent(desk: Desk, sender: str = ANA, to: str = BEN, **params: Any) -> str:
    given = {"type": "knowledge.push", "payload": {"summary": "Look"}, **params}
    return str(desk.call("acp/send", agent(sender), to=[to], **given)["message"]["id"])


def test_an_item_says_who_must_act_and_whom_it_blocks(desk: Desk) -> None:
    contract = desk.proposed()
    [item] = items(desk)
    assert (item["kind"], item["group"], item["unblocks"]) == ("respond", "in_time", 1)
    assert item["subject"] == {"type": "contract", "id": contract, "name": "Get user"}
    assert [party["repo"] for party in item["mustAct"]] == [FRONTEND]
    assert [party["agentId"] for party in item["blocks"]] == [identity(AGENT)]
    assert item["by"] == identity(AGENT)
    desk.on("contract/respond", FRONT, contractId=contract, action="agree")
    [item] = items(desk)
    assert (item["kind"], item["mustActCount"], item["unblocks"]) == ("implement", 2, 2)


def test_a_new_version_shows_its_own_parties(desk: Desk) -> None:
    """What was read before is not shown of another version."""
    contract = desk.proposed()
    assert items(desk)[0]["version"] == 1
    desk.on("contract/respond", FRONT, contractId=contract, action="request_change", comment="c")
    desk.on("contract/update", BACK, contractId=contract, content={"n": 2})
    assert [item["version"] for item in items(desk)] == [2]


def test_what_waited_too_long_is_overdue_and_its_absent_agent_needs_a_person(desk: Desk) -> None:
    desk.proposed()
    desk.node.run(lambda ctx: _key(ctx.db, FRONTEND_AGENT, ctx.now))
    desk.node.now += 2 * HOUR
    absent, respond = items(desk)
    assert (absent["kind"], absent["group"], absent["personReason"]) == (
        "absent",
        "person",
        "absent",
    )
    assert (absent["waiting"], absent["unblocks"]) == (1, 1)
    assert (respond["group"], respond["overdue"]) == ("overdue", True)
    desk.node.node.last_calls[identity(FRONTEND_AGENT)] = desk.node.now
    [respond] = items(desk)
    assert respond["mustAct"][0]["lastSeen"]


def test_what_unblocks_more_agents_comes_first(desk: Desk) -> None:
    desk.on("context/askQuestion", BACK, question="Cents?", urgent=True)
    contract = desk.proposed()
    desk.on("contract/respond", FRONT, contractId=contract, action="agree")
    assert [(item["kind"], item["unblocks"]) for item in items(desk)] == [
        ("implement", 2),
        ("answer", 1),
    ]


def test_pages_follow_each_other_and_groups_narrow_them(desk: Desk) -> None:
    for number in range(5):
        desk.proposed(name=f"c{number}")
    seen: list[str] = []
    after: Json = {}
    while True:
        page = overview(desk, limit=2, **after)
        seen += [item["subject"]["name"] for item in page["items"]]
        assert page["total"] == 5
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert seen == [f"c{number}" for number in range(5)]
    none = overview(desk, groups=["person", "overdue"])
    assert (none["items"], none["groups"]) == ([], {"person": 0, "overdue": 0, "in_time": 5})
    for wrong in ("x", "1.2.3", "a.b.c.d.e", "1.2.3.4", f"1.1.1.{'9' * 40}.i", "1.².3.4.i"):
        with pytest.raises(InvalidInput):
            overview(desk, after=wrong)


def test_projects_are_counted_and_chosen(desk: Desk) -> None:
    desk.proposed()
    other = desk.made("Other")
    shown = overview(desk, projectId=other)
    assert (shown["items"], shown["projects"]) == ([], [])
    assert overview(desk)["projects"] == [
        {"projectId": desk.project, "project": "User Auth", "count": 1}
    ]
    with pytest.raises(NotFound):
        overview(desk, projectId="nothing")


def test_a_caller_sees_its_projects_only_and_no_mail(desk: Desk) -> None:
    desk.proposed()
    sent(desk)
    limited = replace(PERSON, projects=frozenset({desk.made("Other")}))
    shown = overview(desk, limited)
    assert (shown["items"], shown["hidden"], shown["total"]) == ([], 0, 0)
    with pytest.raises(Forbidden):
        overview(desk, limited, projectId=desk.project)


def test_mail_is_for_humans_and_its_recipient_and_counted_for_others(desk: Desk) -> None:
    sent(desk, type="knowledge.query", payload={"summary": "q", "question": "Cents?"})
    kinds = {"answer", "mail"}
    shown = overview(desk, agent(BEN))
    assert {item["kind"] for item in shown["items"]} == kinds
    [asked] = [item for item in shown["items"] if item["kind"] == "answer"]
    assert (asked["subject"]["name"], asked["unblocks"]) == ("Cents?", 1)
    assert [step["name"] for step in asked["actions"]] == ["answer_mail"]
    other = overview(desk, FRONT)
    assert (other["items"], other["hidden"]) == ([], 2)
    known = overview(desk, replace(FRONT, trust="known"))
    assert (known["items"], known["hidden"]) == ([], 2)
    seen = overview(desk)
    assert {item["kind"] for item in seen["items"]} == kinds
    [asked] = [item for item in seen["items"] if item["kind"] == "answer"]
    assert asked["subject"]["name"] == "a question by mail", "it is private"


def test_what_waits_for_approval_needs_a_person(desk: Desk) -> None:
    sent(desk, policy={"human_gate": "required"}, topic="Deploy")
    [item] = of_kind(desk, "approve")
    assert (item["group"], item["subject"]["name"], item["unblocks"]) == ("person", "Deploy", 2)
    assert [step["name"] for step in item["actions"]] == ["approve", "refuse"]
    assert overview(desk, FRONT)["hidden"] == 1
    step = item["actions"][0]
    desk.call(step["method"], PERSON, **step["params"])
    assert of_kind(desk, "approve") == []
    assert [item["mustAct"][0]["agentId"] for item in of_kind(desk, "mail")] == [BEN]


def test_a_handoff_waits_for_its_receiver_and_escalates_to_a_person(desk: Desk) -> None:
    handoff_id = desk.node.accepted()
    [item] = of_kind(desk, "handoff")
    assert (item["group"], item["mustAct"][0]["agentId"], item["unblocks"]) == ("in_time", BEN, 1)
    desk.node.run(lambda ctx: handoffs.put_escalated(ctx.db, handoff_id, ctx.now))
    desk.node.now += 25 * HOUR
    [item] = of_kind(desk, "handoff")
    assert (item["group"], item["personReason"], item["overdue"]) == ("person", "escalated", True)
    revoke = item["actions"][-1]
    assert revoke["name"] == "revoke_handoff"
    desk.node.call(revoke["method"], HUMAN, human=True, **revoke["params"], detail="late")
    assert of_kind(desk, "handoff") == []


def test_a_handoff_that_a_human_approves(desk: Desk) -> None:
    policy = {"classification": "internal", "requires_human_approval": True}
    desk.node.offered(package=package(policy=policy))
    [item] = of_kind(desk, "approve")
    assert (item["subject"]["type"], item["personReason"]) == ("handoff", "approval")
    assert of_kind(desk, "handoff") == []


def test_a_repo_that_nobody_holds_says_who_waits_for_it(desk: Desk) -> None:
    desk.on("project/addRepo", BACK, repo=REPOS[0] | {"name": "ios"})
    desk.proposed()
    [respond, free] = items(desk)
    assert (free["kind"], free["subject"]["name"], free["waiting"]) == ("join", "ios", 1)
    assert free["unblocks"] == respond["unblocks"] == 2
    desk.node.now += 2 * HOUR
    assert [item["kind"] for item in items(desk, groups=["person"])] == ["join"]


def test_the_owner_releases_the_repo_of_an_absent_agent(desk: Desk) -> None:
    desk.proposed()
    desk.node.run(lambda ctx: _key(ctx.db, FRONTEND_AGENT, ctx.now))
    desk.node.now += 2 * HOUR
    [absent] = of_kind(desk, "absent", OPERATOR)
    [release] = [step for step in absent["actions"] if step["name"] == "release"]
    desk.call(release["method"], OPERATOR, **release["params"])
    assert of_kind(desk, "absent", OPERATOR) == []
    assert [item["subject"]["name"] for item in of_kind(desk, "join")] == [FRONTEND]


def test_dead_letters_are_shown_for_a_day_unless_they_were_sent_again(desk: Desk) -> None:
    message = sent(desk, policy={"human_gate": "required"})
    desk.call("acp/approve", PERSON, message_id=message, decision="refuse")
    [item] = of_kind(desk, "undelivered")
    assert (item["personReason"], item["subject"]["name"]) == (
        "undelivered",
        "1 message reached nobody",
    )
    assert of_kind(desk, "undelivered", FRONT) == []
    desk.call("acp/replay", agent(ANA), message_id=message)
    assert of_kind(desk, "undelivered") == []
    again = sent(desk, policy={"human_gate": "required"})
    desk.call("acp/approve", PERSON, message_id=again, decision="refuse")
    desk.node.now += 25 * HOUR
    assert of_kind(desk, "undelivered") == []


def _key(db: Any, agent: str, now: int) -> None:
    keys.add(db, keys.new_key(), agent_id=agent, repo=FRONTEND, now=now)
