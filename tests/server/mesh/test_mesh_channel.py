"""How entities reach a mesh node (design §7)."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import orjson
import pytest

from peers.client import HttpClient
from peers.digest import Name
from peers.errors import PeerRefused
from peers.signing import SigningKey
from server.mesh.mesh_channel import MADE_AT_ONCE, MeshChannel
from server.methods.sync.composer import BuiltMessages, Composer
from server.node import Node as Self
from server.store.peers import Peer

ERRORS: dict[str, dict[str, Any]] = {
    "wrong": {"code": -32602, "message": "no", "data": {"reason": "invalid_params"}},
    "breaks": {
        "code": -32000,
        "message": "Server error 1f: something broke",
        "data": {"reason": "internal_error", "id": "1f"},
    },
    "full": {"code": -32000, "message": "no room", "data": {"reason": "storage_full"}},
    "unknown": {"code": -32601, "message": "Method not found"},
    "orphan": {"code": -32602, "message": "no claim", "data": {"kind": "claim"}},
}


class Taking:
    """A peer that takes so many messages at once, and lacks the projects of some."""

    def __init__(self, most: int, lacks: set[str]) -> None:
        self.most = most
        self.lacks = lacks
        self.batches: list[list[str]] = []

    async def post(self, url: str, body: bytes, *, key: str | None) -> Any:
        requests = orjson.loads(body)
        if len(requests) > self.most or any("huge" in one["params"] for one in requests):
            raise PeerRefused("refuses (HTTP 413)", status=413)
        self.batches.append([one["params"] for one in requests])
        return [self._answer(one) for one in requests]

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["params"] in self.lacks:
            error = {"code": -32602, "message": "no", "data": {"kind": "claim"}}
            self.lacks.remove(request["params"])
            return {"id": request["id"], "error": error}
        if request["params"] in ERRORS:
            return {"id": request["id"], "error": ERRORS[request["params"]]}
        return {"id": request["id"], "result": {"status": "created"}}


class Composing:
    """Makes messages of names alone, and counts how many at once."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def messages(self, names: Mapping[Name, int | None]) -> list[tuple[Name, BuiltMessages]]:
        self.asked.append(len(names))
        return [(name, self._made(name.entity_id)) for name in names]

    def _made(self, entity_id: str) -> BuiltMessages:
        if entity_id.startswith("unsendable"):
            return BuiltMessages((), "can't be signed")
        pieces = 3 if entity_id.startswith("large") else 1
        return BuiltMessages(
            tuple(orjson.dumps({"method": "m", "params": entity_id}) for _ in range(pieces))
        )


def delivered(names: list[str], most: int, lacks: set[str]) -> tuple[Taking, Composing]:
    taking, composing = Taking(most, lacks), Composing()
    untaken(names, taking, composing)
    return taking, composing


def untaken(names: list[str], taking: Taking, composing: Composing) -> dict[str, str]:
    """What the peer does not take, each with why."""
    node = Self("aid://x/a@1", "a", True, True, SigningKey(bytes(32)))
    peer = Peer("aid://x/b@1", "http://x", "b", "verified", 1, 1, secret="s")

    async def rejoin(peer: Peer) -> None:
        raise AssertionError

    link = MeshChannel(cast(HttpClient, taking), node, peer, cast(Composer, composing), rejoin)
    found = asyncio.run(link.deliver({Name("contract", "p", name): 1 for name in names}))
    return {name.entity_id: reason for name, reason in found.items()}


def test_a_peer_that_takes_smaller_batches_gets_them() -> None:
    names = [str(number) for number in range(70)]
    taking, _ = delivered(names, 20, set())
    assert [name for batch in taking.batches for name in batch] == names
    assert max(map(len, taking.batches)) <= 20


def test_a_peer_of_an_older_release_is_asked_without_what_it_does_not_know() -> None:
    """And doesn't count as down for it."""
    older = PeerRefused("refuses", status=200, code=-32602)
    asked, states = [], []

    class Answering:
        async def call(self, url: str, method: str, params: Any, *, key: str | None) -> Any:
            asked.append(set(params) - {"source_agent"})
            if "kinds" in params:
                raise older
            return "answer"

    async def rejoin(peer: Peer) -> None:
        raise AssertionError

    node = Self("aid://x/a@1", "a", True, True, SigningKey(bytes(32)))
    peer = Peer("aid://x/b@1", "http://x", "b", "verified", 1, 1, secret="s")
    link = MeshChannel(
        cast(HttpClient, Answering()), node, peer, cast(Composer, Composing()), rejoin
    )
    link.on_contact = lambda: states.append("heard")
    link.on_failure = lambda error: states.append("lost")
    assert asyncio.run(link.call("m", {"kinds": []}, prefixes=[])) == "answer"
    assert asked == [{"prefixes", "kinds"}, {"prefixes"}]
    older = PeerRefused("refuses", status=200, code=-32003)
    with pytest.raises(PeerRefused):
        asyncio.run(link.call("m", {"kinds": []}, prefixes=[]))
    assert (asked[2:], states) == ([{"prefixes", "kinds"}], ["heard", "lost"])


def test_few_messages_of_a_backlog_are_made_at_once() -> None:
    names = [str(number) for number in range(450)]
    taking, composing = delivered(names, 1_000, set())
    assert [name for batch in taking.batches for name in batch] == names
    assert (sum(composing.asked), max(composing.asked)) == (450, MADE_AT_ONCE)


def test_what_lacked_its_project_is_sent_again_after_it() -> None:
    taking, _ = delivered(["a", "b", "c"], 10, {"b"})
    assert taking.batches == [["a", "b", "c"], ["p"], ["b"]]


# --- what can't be sent or is refused -----------------------------------------------------------


def test_what_is_refused_for_good_is_told_and_the_others_are_taken() -> None:
    taking = Taking(100, set())
    names = ["a", "wrong", "huge", "breaks", "unsendable", "unknown", "orphan", "large", "b"]
    assert untaken(names, taking, Composing()) == {
        "wrong": "refuses: no",
        "huge": "refuses (HTTP 413)",
        "breaks": "an internal error of the peer; its log has the details",
        "unsendable": "can't be signed",
        "orphan": "refuses: no claim",
    }
    sent = [name for batch in taking.batches for name in batch]
    assert sent.count("large") == 3
    assert {"a", "b", "p"} <= set(sent)


def test_what_is_the_fault_of_the_peers_disk_is_sent_again_with_all_after_it() -> None:
    with pytest.raises(PeerRefused, match="no room"):
        untaken(["a", "full", "b"], Taking(100, set()), Composing())
