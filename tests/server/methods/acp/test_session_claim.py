"""cacp/attention/claim: what a session is shown, each entry once, and the rest as a count."""

import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

from schemas.attention import ClaimAttentionResult
from server.domain.session_feed import SESSIONS_MAX
from server.methods.acp.session_claim import WAITING_MAX
from server.store import keys
from tests.support.located import connect
from tests.support.mail_agent import MailAgent
from tests.support.node import RpcError
from tests.support.team import FRONTEND_AGENT, Team
from tests.support.waiting import eventually


def claim(bert: MailAgent, session: str = "s1", **how: object) -> Any:
    return bert.node.call("cacp/attention/claim", key=bert.key, session=session, **how)


def shown(bert: MailAgent, session: str = "s1", **how: object) -> list[str]:
    return [message["id"] for message in claim(bert, session, **how)["messages"]]


def test_mail_is_shown_once_to_each_session_and_stays_in_the_inbox(
    anna: MailAgent, bert: MailAgent
) -> None:
    """Without a setting: the callers are on the node's machine."""
    low = anna.send(bert, priority="low")["message"]["id"]
    sent = [anna.send(bert)["message"]["id"] for _ in range(2)]
    first = claim(bert)
    assert [message["id"] for message in first["messages"]] == sent
    assert (first["state"], first["address"]) == ("available", bert.address)
    assert first["unread"] == 3
    assert "3 unread messages" in first["summary"]
    assert shown(bert) == []
    assert shown(bert, "s2") == sent
    assert anna.receipts(sent[0]) == {bert.address: "delivered"}
    assert anna.receipts(low) == {bert.address: "pending"}
    bert.call("ack", message_ids=sent)
    assert claim(bert)["unread"] == 1
    assert shown(bert, again=True) == []
    assert bert.received() == [low]


def test_items_and_mail_come_together_and_items_end_with_their_step(
    team: Team, anna: MailAgent
) -> None:
    front = MailAgent(team.node, FRONTEND_AGENT, team.key)
    contract = team.proposed(name=f"of {team.project}")

    def about() -> Any:
        """What a session is shown of the contract, after what other tests have left."""
        while True:
            result = claim(front, team.project, format="markdown", limit=100)
            shown = [item for item in result["items"] if item["subject"]["id"] == contract]
            if shown or not result["items"]:
                return result, shown

    result, (item,) = about()
    assert item["kind"] == "respond"
    assert f"contract `of {team.project}`" in result["text"]
    assert "cacp_contract_respond" in result["text"]
    assert result["counts"]["respond"] >= 1
    assert f"{result['counts']['respond']} respond" in result["summary"]
    assert about()[1] == []
    urgent = claim(front, team.project, urgent=True)["items"]
    assert [item for item in urgent if item["subject"]["id"] == contract] == []
    team.backend("contract/update", contractId=contract, content={"path": "/v2"}, version=1)
    assert [item["kind"] for item in about()[1]] == ["respond"], "another version is news"
    notes = "SELECT count(*) FROM session_shown WHERE session = ? AND entry = ?"
    assert team.node.query(notes, team.project, item["id"]) == [(0,)], "the former one is over"


def test_an_urgent_question_keeps_a_session_from_stopping_once(team: Team) -> None:
    front = MailAgent(team.node, FRONTEND_AGENT, team.key)
    question = team.backend("context/askQuestion", question="Which format?", urgent=True)

    def held() -> list[str]:
        items = claim(front, team.project, urgent=True, limit=100)["items"]
        return [item["subject"]["id"] for item in items]

    claim(front, team.project, limit=100)
    assert question["packetId"] in held()
    assert held() == []


def test_a_session_that_forgot_is_shown_all_again(anna: MailAgent, bert: MailAgent) -> None:
    sent = anna.send(bert)["message"]["id"]
    assert shown(bert) == [sent]
    assert shown(bert, again=True) == [sent]
    forgot = claim(bert, again=True, limit=0)
    assert (forgot["messages"], forgot["more"]) == ([], True)
    assert shown(bert) == [sent]


def test_what_is_urgent_is_given_out_once_more_when_a_session_would_stop(
    anna: MailAgent, bert: MailAgent
) -> None:
    anna.send(bert)
    high = anna.send(bert, priority="high")["message"]["id"]
    assert len(shown(bert)) == 2
    first = claim(bert, urgent=True, format="markdown")
    assert [message["id"] for message in first["messages"]] == [high]
    assert first["text"].startswith("# Before you stop")
    assert shown(bert, urgent=True) == []
    assert shown(bert, urgent=True, received=0) == []
    assert shown(bert, urgent=True, again=True) == []


def test_a_text_holds_what_fits_and_the_rest_waits(anna: MailAgent, bert: MailAgent) -> None:
    sent = [anna.send(bert, payload={"summary": "x" * 900})["message"]["id"] for _ in range(5)]
    first = claim(bert, format="markdown", size=4_000)
    assert 0 < len(first["messages"]) < 5
    assert len(first["text"]) <= 4_000
    assert first["more"] is True
    rest = claim(bert, format="markdown")
    assert rest["more"] is False
    assert [one["id"] for one in first["messages"] + rest["messages"]] == sent


def test_what_never_fits_is_only_named(anna: MailAgent, bert: MailAgent) -> None:
    """A cut fence would let the text of others out."""
    lines = {"summary": "s", "details": {"list": [1] * 1_800}}
    sent = anna.send(bert, payload=lines)["message"]["id"]
    text = claim(bert, format="markdown", size=9_000)["text"]
    assert len(text) < 1_000
    assert sent in text
    assert "```" not in text


def test_a_call_that_waits_returns_with_what_comes(anna: MailAgent, bert: MailAgent) -> None:
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(shown(bert, wait=60)))
    waiting.start()
    sent = anna.send(bert)["message"]["id"]
    waiting.join()
    assert results == [[sent]]
    assert shown(bert, wait=0.1) == []


def test_a_caller_elsewhere_is_shown_nothing_unless_the_operator_says_so(
    anna: MailAgent, bert: MailAgent
) -> None:
    anna.send(bert)
    elsewhere = bert.node.http.post(
        "/",
        json={
            "jsonrpc": "2.0",
            "method": "cacp/attention/claim",
            "params": {"session": "s1", "format": "markdown"},
            "id": 1,
        },
        headers={"Authorization": f"Bearer {bert.key}", "X-Forwarded-For": "192.0.2.1"},
    ).json()["result"]
    result = ClaimAttentionResult.model_validate(elsewhere)
    assert (result.state, result.messages, result.text, result.summary) == (
        "disabled",
        [],
        None,
        None,
    )
    assert result.unread == 1


def test_a_key_for_some_projects_sees_no_mail(anna: MailAgent, bert: MailAgent) -> None:
    """Mail is no project's."""
    anna.send(bert)
    key = keys.new_key()
    with closing(connect(bert.node.db)) as db:
        keys.add(db, key, agent_id=bert.id, repo="mail", projects=["p"], now=1)
    result = claim(replace(bert, key=key))
    assert (result["messages"], result["unread"]) == ([], 0)


def test_what_many_sessions_were_shown_is_bounded(anna: MailAgent, bert: MailAgent) -> None:
    sent = anna.send(bert)["message"]["id"]
    for number in range(SESSIONS_MAX + 3):
        assert shown(bert, f"s{number}") == [sent]
    count = "SELECT count(DISTINCT session) FROM session_shown WHERE address = ?"
    assert bert.node.query(count, bert.address) == [(SESSIONS_MAX,)]
    assert shown(bert, f"s{SESSIONS_MAX + 2}") == [], "the last is remembered"
    assert shown(bert, "s0") == [sent]


def test_an_agent_has_a_limit_of_calls_that_wait(bert: MailAgent, anna: MailAgent) -> None:
    results: list[list[str]] = []
    refusals: list[str | None] = []

    def wait(session: str) -> None:
        try:
            results.append(shown(bert, session, wait=60))
        except RpcError as error:
            refusals.append(error.reason)

    waiting = [threading.Thread(target=wait, args=[f"w{n}"]) for n in range(WAITING_MAX + 1)]
    for call in waiting:
        call.start()
    eventually(lambda: refusals)
    assert shown(bert, "more") == [], "who does not wait is answered"
    assert shown(anna, "others", wait=0.01) == []
    sent = anna.send(bert)["message"]["id"]
    for call in waiting:
        call.join()
    assert (results, refusals) == ([[sent]] * WAITING_MAX, ["rate_limited"])
    assert shown(bert, "more", wait=0.01) == [sent], "their places are free"
