"""acp/send, acp/respond, acp/status (acp-canonical §4, §5, §10.3, §11, §12)."""

import json
from typing import Any
from uuid import uuid4

import pytest

from schemas.acp import RESERVED
from tests.server.methods.refusals import refused
from tests.support.mail_agent import MailAgent, MailAgents, soon
from tests.support.node import AGENT, Node
from tests.support.waiting import eventually


def audited(node: Node, agent: MailAgent) -> list[tuple[str, str, str | None]]:
    """What the audit has of an agent: action, outcome, reason."""
    rows = node.query(
        "SELECT action, outcome, detail FROM acp_audit WHERE actor = ? ORDER BY seq", agent.id
    )
    return [
        (action, outcome, json.loads(detail or "{}").get("reason"))
        for action, outcome, detail in rows
    ]


def count(node: Node, agent: MailAgent) -> int:
    """The messages that are kept of an agent."""
    found = node.query("SELECT count(*) FROM messages WHERE from_agent = ?", agent.id)
    return int(found[0][0])


# --- the envelope --------------------------------------------------------------------------------


def test_a_message_has_the_envelope_of_the_specification(anna: MailAgent, bert: MailAgent) -> None:
    """§4: the sender is the caller; what is absent is left out."""
    done = anna.send(
        bert,
        topic="ports",
        context={
            "external_refs": [{"type": "pr", "value": "42"}],
            "artifacts": [{"type": "file", "path": "/src/a.py", "sha256": "0" * 64}],
        },
    )
    message = done["message"]
    assert message == {
        "id": message["id"],
        "protocol": "acp",
        "version": "1.0.0",
        "from": anna.id,
        "to": [bert.id],
        "thread_id": message["id"],
        "type": "knowledge.push",
        "topic": "ports",
        "priority": "normal",
        "status": "pending",
        "payload": {"summary": "hello"},
        "policy": {"visibility": "private", "sensitivity": "low", "human_gate": "none"},
        "context": {
            "external_refs": [{"type": "pr", "value": "42"}],
            "artifacts": [{"type": "file", "path": "/src/a.py", "sha256": "0" * 64}],
        },
        "created_at": message["created_at"],
    }
    assert message["id"][14] == "7"
    assert done["receipts"] == [{"recipient": bert.address, "status": "pending"}]
    assert done["capabilities"]["inbox"] == "available"
    assert done["capabilities"]["wake"] == "disabled"


def test_a_message_goes_once_to_each_that_it_names(anna: MailAgent, bert: MailAgent) -> None:
    done = anna.send(bert, bert)
    assert done["message"]["to"] == [bert.id]
    assert len(bert.received()) == 1


def test_a_newer_release_of_an_agent_reads_what_came_for_the_older(
    anna: MailAgent, agents: MailAgents, node: Node
) -> None:
    old = agents("carl")
    newer = old.id.replace("@1.0.0", "@2.0.0")
    sent = anna.send(old)["message"]["id"]
    found = node.call("acp/inbox", key=node.key(newer, "mail"))
    assert [one["id"] for one in found["messages"]] == [sent]


# --- the sender --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["send", "respond", "status"])
def test_nobody_says_who_sends(anna: MailAgent, bert: MailAgent, node: Node, method: str) -> None:
    """§12.1: refused with a typed error, and audited; nothing is written."""
    given = {"to": [bert.id], "from": bert.id}
    with refused(-32602, "sender_supplied"):
        anna.call(method, **given)
    assert audited(node, anna) == [(f"acp/{method}", "refused", "sender_supplied")]
    assert count(node, anna) == count(node, bert) == 0


def test_a_key_of_another_agent_is_no_way_around(
    anna: MailAgent, bert: MailAgent, node: Node
) -> None:
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "acp/send",
            "params": {"to": [bert.id], "type": "knowledge.push", "payload": {"summary": "s"}},
        }
    )
    given = {"authorization": f"Bearer {anna.key}", "x-agent-id": bert.id}
    assert node.raw(body, given).status_code == 403
    assert count(node, bert) == 0


# --- schema and policy ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"type": "knowledge.pull"}, "schema_invalid"),
        ({"to": []}, "schema_invalid"),
        ({"to": ["*", "aid://example.com/x"]}, "schema_invalid"),
        ({"payload": {}}, "schema_invalid"),
        ({"payload": {"summary": ""}}, "schema_invalid"),
        ({"payload": {"summary": "s", "mood": "good"}}, "schema_invalid"),
        ({"type": "status.blocked"}, "schema_invalid"),
        ({"type": "handoff.accept", "payload": {"summary": "s", "handoff_id": "h"}},
         "policy_violation"),
        ({"priority": "urgent"}, "schema_invalid"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "schema_invalid"),
        ({"expires_at": "tomorrow"}, "schema_invalid"),
        ({"expires_at": "9999-12-31T23:59:59-23:59"}, "schema_invalid"),
        ({"sequence": 0}, "schema_invalid"),
        ({"version": "2.0.0"}, "unsupported_version"),
        ({"version": "1"}, "schema_invalid"),
        ({"protocol": "smtp"}, "schema_invalid"),
        ({"status": "read"}, "schema_invalid"),
        ({"policy": {"visibility": "team"}}, "policy_violation"),
        ({"policy": {"visibility": "public"}}, "schema_invalid"),
        ({"to": ["aid://example.com/nobody@1.0.0"]}, "unknown_recipient"),
        ({"reply_to": "no-such-message"}, "not_found"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_audited_and_not_written(
    anna: MailAgent, bert: MailAgent, node: Node, wrong: dict[str, Any], reason: str
) -> None:
    """§12.2: a typed error, an audit event, no record."""
    with refused(-32602, reason):
        anna.send(bert, **wrong)
    assert audited(node, anna) == [("acp/send", "refused", reason)]
    assert count(node, anna) == 0
    assert bert.inbox()["highWater"] == 0


@pytest.mark.parametrize("type", RESERVED)
def test_types_of_a_later_phase_are_refused_by_name(
    anna: MailAgent, bert: MailAgent, type: str
) -> None:
    """§5.2."""
    with refused(-32602, "type_reserved"):
        anna.send(bert, type=type)


def test_a_minor_version_ahead_is_spoken_to(anna: MailAgent, bert: MailAgent) -> None:
    """§3: additions are compatible."""
    assert anna.send(bert, version="1.9.0")["message"]["version"] == "1.0.0"


def test_a_payload_may_have_4096_bytes_and_not_one_more(anna: MailAgent, bert: MailAgent) -> None:
    """§2.9, §12.3: measured as JSON in UTF-8, and the error says where to put what is larger."""
    room = 4096 - len('{"summary":"s","details":{"t":""}}')
    anna.send(bert, payload={"summary": "s", "details": {"t": "x" * room}})
    with refused(-32006, "payload_too_large", limit=4096, size=4097, instead="context.artifacts"):
        anna.send(bert, payload={"summary": "s", "details": {"t": "x" * (room + 1)}})
    with refused(-32006, "payload_too_large"):
        anna.send(bert, payload={"summary": "s", "details": {"t": "é" * (room // 2 + 1)}})


# --- limits and broadcasts ------------------------------------------------------------------------


def test_ten_messages_a_minute_and_the_next_waits(
    anna: MailAgent, bert: MailAgent, node: Node
) -> None:
    """§10.3."""
    for _ in range(10):
        anna.send(bert)
    with refused(-32005, "rate_limited", kind="direct", limit=10) as _:
        anna.send(bert)
    assert count(node, anna) == 10
    anna.send(bert, to=["*"], priority="high")


def test_a_broadcast_reaches_everyone_else_that_the_node_knows(
    anna: MailAgent, bert: MailAgent, agents: MailAgents, node: Node
) -> None:
    """§10.3: who holds a key or a repo here, and the node's own agent."""
    carl = agents("carl")
    done = anna.send(to=["*"], priority="high")
    reached = {one["recipient"] for one in done["receipts"]}
    assert {bert.address, carl.address, AGENT.rpartition("@")[0]} <= reached
    assert anna.address not in reached
    assert done["message"]["to"] == ["*"]
    assert bert.received() == [done["message"]["id"]]
    assert anna.received() == []


def test_a_broadcast_needs_authority_or_urgency(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    with refused(-32003, "broadcast_not_allowed"):
        anna.send(to=["*"])
    with refused(-32003, "broadcast_not_allowed"):
        anna.send(bert, *(agents("many") for _ in range(10)))
    with refused(-32602, "policy_violation"):
        anna.send(to=["*"], priority="high", policy={"sensitivity": "high"})


def test_five_broadcasts_an_hour(anna: MailAgent) -> None:
    for _ in range(5):
        anna.send(to=["*"], priority="critical")
    with refused(-32005, "rate_limited", kind="broadcast", limit=5):
        anna.send(to=["*"], priority="critical")


def test_who_does_what_it_may_not_again_and_again_is_not_heard_for_a_while(
    anna: MailAgent, bert: MailAgent, node: Node
) -> None:
    """§12.4: the circuit breaker of a sender; what it still tries is not written down."""
    for _ in range(20):
        with refused(-32003, "broadcast_not_allowed"):
            anna.send(to=["*"])
    for _ in range(3):
        with refused(-32005, "circuit_open", cause="broadcast_not_allowed"):
            anna.send(bert)
    events = audited(node, anna)
    assert len(events) == 21
    assert events[-1] == ("acp/send", "circuit_opened", "broadcast_not_allowed")
    bert.send(anna)


def test_who_only_makes_mistakes_is_heard(anna: MailAgent, bert: MailAgent, node: Node) -> None:
    """§12.4: a typo and a limit are no abuse; what is audited of them is bounded."""
    for _ in range(10):
        anna.send(bert)
    for _ in range(10):
        with refused(-32005, "rate_limited"):
            anna.send(bert)
    for _ in range(20):
        with refused(-32602, "type_reserved"):
            anna.send(bert, type="task.offer")
    with refused(-32005, "rate_limited"):
        anna.send(bert)
    assert len(audited(node, anna)) == 20


# --- idempotency --------------------------------------------------------------------------------


def test_a_retried_send_is_answered_with_the_first(
    anna: MailAgent, bert: MailAgent, node: Node
) -> None:
    """§12.5."""
    first = anna.send(bert, client_id="build-7")
    for _ in range(12):
        again = anna.send(bert, client_id="build-7")
        assert again["message"] == first["message"]
        assert again["duplicate"] is True
    assert first["duplicate"] is False
    assert count(node, anna) == 1
    assert len(bert.received()) == 1
    bert.send(anna, client_id="build-7")


@pytest.mark.parametrize("how", [{}, {"sequence": 1}, {"sequence": 2}, {"priority": "high"}])
def test_the_receipts_of_a_new_message_are_those_that_are_kept(
    anna: MailAgent, bert: MailAgent, agents: MailAgents, how: dict[str, Any]
) -> None:
    """They are answered without a look into the store, also of what is held."""
    carl = agents("carl")
    first = anna.send(carl, bert, client_id="build-8", **how)
    again = anna.send(carl, bert, client_id="build-8", **how)
    assert [one["recipient"] for one in first["receipts"]] == [carl.address, bert.address]
    assert again["receipts"] == first["receipts"]


def test_a_client_id_stands_for_one_message(anna: MailAgent, bert: MailAgent) -> None:
    sent = anna.send(bert, client_id="build-7")["message"]["id"]
    with refused(-32004, "client_id_reused", messageId=sent):
        anna.send(bert, client_id="build-7", topic="another")


# --- threads --------------------------------------------------------------------------------


def test_an_answer_stays_in_its_thread(anna: MailAgent, bert: MailAgent) -> None:
    """§11: acp_respond preserves thread and reply; confidentiality goes with it."""
    asked = anna.send(
        bert,
        type="knowledge.query",
        payload={"summary": "port?", "question": "Which port?"},
        topic="ports",
        policy={"sensitivity": "moderate", "visibility": "human-audit"},
    )["message"]
    said = {"summary": "8080", "answer": "8080", "query_id": asked["id"]}
    answer = bert.call("respond", message_id=asked["id"], type="knowledge.response", payload=said)
    message = answer["message"]
    assert (message["to"], message["reply_to"]) == ([anna.id], asked["id"])
    assert (message["thread_id"], message["topic"]) == (asked["thread_id"], "ports")
    assert message["policy"] == {
        "visibility": "human-audit", "sensitivity": "moderate", "human_gate": "none"
    }  # fmt: skip
    assert anna.received() == [message["id"]]


def test_an_answer_may_go_to_all(anna: MailAgent, bert: MailAgent, agents: MailAgents) -> None:
    carl = agents("carl")
    asked = anna.send(bert, carl)["message"]["id"]
    given: dict[str, Any] = {"type": "knowledge.push", "payload": {"summary": "s"}}
    to_all = bert.call("respond", message_id=asked, to_all=True, **given)
    assert {one["recipient"] for one in to_all["receipts"]} == {anna.address, carl.address}
    own = anna.call("respond", message_id=asked, **given)
    assert {one["recipient"] for one in own["receipts"]} == {bert.address, carl.address}


def test_a_stranger_has_no_part_in_a_thread(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    sent = anna.send(bert)["message"]
    carl = agents("carl")
    with refused(-32602, "not_found"):
        carl.call("respond", message_id=sent["id"], type="knowledge.push", payload={"summary": "s"})
    with refused(-32003, "not_in_thread"):
        carl.send(anna, thread_id=sent["thread_id"])
    bert.send(anna, thread_id=sent["thread_id"])


def test_what_comes_before_its_turn_waits_for_it(anna: MailAgent, bert: MailAgent) -> None:
    """§12.5: sequence is monotonic within a thread; what is early is quarantined."""
    thread = f"t-{anna.address}"
    sent = {}
    for number in (3, 2):
        done = anna.send(bert, thread_id=thread, sequence=number)
        sent[number] = done["message"]["id"]
        assert done["held"] == "quarantine"
    assert bert.received() == []
    with refused(-32004, "sequence_taken"):
        anna.send(bert, thread_id=thread, sequence=3)
    sent[1] = anna.send(bert, thread_id=thread, sequence=1)["message"]["id"]
    assert bert.received() == [sent[1], sent[2], sent[3]]
    with refused(-32004, "sequence_taken", next=4):
        anna.send(bert, thread_id=thread, sequence=3)


# --- status --------------------------------------------------------------------------------


def test_status_is_a_message_of_its_type(anna: MailAgent, bert: MailAgent) -> None:
    """§11: a convenience wrapper for status.* messages."""
    done = anna.call(
        "status", to=[bert.id], state="blocked", summary="stuck", blocked_on="the schema"
    )
    assert done["message"]["type"] == "status.blocked"
    assert done["message"]["payload"] == {"summary": "stuck", "blocked_on": "the schema"}
    with refused(-32602, "schema_invalid"):
        anna.call("status", to=[bert.id], state="complete", summary="s", blocked_on="x")
    problem = {"path": "params", "problem": "blocked_on is required for state 'blocked'"}
    with refused(-32602, "schema_invalid", errors=[problem]):
        anna.call("status", to=[bert.id], state="blocked", summary="s")


def test_what_is_urgent_leaves_an_audit_event(anna: MailAgent, bert: MailAgent, node: Node) -> None:
    """§12.8."""
    anna.send(bert)
    assert audited(node, anna) == []
    anna.send(bert, priority="critical")
    assert audited(node, anna) == [("acp/send", "accepted", None)]


def test_mail_belongs_to_no_project(anna: MailAgent, node: Node, team: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "acp/inbox", "params": {}})
    answer = node.raw(body, {"x-project-token": team.token()}).json()
    assert answer["error"]["data"]["reason"] == "other_project"


def test_expiry_is_told_in_utc(anna: MailAgent, bert: MailAgent) -> None:
    message = anna.send(bert, expires_at=soon(3600))["message"]
    assert message["expires_at"].endswith("+00:00")


def test_a_step_of_a_handoff_is_no_answer(anna: MailAgent, bert: MailAgent) -> None:
    """Nobody is told of a step that was not taken (§7.2 rule 1)."""
    asked = anna.send(bert)["message"]["id"]
    payload = {"summary": "done", "handoff_id": "h"}
    with refused(-32602, "policy_violation"):
        bert.call("respond", message_id=asked, type="handoff.complete", payload=payload)
    assert anna.inbox()["highWater"] == 0


def test_a_context_points_to_what_is_large_and_holds_none_of_it(
    anna: MailAgent, bert: MailAgent
) -> None:
    """§2.9: what doesn't fit into a payload does not go round it."""
    refs = [{"type": "url", "value": "é" * 200} for _ in range(50)]
    with refused(-32006, "context_too_large"):
        anna.send(bert, context={"external_refs": refs})
    assert bert.inbox()["highWater"] == 0
    anna.send(bert, context={"external_refs": refs[:30]})


TEAM = {"visibility": "team"}


def test_what_is_for_a_teamspace_stays_in_it(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    """§8, §12.3: of members, to members, of a teamspace that there is."""
    name, carl = f"t-{uuid4().hex[:12]}", agents("carl")
    with refused(-32602, "unknown_team", path="team"):
        anna.send(bert, team=name, policy=TEAM)
    member = {"agent_id": bert.id, "role": "executor"}
    anna.call("team", action="create", team=name, name="T", members=[member])
    with refused(-32003, "not_in_team", path="team"):
        carl.send(anna, team=name, policy=TEAM)
    with refused(-32003, "not_in_team", path="team"):
        status = {"state": "update", "summary": "s", "team": name, "policy": TEAM}
        carl.call("status", to=[anna.id], **status)
    with refused(-32003, "not_in_team", path="to", strangers=[carl.address]):
        anna.send(bert, carl, team=name, policy=TEAM)
    with refused(-32602, "policy_violation", path="to"):
        anna.send(to=["*"], priority="high", team=name, policy=TEAM)
    assert carl.received() == []
    sent = anna.send(bert, team=name, policy=TEAM)["message"]["id"]
    anna.send(bert, team=name, payload={"summary": "between us"})
    lines = anna.call("team", action="log", team=name, log="messages")["lines"]
    assert [one["line"]["message"]["payload"]["summary"] for one in lines] == ["hello"]
    said: dict[str, Any] = {"type": "knowledge.push", "payload": {"summary": "s"}}
    answer = bert.call("respond", message_id=sent, **said)["message"]
    assert (answer["team"], answer["policy"]["visibility"]) == (name, "team")
    anna.call("team", action="removeMember", team=name, agent_id=bert.id)
    answer = bert.call("respond", message_id=sent, **said)["message"]
    assert (answer["team"], answer["policy"]["visibility"]) == (name, "private")
    anna.call("team", action="close", team=name)
    with refused(-32602, "unknown_team"):
        anna.send(anna, team=name, policy=TEAM)


def test_a_teamspace_locks_nobody_out_who_used_its_name(anna: MailAgent, bert: MailAgent) -> None:
    """Without `visibility: team` the name is a label, which proves nothing."""
    name = f"t-{uuid4().hex[:12]}"
    sent = anna.send(bert, team=name)["message"]
    assert sent["team"] == name
    bert.call("team", action="create", team=name, name="T")
    assert anna.send(bert, team=name, thread_id=sent["id"])["message"]["team"] == name
    assert bert.call("team", action="log", team=name, log="messages")["lines"] == []


@pytest.mark.parametrize("end", ["refused", "expired"])
def test_what_no_human_let_through_is_read_nowhere(
    anna: MailAgent, bert: MailAgent, agents: MailAgents, end: str
) -> None:
    """§12.8: nor once it has failed or expired, nor in the log of its teamspace."""
    human, name = agents("dora", human=True), f"t-{uuid4().hex[:12]}"
    member = {"agent_id": bert.id, "role": "executor"}
    anna.call("team", action="create", team=name, name="T", members=[member])
    policy = {"human_gate": "required", "visibility": "team"}
    expiry = {"expires_at": soon(0.5)} if end == "expired" else {}
    sent = anna.send(bert, team=name, policy=policy, **expiry)["message"]["id"]
    if end == "refused":
        human.call("approve", message_id=sent, decision="refuse")
    eventually(lambda: anna.receipts(sent)[bert.address] in ("failed", "expired"))
    assert bert.call("query", message_id=sent)["messages"] == []
    assert bert.call("query", thread_id=sent)["messages"] == []
    assert bert.inbox(show="all")["messages"] == []
    assert bert.call("team", action="log", team=name, log="messages")["lines"] == []
    with refused(-32003, "not_in_thread"):
        bert.send(anna, thread_id=sent)


def test_what_a_human_lets_through_is_in_its_teamspaces_log(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    human, name = agents("dora", human=True), f"t-{uuid4().hex[:12]}"
    member = {"agent_id": bert.id, "role": "executor"}
    anna.call("team", action="create", team=name, name="T", members=[member])
    policy = {"human_gate": "required", "visibility": "team"}
    sent = anna.send(bert, team=name, policy=policy)["message"]["id"]
    human.call("approve", message_id=sent)
    lines = anna.call("team", action="log", team=name, log="messages")["lines"]
    assert [one["line"]["message"]["id"] for one in lines] == [sent]
