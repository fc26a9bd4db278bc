"""What a gateway's answers mean (acp-canonical §10.4)."""

import asyncio
import json

import pytest

from peers.errors import CallError, PeerRefused, PeerUnreachable
from server.store.handoffs import Intent
from server.util.outgoing_client import make_client
from server.workers.workq_client import WorkqClient
from tests.support.scripted_http import ScriptedHttp, answer

INTENT = Intent(7, "h1", "workq.claim", "WQ-7", "aid://example.com/ben", None, 0)


def call(url: str) -> None:
    async def run() -> None:
        gateway = WorkqClient(make_client(loopback_allowed=True, seconds=5.0), url, "secret")
        try:
            await gateway.call(INTENT)
        finally:
            await gateway.close()

    asyncio.run(run())


def test_a_call_names_agent_and_item_and_is_told_from_others() -> None:
    with ScriptedHttp(answer({"jsonrpc": "2.0", "id": "h1:7", "result": {}})) as workq:
        call(workq.url)
    assert json.loads(workq.sent[0]) == {
        "jsonrpc": "2.0",
        "id": "h1:7",
        "method": "workq.claim",
        "params": {"item": "WQ-7", "agent_id": "aid://example.com/ben"},
    }


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with ScriptedHttp(answer({}, status)) as workq, pytest.raises(PeerUnreachable):
        call(workq.url)


@pytest.mark.parametrize(
    ("body", "status"),
    [({"error": {"code": 1, "message": "held"}}, 200), ([], 200), (b"no JSON", 200), ({}, 403)],
)
def test_what_is_refused_is_not(body: object, status: int) -> None:
    with ScriptedHttp(answer(body, status)) as workq, pytest.raises(CallError) as refused:
        call(workq.url)
    assert isinstance(refused.value, PeerRefused)
