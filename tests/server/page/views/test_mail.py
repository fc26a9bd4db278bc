"""Mail as pages: threads, one thread, dead letters, hostile text."""

from typing import Any

import pytest

from server.page.views.mail import PRIORITIES
from tests.server.page.browsing import Browser
from tests.support.node import Node, bearer

BROWSER = {"accept": "text/html"}
HOSTILE = '<script>alert(1)</script>\u202e" onclick="x" javascript:alert(1) ' + "W" * 100


@pytest.fixture(scope="module")
def keys(node: Node) -> tuple[str, str, str]:
    """The keys of two agents that no other test knows, and of a person."""
    return (
        node.key("aid://example.com/postman", "postman"),
        node.key("aid://example.com/reader", "reader"),
        node.key("aid://example.com/overseer", "overseer", human=True),
    )


def send(node: Node, key: str, summary: str, **params: Any) -> str:
    given = {"to": ["aid://example.com/reader"], "type": "knowledge.push", **params}
    sent = node.call("acp/send", key=key, **given, payload={"summary": summary})
    return str(sent["message"]["id"])


def page(node: Node, path: str, key: str) -> str:
    response = node.http.get(path, headers=BROWSER | bearer(key))
    assert response.status_code == 200, response.text
    return response.text


def waits_for(node: Node, key: str, thread: str) -> list[str]:
    """The messages of a thread that wait for the holder of a key to read them."""
    twin = node.http.get(f"/ui/mail/threads/{thread}.json", headers=bearer(key)).json()
    return list(twin["unreadIds"])


def test_hostile_text_is_text(node: Node, keys: tuple[str, str, str]) -> None:
    postman, reader, _ = keys
    thread = send(node, postman, HOSTILE, topic=HOSTILE)
    for path in ("/ui/mail", f"/ui/mail/threads/{thread}"):
        shown = page(node, path, reader)
        assert "&lt;script&gt;alert(1)" in shown
        assert "<script>alert" not in shown
        assert 'onclick="x"' not in shown


def test_a_thread_shows_each_message_with_its_receipts(
    node: Node, keys: tuple[str, str, str]
) -> None:
    postman, reader, _ = keys
    first = send(node, postman, "Ready for review", topic="billing")
    send(node, reader, "On it", to=["aid://example.com/postman"], reply_to=first)
    node.call("acp/ack", key=reader, message_ids=[first])
    shown = page(node, f"/ui/mail/threads/{first}", postman)
    assert shown.index("Ready for review") < shown.index("On it")
    assert 'data-state="read"' in shown
    twin = node.http.get(f"/ui/mail/threads/{first}.json", headers=bearer(postman)).json()
    assert twin["topic"] == "billing"
    assert twin["recipients"] == ["aid://example.com/reader"]
    assert twin["replyTo"] == twin["messages"][-1]["message"]["id"]
    assert [len(twin["unreadIds"]), waits_for(node, reader, first)] == [1, []]
    assert f"/ui/mail/threads/{first}" in page(node, "/ui/mail", postman)


def test_a_person_oversees_what_is_open_and_nothing_else(
    node: Node, keys: tuple[str, str, str]
) -> None:
    postman, _, overseer = keys
    secret = send(node, postman, "Only between us two")
    alarm = send(node, postman, "All payments fail", priority="critical")
    shown = page(node, "/ui/mail", overseer)
    assert "All payments fail" in shown
    assert "Only between us two" not in shown
    twin = node.http.get(f"/ui/mail/threads/{alarm}.json", headers=bearer(overseer)).json()
    assert twin["replyTo"] is None, "they are no party: they begin a thread of their own"
    assert set(twin["recipients"]) == {"aid://example.com/postman", "aid://example.com/reader"}
    refused = node.http.get(f"/ui/mail/threads/{secret}", headers=BROWSER | bearer(overseer))
    assert refused.status_code == 404


def test_a_person_writes_and_sends_dead_letters_again(
    node: Node, keys: tuple[str, str, str]
) -> None:
    browser = Browser(node)
    browser.sign_in(keys[2])
    assert 'action="/ui/actions/message"' in browser.get("/ui/mail").text
    to = "aid://example.com/reader"
    done = browser.outcome("message", to=to, text="Which build is it?", priority="high")
    assert done.startswith("good: Sent to")
    [latest, *_] = node.call("acp/threads", key=keys[1])["threads"]
    assert (latest["topic"], latest["priority"]) == ("Which build is it?", "high")
    thread = browser.get(f"/ui/mail/threads/{latest['threadId']}").text
    assert f'name="reply_to" value="{latest["lastMessageId"]}"' in thread


def test_a_person_asks_the_sender_of_a_dead_letter(node: Node, keys: tuple[str, str, str]) -> None:
    gated = {"policy": {"human_gate": "required"}, "priority": "critical"}
    dead = send(node, keys[0], "Nobody got this", **gated)
    node.call("acp/approve", key=keys[2], message_id=dead, decision="refuse")
    browser = Browser(node)
    browser.sign_in(keys[2])
    shown = browser.get("/ui/mail").text
    assert "Ask postman to send it again" in shown
    assert "/ui/actions/replay" not in shown
    browser.sign_in(keys[0])
    assert "Ask postman" not in browser.get("/ui/mail").text


def test_a_malformed_place_among_dead_letters_is_refused(
    node: Node, keys: tuple[str, str, str]
) -> None:
    response = node.http.get("/ui/mail?dead=x", headers=BROWSER | bearer(keys[0]))
    assert response.status_code == 400
    assert PRIORITIES[0] == "normal"
