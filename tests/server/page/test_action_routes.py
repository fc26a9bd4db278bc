"""Each action, as a person takes it in a browser, and as it is refused."""

import pytest

from tests.server.page.browsing import Browser
from tests.server.page.conftest import HUGH
from tests.support.in_process_node import package
from tests.support.node import Node, RpcError

ANN, BEN = "aid://example.com/ann", "aid://example.com/ben"


@pytest.fixture(scope="module")
def ann(away: Node) -> str:
    """The key of an agent for repo web."""
    return away.key(ANN, "web")


@pytest.fixture(scope="module")
def ben(away: Node) -> str:
    return away.key(BEN, "app")


@pytest.fixture(scope="module")
def lead(away: Node) -> str:
    """A person's key that holds repo lead."""
    return away.key("aid://example.com/lea", "lead", human=True)


def project(node: Node, ann: str) -> dict[str, str]:
    repos = [{"name": name, "role": "r", "language": "l"} for name in ("web", "app", "lead")]
    made = node.call("cacp/project/create", key=ann, name="n", objective="o", repos=repos)
    return {"projectId": made["projectId"]}


def contract(node: Node, ann: str, at: dict[str, str]) -> dict[str, str]:
    given = {"type": "api_endpoint", "name": "login", "content": {"path": "/login"}}
    made = node.call("cacp/contract/propose", key=ann, **at, **given)
    return at | {"contractId": made["contractId"], "version": "1"}


def gated(node: Node, ann: str) -> str:
    sending = {"to": [BEN], "type": "knowledge.push", "payload": {"summary": "s"}}
    sent = node.call("acp/send", key=ann, **sending, policy={"human_gate": "required"})
    return str(sent["message"]["id"])


def test_approve_and_refuse(person: Browser, ann: str, ben: str) -> None:
    node = person.node
    first, second = gated(node, ann), gated(node, ann)
    assert person.outcome("approve", message_id=first) == (
        f"good: The message is approved, and goes to {BEN}."
    )
    assert (
        person.outcome("refuse", message_id=second)
        == "good: The message is refused, and goes to nobody."
    )
    waiting = node.call("acp/inbox", key=ben)["messages"]
    assert [message["id"] for message in waiting] == [first]
    again = person.outcome("approve", message_id=second)
    assert again.startswith("bad: ")
    assert "not awaiting approval" in again


def test_a_handoff_is_approved(person: Browser, ann: str, ben: str) -> None:
    gate = {"policy": {"requires_human_approval": True}}
    given = {"to": BEN, "reason": "r", "package": package("task-page", **gate)}
    made = person.node.call("acp/handoff", key=ann, action="initiate", **given)
    outcome = person.outcome("approve", message_id=made["handoff"]["handoffId"])
    assert outcome.startswith("good: The handoff is approved")


def test_a_person_with_a_repo_answers_agrees_and_asks_for_a_change(
    browser: Browser, ann: str, lead: str
) -> None:
    node = browser.node
    at = project(node, ann)
    node.call("cacp/project/join", key=lead, **at, repoName="lead")
    browser.sign_in(lead)
    asked = node.call("cacp/context/askQuestion", key=ann, **at, question="May I?")["packetId"]
    assert browser.outcome("answer", **at, packetId=asked, answer="Yes").startswith("good: ")
    thread = node.call("cacp/context/getThread", key=ann, **at, packetId=asked)["thread"]
    assert thread[-1]["content"] == {"answer": "Yes"}
    which = contract(node, ann, at)
    changed = browser.outcome("request-change", **which, comment="smaller")
    assert changed == (
        "good: You asked for a change of version 1. The contract is negotiating now."
    )
    assert browser.outcome("agree", **contract(node, ann, at)).startswith("good: You agreed to")
    stale = browser.outcome("agree", **(which | {"version": "7"}))
    assert stale.startswith("bad: ")


def test_a_person_without_a_repo_can_not_answer_for_one(person: Browser, ann: str) -> None:
    which = contract(person.node, ann, project(person.node, ann))
    for action, more in (("agree", {}), ("request-change", {"comment": "c"})):
        outcome = person.outcome(action, **which, **more)
        assert outcome.startswith("bad: You hold no repo in project")


def test_a_nudge_is_sent_once_in_some_minutes(person: Browser, ann: str) -> None:
    nudge = {"to": ANN, "about": "respond to login", "item": "respond-of-this-test"}
    assert person.outcome("nudge", **nudge) == f"good: Nudged {ANN}."
    assert "was nudged about this less than a minute ago" in person.outcome("nudge", **nudge)
    [message] = person.node.call("acp/inbox", key=ann)["messages"]
    assert message["from"] == HUGH
    assert "respond to login" in message["payload"]["summary"]
    unknown = nudge | {"to": "aid://example.com/nobody"}
    assert person.outcome("nudge", **unknown) == person.outcome("nudge", **unknown)


def test_a_double_click_is_one_message(person: Browser, ben: str) -> None:
    before = len(person.node.call("acp/inbox", key=ben)["messages"])
    for _ in range(2):
        outcome = person.outcome("message", to=BEN, text="Stop", once="same-form")
        assert outcome == f"good: Sent to {BEN}."
    assert len(person.node.call("acp/inbox", key=ben)["messages"]) == before + 1


def test_revoke_ends_an_agents_keys(person: Browser) -> None:
    node, agent = person.node, "aid://example.com/gone"
    key = node.key(agent, "gone")
    assert person.outcome("revoke", agentId=agent) == (
        f"good: 1 key of {agent} revoked: it is refused from now on."
    )
    with pytest.raises(RpcError, match="revoked"):
        node.call("cacp/project/list", key=key)
    assert "no active key" in person.outcome("revoke", agentId=agent)


def test_release_frees_a_repo(person: Browser, ann: str) -> None:
    at = project(person.node, ann)
    outcome = person.outcome("release", **at, repoName="web")
    assert outcome == f"good: Repo web is released from {ANN}, and free now."
    assert "Nobody holds repo web" in person.outcome("release", **at, repoName="web")


def test_mail_to_a_person_is_read(person: Browser, ann: str) -> None:
    payload = {"summary": "May I?"}
    given = {"to": ["aid://example.com/hugh"], "type": "knowledge.push", "payload": payload}
    sent = person.node.call("acp/send", key=ann, **given)["message"]["id"]
    assert person.outcome("mark-read", ids=sent) == "good: 1 message marked as read."
    assert person.outcome("mark-read", ids="nothing") == "good: 0 messages marked as read."


def test_a_persons_own_dead_letter_is_sent_again(person: Browser, human_key: str) -> None:
    assert person.outcome("replay", message_id="nothing").startswith("bad: ")


def test_an_outcome_is_shown_once(person: Browser) -> None:
    response = person.act("approve", message_id="nothing")
    to = response.headers["location"]
    assert 'data-kind="bad"' in person.get(to).text
    assert 'data-kind="bad"' not in person.get(to).text


def test_an_agents_session_may_only_look(browser: Browser, ann: str) -> None:
    browser.sign_in(ann)
    response = browser.act("message", to=BEN, text="x")
    assert response.status_code == 403
    assert "only people act on the page" in response.text


def test_the_operator_does_not_act_in_a_persons_place(browser: Browser, ann: str, ben: str) -> None:
    browser.sign_in(browser.node.operator)
    assert browser.act("approve", message_id=gated(browser.node, ann)).status_code == 403


def test_an_unknown_action_and_a_wrong_field_are_named(person: Browser) -> None:
    assert person.act("destroy").status_code == 404
    assert person.outcome("approve") == "bad: message_id: say something here, it is needed"
    assert person.get("/ui/actions/approve").status_code in (404, 405)
    assert person.act("approve", message_id="x", once="ä").status_code in (303, 400)


def test_what_agents_write_is_escaped_in_an_outcome(person: Browser) -> None:
    outcome = person.outcome("revoke", agentId="<script>alert(1)</script>")
    assert "<script>" not in outcome
    assert "&lt;script&gt;" in outcome


def test_only_the_operator_revokes_people(person: Browser, lead: str) -> None:
    assert "only the operator revokes" in person.outcome("revoke", agentId="aid://example.com/lea")
