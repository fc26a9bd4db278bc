"""The client of an ADP exchange (CACP 2.0, ADP Integration)."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from peers.adp import (
    RENEW,
    AdpExchange,
    ExchangeError,
    Registration,
    renew_after,
)
from peers.client import HttpClient
from schemas.adp import AdpManifest, Filters, Invocation, InvocationProtocol, Listing, SearchRequest
from tests.support.node import free_port
from tests.support.scripted_http import Behaviour, ScriptedHttp, answer, huge
from tests.support.waiting import PATIENCE

T = TypeVar("T")
AID = "aid://example.com/backend@1.0.0"
ENDPOINT = "http://backend.example:8080"
MANIFEST = AdpManifest(
    aid=AID,
    name="Backend Agent",
    invocation=Invocation(
        protocols=[InvocationProtocol(type="cacp", version="2.0", endpoint=ENDPOINT)]
    ),
)
LISTED = {
    "aid": AID,
    "name": "Backend Agent",
    "manifest": {
        "aid": AID,
        "name": "Backend Agent",
        "invocation": {"protocols": [{"type": "cacp", "endpoint": ENDPOINT}]},
    },
    "score": 0.9,
}


def using(url: str, do: Callable[[AdpExchange], Awaitable[T]]) -> T:
    async def run() -> T:
        async with HttpClient(
            lambda url: None, lambda address: None, seconds=PATIENCE, answer_max=1_000_000
        ) as client:
            return await do(AdpExchange(client, f"{url}/", "cacp_sk_k"))

    return asyncio.run(run())


def search(url: str, **params: Any) -> list[Listing]:
    return using(url, lambda exchange: exchange.search(SearchRequest(**params)))


def register(url: str) -> None:
    using(url, lambda exchange: exchange.register(MANIFEST))


def test_it_searches_as_specified() -> None:
    """CACP 2.0, Search for Agents."""
    with ScriptedHttp(answer({"results": [LISTED], "total": 1})) as server:
        [found] = search(
            server.url,
            query="frontend typescript react cacp",
            filters=Filters(protocols=["cacp"]),
        )
    assert server.asked == ["/v1/search/"]
    assert json.loads(server.sent[0]) == {
        "query": "frontend typescript react cacp",
        "filters": {"protocols": ["cacp"]},
        "limit": 10,
        "offset": 0,
    }
    assert (found.aid, found.manifest.endpoint) == (AID, ENDPOINT)


def test_it_registers_as_specified() -> None:
    """CACP 2.0, Register Agent."""
    with ScriptedHttp(answer({"success": True, "aid": AID}, 201)) as server:
        register(server.url)
    assert server.asked == ["/v1/register/"]
    sent = json.loads(server.sent[0])["manifest"]
    assert (sent["aid"], sent["name"]) == (AID, "Backend Agent")
    protocol = {"type": "cacp", "version": "2.0", "endpoint": ENDPOINT}
    assert sent["invocation"] == {"protocols": [protocol]}


def test_what_is_no_listing_is_passed_over() -> None:
    odd = [None, 5, {}, {"aid": AID}, {**LISTED, "manifest": 7}, {**LISTED, "verified": "yes"}]
    with ScriptedHttp(answer({"results": [*odd, LISTED]})) as server:
        assert [one.aid for one in search(server.url)] == [AID]


def test_no_more_is_taken_than_was_asked_for() -> None:
    with ScriptedHttp(answer({"results": [LISTED] * 500})) as server:
        assert len(search(server.url, limit=3)) == 3


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (answer([]), "without a list of results"),
        (answer({"results": {}}), "without a list of results"),
        (answer({"detail": "closed"}, 503), r"refuses \(HTTP 503\): closed"),
        (answer({}, 301, location="http://elsewhere.example/"), "redirects"),
        (huge, "more than"),
    ],
)
def test_a_search_that_fails_says_why(behaviour: Behaviour, said: str) -> None:
    with ScriptedHttp(behaviour) as server, pytest.raises(ExchangeError, match=said):
        search(server.url)


@pytest.mark.parametrize(
    "behaviour",
    [
        answer({"success": False, "error": "bad manifest"}),
        answer({"detail": "bad manifest"}, 422),
        answer({"error": {"message": "bad manifest"}}, 400),
    ],
)
def test_a_registration_that_is_refused_says_why(behaviour: Behaviour) -> None:
    with ScriptedHttp(behaviour) as server, pytest.raises(ExchangeError, match="bad manifest"):
        register(server.url)


@pytest.mark.parametrize("endpoint", [ENDPOINT, "http://other.example"])
def test_whom_an_exchange_has_already_is_registered_if_it_lists_them_so(endpoint: str) -> None:
    listed = json.loads(json.dumps(LISTED).replace(ENDPOINT, endpoint))

    def behave(request: Any) -> None:
        taken = answer({"detail": "already exists"}, 409)
        found = answer({"results": [listed]})
        (taken if request.path == "/v1/register/" else found)(request)

    with ScriptedHttp(behave) as server:
        if endpoint == ENDPOINT:
            register(server.url)
        else:
            with pytest.raises(ExchangeError, match="already exists"):
                register(server.url)


def test_an_exchange_that_is_not_there() -> None:
    with pytest.raises(ExchangeError, match="The exchange can't be reached"):
        register(f"http://127.0.0.1:{free_port()}")


def test_it_stays_registered_with_a_line_for_each_change_of_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("peers.adp.RETRY_FIRST", 0.001)
    monkeypatch.setattr("peers.adp.RENEW", 0.001)
    outcomes = iter([False] * 5 + [True] * 3 + [False] * 2 + [True])
    over = asyncio.Event()

    async def attempt() -> None:
        outcome = next(outcomes, None)
        if outcome is None:
            over.set()
            await asyncio.Event().wait()
        if not outcome:
            raise ExchangeError("The exchange can't be reached")

    async def run() -> bool | None:
        registration = Registration(attempt)

        async def turns() -> None:
            async for _ in registration.run():
                pass

        task = asyncio.create_task(turns())
        await asyncio.wait_for(over.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return registration.registered

    with capture_logs() as lines:
        assert asyncio.run(run()) is True
    assert [line["event"] for line in lines] == ["adp_not_registered", "adp_registered"] * 2


@given(st.floats(0, 1, exclude_max=True))
def test_an_entry_is_renewed_long_before_it_expires(chance: float) -> None:
    assert RENEW / 2 < renew_after(chance) < RENEW * 1.5
