"""Moving ownership at workq by its gateway's JSON-RPC (acp-canonical §10.4)."""

from typing import Any

from peers.outgoing import Answer, NoAnswer, Outgoing, said_against
from server.store.handoffs import Intent

ATTEMPTS = 8
"""Calls that get no answer, until the item is left to be moved by hand."""


class Refused(Exception):
    """The gateway answered that it won't; asking again would change nothing."""


class Gateway:
    """Calls `workq.claim` and `workq.release` with the agent and its session."""

    def __init__(self, outgoing: Outgoing, url: str, key: str | None) -> None:
        self._outgoing = outgoing
        self._url = url
        self._key = key

    async def call(self, intent: Intent) -> None:
        """Make the call of an intent. Raises NoAnswer when it may be tried again, else Refused.

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
        answer = await self._outgoing.post(self._url, request, key=self._key)
        if answer.status >= 500 or answer.status == 429:
            raise NoAnswer(said_against(answer))
        if not _took(answer):
            raise Refused(f"workq {said_against(answer)}")

    async def close(self) -> None:
        await self._outgoing.close()


def _took(answer: Answer) -> bool:
    body = answer.body
    return answer.status < 400 and isinstance(body, dict) and "result" in body
