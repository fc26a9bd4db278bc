"""What a peer answers is checked before it is used."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from peers.errors import CallError, PeerRefused
from peers.signing import SigningKey
from schemas.mesh import BansResult
from server.mesh.anti_entropy import Comparison
from server.mesh.checked_link import CheckedLink
from server.node import Node
from server.store.database import Database
from server.store.peers import Peer
from tests.server.mesh.test_anti_entropy import ALPHA, BETA, fill
from tests.support.located import location_of


class Confused:
    """A link to a peer that answers, but never with what was asked for."""

    async def call(self, name: str, newer: Any = None, **params: Any) -> Any:
        return {}


def test_a_peer_that_answers_otherwise_than_asked_is_named(tmp_path: Path) -> None:
    """It is up, so that nothing else says that it is not compared with."""

    async def run() -> None:
        async def take_all(peer: Peer, messages: list[Any]) -> list[Any]:
            return []

        database = Database(location_of(tmp_path / "a.db"))
        await database.open(1)
        link: Any = Confused()
        peer = Peer(BETA, "http://x", "beta", "verified", 1, 1, "secret", "key")
        comparison = Comparison(database, alpha, peer, link, 60, take_all, asyncio.Lock())
        for _ in range(2):
            with pytest.raises(CallError):
                await comparison.round(lambda _: None)
        await database.close()

    alpha = Node(ALPHA, "alpha", True, True, SigningKey(bytes(32)))
    fill(tmp_path / "a.db", alpha, BETA, 0)
    with capture_logs() as lines:
        asyncio.run(run())
    named = [line for line in lines if line["event"] == "comparison_failed"]
    assert [(line["peer"], line["reason"]) for line in named] == [
        (BETA, "its answer is not a valid DigestResult")
    ]


class Older:
    """A channel to a peer that refuses each call with a code."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.failures: list[CallError] = []

    async def ask(self, name: str, **params: Any) -> Any:
        raise PeerRefused("refused", status=200, code=self.code)

    def on_failure(self, error: CallError) -> None:
        self.failures.append(error)


def test_a_method_that_an_older_release_does_not_know_is_no_failure() -> None:
    peer = Peer(BETA, "http://x", "beta", "verified", 1, 1, "secret", "key")
    older, broken = Older(-32601), Older(-32000)
    link = CheckedLink(cast(Any, older), peer)
    assert asyncio.run(link.ask_newer(BansResult, "cacp/sync/bans")) is None
    assert older.failures == []
    with pytest.raises(PeerRefused):
        asyncio.run(CheckedLink(cast(Any, broken), peer).ask_newer(BansResult, "cacp/sync/bans"))
    assert len(broken.failures) == 1
