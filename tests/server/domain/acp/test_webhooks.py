"""Signed notices, as Standard Webhooks says (acp-canonical §10)."""

from base64 import b64decode
from typing import Any

from server.domain.acp import webhooks

ENVELOPE: dict[str, Any] = {
    "id": "m1",
    "created_at": "2026-02-21T09:30:00.000000+00:00",
    "topic": "t",
    "payload": {"summary": "s"},
    "context": {"session_id": "s1"},
    "policy": {"sensitivity": "low"},
}


def test_the_signature_is_that_of_the_standards_example() -> None:
    """https://github.com/standard-webhooks/standard-webhooks: the vector of its libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}'
    assert (
        webhooks.signature(secret, id, 1614265330, body)
        == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


def test_each_webhook_has_a_secret_of_its_own_that_can_be_made_again() -> None:
    key = bytes(32)
    secret = webhooks.secret(key, "w1")
    assert secret == webhooks.secret(key, "w1")
    assert secret.startswith("whsec_")
    assert len(b64decode(secret.removeprefix("whsec_"))) == 32
    others = {webhooks.secret(key, "w2"), webhooks.secret(b"x" * 32, "w1")}
    assert len(others | {secret}) == 3


def test_the_headers_are_those_of_the_standard() -> None:
    headers = webhooks.headers(webhooks.secret(b"k", "w1"), "m1", 17, b"{}")
    assert headers["webhook-id"] == "m1"
    assert headers["webhook-timestamp"] == "17"
    assert headers["webhook-signature"].startswith("v1,")


def test_a_notice_holds_the_envelope() -> None:
    notice = webhooks.notice(ENVELOPE, "aid://x/bert", 3)
    assert notice == {
        "type": "acp.message",
        "timestamp": ENVELOPE["created_at"],
        "data": {"recipient": "aid://x/bert", "unread": 3, "message": ENVELOPE},
    }


def test_what_is_highly_sensitive_does_not_leave_by_a_webhook() -> None:
    secret = ENVELOPE | {"policy": {"sensitivity": "high"}}
    message = webhooks.notice(secret, "aid://x/bert", 1)["data"]["message"]
    assert set(message) == {"id", "created_at", "policy"}
