"""The body and the signature of a webhook call: Standard Webhooks 1.0 (acp-canonical §10).

webhook-id: the message's id, the same for each push
webhook-timestamp: seconds since 1970 of this attempt
webhook-signature: v1,BASE64(HMAC-SHA256(secret, "ID.TIMESTAMP.BODY"))
"""

import hmac
from base64 import b64decode, b64encode
from typing import Any

PREFIX = "whsec_"
TYPE = "acp.message"


def secret(node_key: bytes, webhook_id: str) -> str:
    """The secret of a webhook, `whsec_` and 32 bytes as Base64. It is derived, and stored
    nowhere."""
    made = hmac.digest(node_key, b"webhook:" + webhook_id.encode(), "sha256")
    return PREFIX + b64encode(made).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    key = b64decode(secret.removeprefix(PREFIX))
    signed = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{b64encode(signed).decode()}"


def headers(secret: str, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, id, timestamp, body),
    }


def notice(envelope: dict[str, Any], recipient: str, unread: int) -> dict[str, Any]:
    """The body: an envelope (§4) for a recipient, and the number of unread messages in its box.

    The node can't know who reads at the URL, so payload, context and topic of a highly sensitive
    message are left out; the recipient reads them in the inbox.
    """
    policy = envelope["policy"]
    if policy["sensitivity"] == "high":
        hidden = ("payload", "context", "topic")
        envelope = {name: value for name, value in envelope.items() if name not in hidden}
    return {
        "type": TYPE,
        "timestamp": envelope["created_at"],
        "data": {"recipient": recipient, "unread": unread, "message": envelope},
    }
