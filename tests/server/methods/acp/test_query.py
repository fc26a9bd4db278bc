"""acp/query (acp-canonical §11)."""

from tests.support.mail_agent import MailAgent, MailAgents, soon


def found(agent: MailAgent, /, **filters: object) -> list[str]:
    return [one["message"]["id"] for one in agent.call("query", **filters)["messages"]]


def test_filters_by_all_that_the_specification_names(anna: MailAgent, bert: MailAgent) -> None:
    """§11: by agent, thread, type, status, topic, time."""
    plain = anna.send(bert)["message"]
    about = anna.send(bert, topic="ports", type="status.update")["message"]
    back = bert.send(anna)["message"]
    assert found(anna) == [back["id"], about["id"], plain["id"]]
    assert found(anna, agent=bert.id) == found(anna)
    assert found(bert, agent=bert.address, type="status.update") == [about["id"]]
    assert found(anna, thread_id=plain["thread_id"]) == [plain["id"]]
    assert found(anna, topic="ports") == [about["id"]]
    assert found(anna, since=about["created_at"], until=back["created_at"]) == [about["id"]]
    bert.inbox(ack=[about["id"]])
    assert found(anna, status="read") == [about["id"]]
    assert found(anna, since=soon(60)) == []


def test_pages(anna: MailAgent, bert: MailAgent) -> None:
    sent = [anna.send(bert)["message"]["id"] for _ in range(3)]
    first = anna.call("query", limit=2)
    assert [one["message"]["id"] for one in first["messages"]] == sent[:0:-1]
    rest = anna.call("query", limit=2, cursor=first["nextCursor"])
    assert [one["message"]["id"] for one in rest["messages"]] == sent[:1]
    assert rest.get("nextCursor") is None


def test_a_message_is_its_parties_business(
    anna: MailAgent, bert: MailAgent, agents: MailAgents
) -> None:
    """§4 policy: private by default; a human sees what is meant for human audit, or critical."""
    private = anna.send(bert)["message"]["id"]
    audit = anna.send(bert, policy={"visibility": "human-audit"})["message"]["id"]
    critical = anna.send(bert, priority="critical")["message"]["id"]
    assert found(agents("carl"), agent=anna.id) == []
    human = agents("dora", human=True)
    assert found(human, agent=anna.id) == [critical, audit]
    assert private in found(bert)
