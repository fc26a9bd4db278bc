"""The calls to a foreign peer, and what its answers are taken for."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from peers.client import HttpClient
from peers.errors import PeerRefused, PeerUnreachable
from peers.signing import SigningKey
from server.mesh.foreign_peer import ForeignPeer, NotServed
from server.node import Node
from server.store.peers import Peer
from tests.support.foreign_peer import AGENT, REPO, ForeignPeerDouble, card_of

T = Any
ME = "aid://x/a@1"


def ask(
    double: ForeignPeerDouble, call: Callable[[ForeignPeer], Awaitable[T]], answer_max: int = 10_000
) -> T:
    async def asked() -> T:
        node = Node(ME, "a", True, True, SigningKey(bytes(32)))
        peer = Peer(AGENT, double.url, REPO, "unkeyed", 1, 1)
        async with HttpClient(lambda _: None, lambda _: None, answer_max=answer_max) as client:
            return await call(ForeignPeer(client, node, peer))

    return asyncio.run(asked())


def test_it_is_registered_with() -> None:
    with ForeignPeerDouble() as double:
        ask(double, lambda at: at.meet())
        assert [one["agentId"] for one in double.registered] == [ME]
        assert double.calls == []


def test_one_of_another_version_is_told_nothing() -> None:
    with ForeignPeerDouble(card=card_of("3.0")) as double:
        with pytest.raises(PeerRefused, match="speaks CACP"):
            ask(double, lambda at: at.meet())
        assert (double.registered, double.calls) == ([], [])


def test_one_that_can_not_answer_now_is_not_met() -> None:
    with ForeignPeerDouble() as double:
        double.refuses["/peers/register"] = {"http": 503, "message": "later"}
        with pytest.raises(PeerRefused, match="503"):
            ask(double, lambda at: at.meet())
        assert double.calls == []


def test_what_it_lacks_is_none() -> None:
    with ForeignPeerDouble() as double:
        assert ask(double, lambda at: at.project("p")) is None
        assert ask(double, lambda at: at.contract("p", "c")) is None


def test_what_it_holds_is_shown() -> None:
    with ForeignPeerDouble() as double:
        project = double.make("other")
        contract = double.contract_of()
        double.projects[project]["contracts"].append(contract)
        shown = ask(double, lambda at: at.project(project))
        assert sorted(shown.ids) == sorted([REPO, "other"])
        found = ask(double, lambda at: at.contract(project, contract["contract_id"]))
        assert found["content"] == contract["content"]
        assert ask(double, lambda at: at.listed()) == [project]


@pytest.mark.parametrize("method", ["cacp/project/get", "cacp/contract/get"])
def test_another_object_than_the_one_asked_for_is_refused(method: str) -> None:
    with ForeignPeerDouble() as double:
        double.refuses[method] = {"result": {"project_id": "q", "contract_id": "q"}}
        with pytest.raises(PeerRefused, match=method):
            ask(
                double, lambda at: at.project("p") if "project" in method else at.contract("p", "c")
            )


def test_an_answer_that_is_too_long_is_a_refusal_and_no_silence() -> None:
    with ForeignPeerDouble() as double:
        project = double.make()
        double.projects[project]["x"] = "x" * 10_000
        with pytest.raises(PeerRefused, match="more than 10000 bytes") as refused:
            ask(double, lambda at: at.project(project))
        assert not isinstance(refused.value, PeerUnreachable)


def test_a_method_that_it_does_not_know_is_known_as_such_until_it_is_met_again() -> None:
    with ForeignPeerDouble() as double:
        double.refuses["cacp/project/list"] = {"code": -32601, "message": "Method not found"}

        async def knows(at: ForeignPeer) -> list[bool]:
            found = [at.knows("cacp/project/list")]
            assert await at.listed() == []
            found.append(at.knows("cacp/project/list"))
            await at.meet()
            return [*found, at.knows("cacp/project/list")]

        assert ask(double, knows) == [True, False, True]


@pytest.mark.parametrize("status", [401, 403, 429, 502, 503, 504])
@pytest.mark.parametrize("ask_for", ["listed", "project", "contract"])
def test_what_is_not_about_the_question_is_no_refusal_of_it(status: int, ask_for: str) -> None:
    calls: dict[str, Callable[[ForeignPeer], Awaitable[Any]]] = {
        "listed": lambda at: at.listed(),
        "project": lambda at: at.project("p"),
        "contract": lambda at: at.contract("p", "c"),
    }
    with ForeignPeerDouble() as double:
        for method in ("cacp/project/list", "cacp/project/get", "cacp/contract/get"):
            double.refuses[method] = {"http": status, "message": "no"}
        with pytest.raises(NotServed, match=str(status)):
            ask(double, calls[ask_for])
