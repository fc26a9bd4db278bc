"""acp/deadLetters and acp/replay (acp-canonical §4.1, §10)."""

from tests.server.methods.refusals import refused
from tests.support.mail_agent import MailAgent, MailAgents, soon
from tests.support.waiting import eventually


def dead(agent: MailAgent) -> list[tuple[str, str]]:
    return [
        (one["message"]["id"], one["receipt"]["recipient"])
        for one in agent.call("deadLetters", limit=500)["letters"]
    ]


def test_what_expired_is_told_to_its_sender_and_can_be_sent_again(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    carl = agents("carl")
    sent = anna.send(bert, carl, expires_at=soon(1.0), topic="t")["message"]
    carl.inbox(ack=[sent["id"]])
    eventually(lambda: dead(anna) == [(sent["id"], bert.address)])
    assert dead(bert) == []
    assert anna.receipts(sent["id"]) == {bert.address: "expired", carl.address: "read"}
    assert bert.inbox()["counts"]["expired"] == 1
    again = anna.call("replay", message_id=sent["id"])["message"]
    assert (again["topic"], again["thread_id"]) == ("t", sent["thread_id"])
    assert again["context"]["external_refs"][0]["value"] == sent["id"]
    assert anna.call("replay", message_id=sent["id"])["duplicate"] is True
    assert bert.received() == [again["id"]]
    assert carl.received() == []


def test_one_replays_ones_own_dead_letters(anna: MailAgent, bert: MailAgent) -> None:
    sent = anna.send(bert)["message"]["id"]
    with refused(-32602, "illegal_transition"):
        anna.call("replay", message_id=sent)
    with refused(-32602, "not_found"):
        bert.call("replay", message_id=sent)


def test_a_human_asks_the_sender_of_a_dead_letter_that_it_sees(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    """No message is written in the name of another (§12.1)."""
    human = agents("dora", human=True)
    sent = anna.send(bert, policy={"human_gate": "required"})["message"]["id"]
    human.call("approve", message_id=sent, decision="refuse")
    with refused(-32003, "not_the_sender"):
        human.call("replay", message_id=sent)
    private = anna.send(bert)["message"]["id"]
    with refused(-32602, "not_found"):
        human.call("replay", message_id=private)
    with refused(-32602, "not_found"):
        bert.call("replay", message_id=sent)


def test_a_human_sees_the_dead_letters_that_are_a_humans_business(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    human = agents("dora", human=True)
    sent = anna.send(bert, policy={"human_gate": "required"})["message"]["id"]
    human.call("approve", message_id=sent, decision="refuse")
    assert (sent, bert.address) in dead(human)
    assert dead(anna) == [(sent, bert.address)]
    first = human.call("deadLetters", limit=1)
    assert len(first["letters"]) == 1
    private = anna.send(bert, expires_at=soon(0.5))["message"]["id"]
    eventually(lambda: (private, bert.address) in dead(anna))
    assert (private, bert.address) not in dead(human)


def test_a_letter_with_as_many_references_as_may_be_is_replayed(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    human = agents("dora", human=True)
    refs = [{"type": "url", "value": str(number)} for number in range(50)]
    gated = {"policy": {"human_gate": "required"}, "context": {"external_refs": refs}}
    sent = anna.send(bert, **gated)["message"]["id"]
    human.call("approve", message_id=sent, decision="refuse")
    again = anna.call("replay", message_id=sent)
    assert again["held"] == "gate"
    assert again["message"]["context"]["external_refs"] == refs
