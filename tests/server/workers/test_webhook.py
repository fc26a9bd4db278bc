"""Webhooks: a real receiver that is well, slow, dead, redirects or never ends (§10)."""

import time
from collections.abc import Iterator

import pytest

from server.domain.acp import webhooks
from tests.support.mail_agent import MailAgent
from tests.support.node import free_port
from tests.support.pushing_node import ATTEMPTS, PushingNode
from tests.support.waiting import eventually
from tests.support.webhook_receiver import WebhookReceiver, receiver


@pytest.fixture
def post_office(pushing: PushingNode) -> PushingNode:
    return pushing


@pytest.fixture
def hook() -> Iterator[WebhookReceiver]:
    with receiver() as made:
        yield made


def test_urgent_mail_is_announced_signed_and_in_order(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent, hook: WebhookReceiver
) -> None:
    secret = bert.call("subscribe", url=hook.url)["secret"]
    anna.send(bert, priority="normal")
    sent = [anna.send(bert, priority="high")["message"]["id"] for _ in range(3)]
    eventually(lambda: hook.ids == sent)
    for one in hook.received:
        at = int(one.headers["webhook-timestamp"])
        assert abs(time.time() - at) < 60
        expected = webhooks.signature(secret, one.id, at, one.body)
        assert one.headers["webhook-signature"] == expected
        assert one.data["recipient"] == bert.address
        assert one.data["message"]["payload"] == {"summary": "hello"}
    eventually(lambda: anna.receipts(sent[2]) == {bert.address: "delivered"})
    # Announcing is not reading: all of it waits in the inbox.
    assert len(bert.received()) == 4
    bert.call("ack", message_ids=[sent[0]])
    pushing.expire_leases(bert, "channel")
    anna.send(bert)
    eventually(lambda: len(hook.ids) == 5)
    assert hook.ids[3:] == sent[1:]
    assert hook.received[3].headers["webhook-id"] == sent[1]


def test_the_secret_stands_nowhere(
    pushing: PushingNode, bert: MailAgent, hook: WebhookReceiver
) -> None:
    """Design §6: secrets appear in no log, error, export or page."""
    first = bert.call("subscribe", url=hook.url)
    again = bert.call("subscribe", url=hook.url)
    assert first["secret"] != again["secret"]
    state = next(one for one in bert.call("channels")["channels"] if one["channel"] == "channel")
    assert (state["configured"], state["url"]) == (True, hook.url)
    for secret in (first["secret"], again["secret"]):
        assert secret.removeprefix("whsec_") not in pushing.log
        for file in pushing.folder.glob("node.db*"):
            assert secret.removeprefix("whsec_").encode() not in file.read_bytes()
    assert bert.call("unsubscribe") == {"removed": True}
    assert bert.call("unsubscribe") == {"removed": False}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (500, "the webhook answers with HTTP 500"),
        ("redirect", "the webhook redirects elsewhere (HTTP 302)"),
        ("endless", "the webhook answers with more than 65536 bytes"),
        ("hang", "the webhook did not complete its response within 1 s"),
    ],
)
def test_only_a_2xx_says_that_it_was_taken(
    pushing: PushingNode,
    anna: MailAgent,
    bert: MailAgent,
    hook: WebhookReceiver,
    answer: int | str,
    error: str,
) -> None:
    hook.answer = answer
    bert.call("subscribe", url=hook.url)
    sent = anna.send(bert, priority="high")["message"]["id"]
    eventually(lambda: pushing.pushed(bert, "channel")[0][4] == error)
    assert anna.receipts(sent) == {bert.address: "pending"}
    hook.answer = 200
    hook.release.set()
    eventually(lambda: pushing.pushed(bert, "channel")[0][0] == "delivered")
    assert set(hook.ids) == {sent}


def test_a_dead_webhook_opens_the_breaker_and_what_is_given_up_can_be_replayed(
    pushing: PushingNode, anna: MailAgent, bert: MailAgent
) -> None:
    """§12.4: what fails is left alone for a while; what failed too often is a dead letter."""
    bert.call("subscribe", url=f"http://127.0.0.1:{free_port()}/mail")
    sent = anna.send(bert, priority="high")["message"]["id"]
    name = f"channel:{bert.address}"
    eventually(lambda: pushing.query("SELECT trips FROM breakers WHERE name = ?", name) != [])
    eventually(
        lambda: (
            pushing.pushed(bert, "channel")
            == [("failed", 0, ATTEMPTS, 0, "the webhook can't be reached")]
        )
    )
    letters = anna.call("deadLetters")["letters"]
    assert [(one["message"]["id"], one["channel"]) for one in letters] == [(sent, "channel")]
    assert bert.received() == [sent]
    with receiver() as hook:
        bert.call("subscribe", url=hook.url)
        eventually(lambda: hook.ids == [sent])
        eventually(lambda: anna.call("deadLetters")["letters"] == [])
        state = bert.call("channels")["channels"][2]
        assert (state["failed"], state.get("pausedUntil")) == (0, None)
