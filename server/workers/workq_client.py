"""Moving ownership at workq by its gateway's JSON-RPC (acp-canonical §10.4)."""

from typing import Any

from peers.client import Client, result_of
from peers.errors import Refused, Unreachable
from server.store.handoffs import Intent

ATTEMPTS = 8
"""Calls that get no answer, until the item is left to be moved by hand."""


class WorkqClient:
    """Calls `workq.claim` and `workq.release` with the agent and its session."""

    def __init__(self, client: Client, url: str, key: str | None) -> None:
        self._client = client
        self._url = url
        self._key = key

    async def call(self, intent: Intent) -> None:
        """Make the call of an intent. Raises Unreachable when it may be tried again, else Refused.

        The request's id is the intent's, so that a gateway can tell a repeated call.
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
        except Refused as refused:
            if refused.status >= 500 or refused.status == 429:
                raise Unreachable(str(refused)) from None
            raise

    async def close(self) -> None:
        await self._client.close()
