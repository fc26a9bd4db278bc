"""Posts notices to webhooks (acp-canonical §10, channel notify)."""

import time

import orjson

from peers.client import HttpClient
from peers.errors import PeerUnreachable
from server.domain.acp import webhooks
from server.methods.acp.push import Parcel

ANSWER_MAX = 64 * 1024
"""Bytes of a webhook's response, at most."""


class Webhooks:
    """Posts through the outgoing client. Only a 2xx status accepts the message."""

    def __init__(self, client: HttpClient, key: bytes, seconds: float) -> None:
        self._client = client
        self._key = key
        self.seconds = seconds

    async def push(self, parcel: Parcel) -> str | None:
        envelope = parcel.envelope
        body = orjson.dumps(webhooks.notice(envelope, parcel.target.address, parcel.unread))
        secret = webhooks.secret(self._key, parcel.webhook_id)
        headers = webhooks.headers(secret, envelope["id"], int(time.time()), body)
        try:
            answer = await self._client.send("POST", parcel.url, content=body, headers=headers)
        except PeerUnreachable as error:
            # The details are for the webhook's owner, not for the sender.
            return f"the webhook {str(error).partition(':')[0]}"
        if not 200 <= answer.status < 300:
            return f"the webhook answers with HTTP {answer.status}"
        return None

    async def close(self) -> None:
        await self._client.close()
