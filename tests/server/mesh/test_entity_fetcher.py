"""What differs is fetched page by page and merged in order (design §7)."""

import asyncio
from typing import Any, cast

from peers.digest import Name
from schemas.mesh import PullResult
from server.mesh.checked_link import CheckedLink
from server.mesh.entity_fetcher import PULL_MAX, EntityFetcher
from server.store.peers import Peer

PEER = Peer("aid://example.com/beta@1.0.0", "http://x", "beta", "verified", 1, 1, "secret", "key")


class Pulled:
    """A link to a peer that answers each pull with the next of some results."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self._results = [PullResult.model_validate(result) for result in results]
        self.asked: list[tuple[int, int]] = []
        """The number of entities of each pull, and its piece."""

    async def call(self, model: Any, method: str, newer: Any, **params: Any) -> PullResult:
        self.asked.append((len(params["entities"]), newer["piece"]))
        return self._results.pop(0)


def fetched(
    link: Pulled, names: list[Name], outcome: Any
) -> tuple[EntityFetcher, list[list[dict[str, Any]]]]:
    batches: list[list[dict[str, Any]]] = []

    async def take_all(peer: Peer, messages: list[Any]) -> list[Any]:
        batches.append(messages)
        return [outcome] * len(messages)

    async def run() -> EntityFetcher:
        fetcher = EntityFetcher(cast(CheckedLink, link), PEER, take_all)
        await fetcher.fetch(names)
        return fetcher

    return asyncio.run(run()), batches


def page(*methods: str, **more: int) -> dict[str, Any]:
    messages = [{"method": method, "params": {}} for method in methods]
    return {"messages": messages, "rest": 0} | more


def names(count: int) -> list[Name]:
    return [Name("contract", "p", str(number)) for number in range(count)]


def test_a_project_is_merged_before_what_is_in_it() -> None:
    link = Pulled(page("cacp/contract/sync", "cacp/project/sync"))
    fetcher, batches = fetched(link, names(1), {"status": "created"})
    assert [batch[0]["method"] for batch in batches] == ["cacp/project/sync", "cacp/contract/sync"]
    assert fetcher.fetched == 2


def test_what_a_peer_did_not_give_at_once_is_asked_for_again() -> None:
    link = Pulled(page(rest=3), page(rest=1, next_piece=7), page())
    fetched(link, names(PULL_MAX + 2), {"status": "created"})
    assert link.asked == [(PULL_MAX, 0), (5, 0), (1, 7)]


def test_a_peer_that_gives_nothing_is_not_asked_for_ever() -> None:
    link = Pulled(page(rest=2))
    fetched(link, names(2), {"status": "created"})
    assert link.asked == [(2, 0)]


def test_a_fault_of_this_node_is_told_once() -> None:
    link = Pulled(page("cacp/contract/sync"))
    fetcher, _ = fetched(link, names(1), RuntimeError("disk"))
    assert [str(fault) for fault in fetcher.take_faults()] == ["disk"]
    assert fetcher.take_faults() == []
    assert fetcher.fetched == 0
