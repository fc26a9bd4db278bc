"""What a gateway's answers mean (acp-canonical §10.4)."""

from typing import Any, cast

import anyio
import pytest

from peers.outgoing import Answer, NoAnswer, Outgoing
from server.store.handoffs import Intent
from server.workq import Gateway, Refused

INTENT = Intent(7, "h1", "workq.claim", "WQ-7", "aid://example.com/ben", None, 0)


class Answering:
    """Stands for the network: `Outgoing` itself is tested in tests/peers/test_outgoing.py."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sent: list[Any] = []

    async def post(self, url: str, body: object, *, key: str | None) -> Answer:
        self.sent.append((url, body, key))
        return self.answer


def call(answer: Answer) -> list[Any]:
    network = Answering(answer)
    gateway = Gateway(cast(Outgoing, network), "http://workq/rpc", "secret")
    anyio.run(gateway.call, INTENT)
    return network.sent


def test_a_call_names_agent_and_item_and_is_told_from_others() -> None:
    (sent,) = call(Answer(200, {"jsonrpc": "2.0", "id": "h1:7", "result": {}}))
    body = {
        "jsonrpc": "2.0",
        "id": "h1:7",
        "method": "workq.claim",
        "params": {"item": "WQ-7", "agent_id": "aid://example.com/ben"},
    }
    assert sent == ("http://workq/rpc", body, "secret")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(status: int) -> None:
    with pytest.raises(NoAnswer):
        call(Answer(status, {}))


@pytest.mark.parametrize(
    "answer",
    [Answer(200, {"error": {"code": 1, "message": "held"}}), Answer(200, []), Answer(403, {})],
)
def test_what_is_refused_is_not(answer: Answer) -> None:
    with pytest.raises(Refused):
        call(answer)
