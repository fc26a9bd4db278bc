"""cacp/attention/list: what waits for the caller (design-next N1)."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from uuid_utils import uuid7

from schemas.attention import ListAttentionParams
from schemas.handoff import HandoffStatus
from server.auth.authenticator import Caller
from server.domain.agents import identity
from server.domain.errors import Forbidden, InvalidInput, NotFound
from server.methods import METHODS
from server.methods.base import Context
from server.store import handoffs
from server.store.attention import open_counts
from tests.support.in_process_node import HUMAN, InProcessNode, package
from tests.support.node import AGENT, REPO, check_result
from tests.support.team import CONTENT, FRONTEND, FRONTEND_AGENT, REPOS

BACK = Caller(AGENT, REPO, "verified", "local")
FRONT = Caller(FRONTEND_AGENT, FRONTEND, "verified", "key")
Json = dict[str, Any]


class Desk:
    """A node with a project of two repos, without a process."""

    def __init__(self, node: InProcessNode) -> None:
        self.node = node
        self.project = self.made()

    def made(self, name: str = "User Auth") -> str:
        """A project that both have joined."""
        params = {"name": name, "objective": "Login", "repos": REPOS}
        project_id = str(self.call("cacp/project/create", BACK, **params)["projectId"])
        self.call("cacp/project/join", FRONT, projectId=project_id, repoName=FRONTEND)
        return project_id

    def call(self, method: str, caller: Caller, **params: Any) -> Any:
        declared = METHODS[method]
        given = declared.params.model_validate(params, by_alias=True)
        result = self.node.answered(declared, caller, given)
        wire = orjson.loads(orjson.dumps(result))
        check_result(method, wire)
        return wire

    def on(self, method: str, caller: Caller, **params: Any) -> Any:
        """Call `cacp/METHOD` on the project."""
        return self.call(f"cacp/{method}", caller, **{"projectId": self.project, **params})

    def proposed(self, **params: Any) -> str:
        given = {"type": "api_endpoint", "name": "Get user", "content": CONTENT, **params}
        return str(self.on("contract/propose", BACK, **given)["contractId"])

    def listed(self, caller: Caller, **params: Any) -> Json:
        listed: Json = self.call("cacp/attention/list", caller, **params)
        return listed

    def kinds(self, caller: Caller, **params: Any) -> list[str]:
        return [item["kind"] for item in self.listed(caller, **params)["items"]]

    def do(self, caller: Caller, item: Json, **filled: Any) -> Any:
        """Take a step that an item names, as a reader of nothing else would."""
        step = item["next"][0]
        params = json.loads(json.dumps(step["params"]))
        for name, value in filled.items():
            assert name.replace("__", ".") in step.get("fill", {})
            *path, last = name.split("__")
            into = params
            for part in path:
                into = into[part]
            into[last] = value
        return self.call(step["method"], caller, **params)

    def only(self, caller: Caller, kind: str) -> Json:
        [item] = self.listed(caller, kinds=[kind])["items"]
        assert isinstance(item, dict)
        return item


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with InProcessNode(tmp_path) as node:
        yield Desk(node)


def test_an_agent_whose_repo_nobody_holds_is_asked_to_join(desk: Desk) -> None:
    made = desk.call("cacp/project/create", BACK, name="Coupons", objective="Sell", repos=REPOS)
    [item] = desk.listed(FRONT, projectId=made["projectId"])["items"]
    assert (item["kind"], item["project"], item["subject"]["name"]) == ("join", "Coupons", FRONTEND)
    assert item["detail"] == {"objective": "Sell"}
    assert open_counts(desk.node.db)["join"] == 0, "no key for it was made here"
    limited = Caller(FRONTEND_AGENT, FRONTEND, "verified", "key", frozenset({desk.project}))
    assert desk.kinds(limited) == []
    desk.do(FRONT, item)
    assert desk.kinds(FRONT) == []


def test_who_left_is_not_asked_to_come_back(desk: Desk) -> None:
    desk.on("repo/release", FRONT, repoName=FRONTEND)
    assert desk.kinds(FRONT) == []


def test_a_feature_from_proposal_to_verified_by_attention_alone(desk: Desk) -> None:
    desk.proposed()
    assert desk.kinds(BACK) == []
    item = desk.only(FRONT, "respond")
    assert (item["projectId"], item["project"]) == (desk.project, "User Auth")
    change = {"action": "request_change", "comment": "no name", "suggestedChange": {"name": 1}}
    desk.do(FRONT, item, **change)
    item = desk.only(BACK, "revise")
    [response] = item["detail"]["responses"]
    assert (response["comment"], response["suggestedChange"]) == ("no name", {"name": 1})
    desk.do(BACK, item, content={**CONTENT, "name": 1}, changeNote="name")
    item = desk.only(FRONT, "respond")
    assert item["detail"]["diff"]["lines"] == ["+ name: 1"]
    desk.do(FRONT, item, action="agree")
    for caller in (FRONT, BACK):
        desk.do(caller, desk.only(caller, "implement"), files=["a"])
    desk.do(FRONT, desk.only(FRONT, "verify"), result="failure", failureDetails={"case": "x"})
    for caller in (BACK, FRONT):
        item = desk.only(caller, "repair")
        assert item["detail"]["failures"][0]["details"] == {"case": "x"}
        desk.do(caller, item)
    desk.do(BACK, desk.only(BACK, "verify"), result="success")
    assert desk.kinds(BACK) == desk.kinds(FRONT) == []


def test_a_question_waits_until_it_is_answered(desk: Desk) -> None:
    desk.on("context/askQuestion", BACK, question="Cents?", options=["yes", "no"], urgent=True)
    assert desk.listed(FRONT)["urgent"] == 1
    item = desk.only(FRONT, "answer")
    assert item["detail"]["options"] == ["yes", "no"]
    assert desk.kinds(BACK) == []
    desk.do(FRONT, item, type="decision", content={"answer": "yes"})
    assert desk.kinds(FRONT) == []


def test_mail_is_one_item_and_a_question_in_it_another(desk: Desk) -> None:
    payload = {"summary": "Why?", "question": "Why?"}
    sent = {"to": [FRONTEND_AGENT], "type": "knowledge.query", "payload": payload}
    asked = desk.call("acp/send", BACK, **sent)["message"]["id"]
    assert desk.kinds(FRONT) == ["answer", "mail"]
    mail = desk.only(FRONT, "mail")
    assert mail["detail"]["counts"] == {"normal": 1}
    desk.call("acp/ack", FRONT, message_ids=[asked])
    assert desk.kinds(FRONT) == ["answer"], "read is not answered"
    item = desk.only(FRONT, "answer")
    desk.do(FRONT, item, payload__summary="Because", payload__answer="Because")
    assert (desk.kinds(FRONT), desk.kinds(BACK)) == ([], ["mail"])


def test_a_handoff_waits_for_each_of_its_steps(desk: Desk) -> None:
    params = {"action": "initiate", "to": FRONTEND_AGENT, "reason": "r", "package": package()}
    desk.call("acp/handoff", BACK, **params)
    filled: list[tuple[Caller, Json]] = [
        (FRONT, {}),
        (FRONT, {}),
        (FRONT, {"summary": "done"}),
        (BACK, {"summary": "ok"}),
    ]
    for caller, fill in filled:
        desk.do(caller, desk.only(caller, "handoff"), **fill)
    assert "handoff" not in desk.kinds(FRONT) + desk.kinds(BACK)


def test_a_humans_approvals(desk: Desk) -> None:
    human = Caller(HUMAN, "", "verified", "key", human=True)
    gated = {"policy": {"human_gate": "required"}, "type": "knowledge.push"}
    given = {"to": [FRONTEND_AGENT], "payload": {"summary": "gated"}, **gated}
    desk.call("acp/send", BACK, **given)
    needs = package(policy={"classification": "internal", "requires_human_approval": True})
    desk.call("acp/handoff", BACK, action="initiate", to=FRONTEND_AGENT, reason="r", package=needs)
    items = desk.listed(human, kinds=["approve"])["items"]
    assert {item["subject"]["type"] for item in items} == {"message", "handoff"}
    for item in items:
        desk.do(human, item, decision="approve")
    assert desk.listed(human)["total"] == 0
    assert desk.listed(FRONT)["counts"] == {"handoff": 1, "mail": 1}


def test_pages_are_in_order_and_complete(desk: Desk) -> None:
    for number in range(7):
        desk.proposed(name=f"contract {number}")
    desk.on("context/askQuestion", BACK, question="q", urgent=True)
    whole = desk.listed(FRONT)
    assert (whole["counts"], whole["total"], whole["urgent"]) == ({"respond": 7, "answer": 1}, 8, 1)
    assert "next" not in whole
    assert whole["items"][0]["kind"] == "answer", "the most urgent first"
    names = [item["subject"]["name"] for item in whole["items"][1:]]
    assert names == [f"contract {number}" for number in range(7)], "then the oldest"
    paged: list[Json] = []
    after: Json = {}
    while True:
        page = desk.listed(FRONT, limit=3, **after)
        assert page["total"] == 8
        paged += page["items"]
        if "next" not in page:
            break
        after = {"after": page["next"]}
    assert paged == whole["items"]
    ids = [item["id"] for item in whole["items"]]
    rest = desk.listed(FRONT, after=ids[2])["items"]
    assert [item["id"] for item in rest] == ids[3:], "the id of an item is a cursor too"


def test_it_is_narrowed_by_project_repo_kind_and_urgency(desk: Desk) -> None:
    desk.proposed()
    first, desk.project = desk.project, desk.made("Second")
    desk.proposed()
    desk.on("context/askQuestion", BACK, question="q", urgent=True)
    assert desk.kinds(FRONT) == ["answer", "respond", "respond"]
    assert desk.kinds(FRONT, projectId=first) == ["respond"]
    assert desk.kinds(FRONT, urgentOnly=True) == ["answer"]
    assert desk.kinds(FRONT, kinds=["respond", "mail"]) == ["respond", "respond"]
    own = desk.only(FRONT, "answer")["repoId"]
    assert desk.kinds(FRONT, repoId=own) == ["answer", "respond"]
    bound = Caller(FRONTEND_AGENT, FRONTEND, "verified", "key", frozenset({first}))
    assert desk.kinds(bound) == ["respond"]


def test_a_bound_key_sees_no_mail(desk: Desk) -> None:
    given = {"to": [FRONTEND_AGENT], "type": "knowledge.push", "payload": {"summary": "s"}}
    desk.call("acp/send", BACK, **given)
    bound = Caller(FRONTEND_AGENT, FRONTEND, "verified", "key", frozenset({desk.project}))
    assert (desk.kinds(FRONT), desk.kinds(bound)) == (["mail"], [])


def test_only_the_repo_that_the_caller_acts_for_counts(desk: Desk) -> None:
    """A key acts for the repo of its name, the node's own agent for one repo of a project."""
    other = Caller(FRONTEND_AGENT, "another", "verified", "key")
    desk.proposed()
    assert desk.kinds(other) == []
    assert desk.kinds(FRONT) == ["respond"]


@pytest.mark.parametrize(
    ("params", "refusal", "text"),
    [
        ({"projectId": "p"}, NotFound, "There is no project p"),
        ({"repoId": "r"}, NotFound, "repoId: you act for no repo r"),
        ({"after": "x"}, InvalidInput, "after: must be the `next`"),
        ({"after": "9.1.respond-x"}, InvalidInput, "after: must be the `next`"),
        ({"after": "1..respond-x"}, InvalidInput, "after: must be the `next`"),
    ],
)
def test_wrong_params_are_refused(
    desk: Desk, params: Json, refusal: type[Exception], text: str
) -> None:
    with pytest.raises(refusal, match=text):
        desk.listed(FRONT, **params)


def test_a_project_that_the_caller_has_not_joined(desk: Desk) -> None:
    stranger = Caller("aid://example.com/ana", "r", "verified", "key")
    with pytest.raises(Forbidden, match="call cacp/project/join first"):
        desk.listed(stranger, projectId=desk.project)
    bound = Caller(FRONTEND_AGENT, FRONTEND, "verified", "key", frozenset({"other"}))
    with pytest.raises(Forbidden, match="for project other only"):
        desk.listed(bound, projectId=desk.project)


def test_a_lost_claim_is_settled_with_its_holder(desk: Desk) -> None:
    loser = Caller("aid://example.com/ana", FRONTEND, "verified", "key")
    repo_id = next(
        repo["repo_id"]
        for repo in desk.on("project/get", BACK)["repos"]
        if repo["name"] == FRONTEND
    )
    desk.node.db.execute(
        "INSERT INTO claim_conflicts VALUES (?, ?, ?, NULL, 5, NULL, 5)",
        (desk.project, repo_id, loser.agent_id),
    )
    item = desk.only(loser, "conflict")
    assert item["subject"] == {"type": "repo", "id": repo_id, "name": FRONTEND}
    assert desk.kinds(loser, projectId=desk.project) == ["conflict"]
    desk.do(loser, item, payload__summary="I began too; shall I leave it to you?")
    assert desk.kinds(loser) == []


def test_an_item_follows_its_subject_and_its_names(desk: Desk) -> None:
    """Items that were made before are shown again only while nothing has changed."""
    contract = desk.proposed()
    at = {"contractId": contract}
    first = reading(desk, FRONT)
    assert reading(desk, FRONT) == first
    desk.on("project/addRepo", BACK, repo={"name": "ios", "role": "r", "language": "l"})
    response = {"action": "request_change", "comment": "later", **at}
    desk.on("contract/respond", BACK, **response)
    [item] = reading(desk, FRONT)
    assert item["id"] == first[0]["id"]
    assert item["detail"]["responses"][0]["comment"] == "later"


def reading(desk: Desk, caller: Caller) -> list[Json]:
    """The list outside a transaction, as a node reads it."""
    ctx = Context(desk.node.db, caller, desk.node.node, "cacp/attention/list", desk.node.now)
    listed = METHODS["cacp/attention/list"].run(ctx, ListAttentionParams())
    items: list[Json] = orjson.loads(orjson.dumps(listed["items"]))
    return items


def test_what_waits_is_counted_by_kind(desk: Desk) -> None:
    desk.proposed()
    desk.on("context/askQuestion", BACK, question="q")
    params = {"action": "initiate", "to": FRONTEND_AGENT, "reason": "r", "package": package()}
    desk.call("acp/handoff", BACK, **params)
    counts = open_counts(desk.node.db)
    assert {kind: count for kind, count in counts.items() if count} == {
        "respond": 1,
        "answer": 1,
        "handoff": 1,
        "mail": 1,
    }


@pytest.mark.sqlite
def test_contracts_on_which_nothing_waits_cost_nothing(desk: Desk) -> None:
    desk.proposed()
    before = database_steps(desk)
    for _ in range(40):
        at = {"contractId": desk.proposed()}
        desk.on("contract/respond", FRONT, action="agree", **at)
        for caller in (BACK, FRONT):
            desk.on("implementation/complete", caller, **at)
        desk.on("implementation/verify", FRONT, result="success", **at)
    assert desk.kinds(FRONT) == ["respond"]
    assert database_steps(desk) < 1.2 * before


def database_steps(desk: Desk) -> int:
    """How many instructions SQLite runs for one list."""
    steps = 0
    db = desk.node.db
    assert isinstance(db, sqlite3.Connection)

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db.set_progress_handler(count, 1)
    try:
        reading(desk, FRONT)
    finally:
        db.set_progress_handler(None, 1)
    return steps


def test_a_handoff_of_another_node_waits_by_what_that_node_reports(desk: Desk) -> None:
    handoff_id, node = str(uuid7()), "aid://example.com/far"
    given = {"to": [FRONTEND_AGENT], "type": "knowledge.push", "payload": {"summary": "Login: r"}}
    offer = desk.call("acp/send", BACK, **given)["message"]["id"]
    address = identity(FRONTEND_AGENT)
    handoffs.put_elsewhere(desk.node.db, handoff_id, address, "task", node, offer)

    def actions() -> list[list[str]]:
        items = desk.listed(FRONT, kinds=["handoff"])["items"]
        return [[step["params"]["action"] for step in item["next"]] for item in items]

    assert actions() == [["accept", "reject"]]
    reports: list[tuple[HandoffStatus, list[list[str]]]] = [
        ("validating", []),
        ("accepted", [["activate"]]),
        ("activated", [["complete"]]),
        ("completed", []),
        ("activated", [["complete"]]),
        ("closed", []),
    ]
    for status, expected in reports:
        handoffs.put_status_elsewhere(desk.node.db, handoff_id, node, status)
        assert actions() == expected, status
    assert desk.kinds(BACK) == []
