"""Moves the ownership of workq items through the gateway's JSON-RPC (acp-canonical §10.4)."""

from typing import Any

from peers.client import HttpClient, result_of
from peers.errors import PeerRefused, PeerUnreachable
from server.store.handoffs import Intent

ATTEMPTS = 8
"""Unanswered calls after which the item must be moved by hand."""


class WorkqClient:
    """Calls `workq.claim` and `workq.release` with the agent and its session."""

    def __init__(self, client: HttpClient, url: str, key: str | None) -> None:
        self._client = client
        self._url = url
        self._key = key

    async def call(self, intent: Intent) -> None:
        """Make the call of an intent. Raises Unreachable when it may be retried, else Refused.

        The request id is the intent's, so that the gateway recognises a repeated call.
        """
        params = {"item": intent.item, "agent_id": intent.agent_id}
        if intent.session_key is not None:
            params["session_key"] = intent.session_key
        request: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": f"{intent.handoff_id}:{intent.seq}",
            "method": intent.method,
            "params": params,
        }
        try:
            result_of(await self._client.post(self._url, request, key=self._key))
        except PeerRefused as refused:
            if refused.status >= 500 or refused.status == 429:
                raise PeerUnreachable(str(refused)) from None
            raise

    async def close(self) -> None:
        await self._client.close()
