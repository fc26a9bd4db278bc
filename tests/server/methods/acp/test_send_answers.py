"""acp/respond: what an answer need not repeat."""

from tests.server.methods.refusals import refused
from tests.support.mail_agent import MailAgent


def test_an_answer_need_not_repeat_what_it_answers(anna: MailAgent, bert: MailAgent) -> None:
    asked = anna.send(
        bert, type="knowledge.query", payload={"summary": "port?", "question": "Which port?"}
    )["message"]["id"]
    answer = {"summary": "8080", "answer": "8080"}
    sent = bert.call("respond", message_id=asked, type="knowledge.response", payload=answer)
    assert sent["message"]["payload"] == answer | {"query_id": asked}
    seen = bert.call("respond", message_id=asked, type="system.ack", payload={"summary": "seen"})
    assert seen["message"]["payload"]["message_id"] == asked
    push = anna.send(bert)["message"]["id"]
    with refused(-32602, "schema_invalid"):
        bert.call("respond", message_id=push, type="knowledge.response", payload=answer)
