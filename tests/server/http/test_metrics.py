"""GET /metrics: what the node counts, for Prometheus."""

import asyncio
from typing import TypeVar, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server.domain.errors import Unavailable
from server.http.metrics import Metrics
from server.store.connection import Connection, ReadFunction
from tests.support.node import Node, RpcError
from tests.support.team import Team

T = TypeVar("T")


async def without_store(function: ReadFunction[T], /) -> T:
    """A read of metrics none of which asks the store."""
    return function(cast(Connection, None))


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Each sample's value by its name and its labels' values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_by_method_and_outcome() -> None:
    metrics = Metrics()
    metrics.observe("cacp/project/get", "ok")
    metrics.observe("cacp/project/get", "ok")
    metrics.observe("cacp/project/get", "refused")
    found = samples(asyncio.run(metrics.text(without_store)).decode())
    assert found["cacp_calls_total", "cacp/project/get", "ok"] == 2
    assert found["cacp_calls_total", "cacp/project/get", "refused"] == 1


def test_a_gauge_is_asked_at_each_scrape() -> None:
    things: list[int] = []
    metrics = Metrics()
    metrics.gauge("cacp_things", "Things", lambda: len(things))
    metrics.gauge("cacp_events_total", "Events", lambda: 7)
    for count in (1, 2):
        things.append(count)
        found = samples(asyncio.run(metrics.text(without_store)).decode())
        assert (found["cacp_things",], found["cacp_events_total",]) == (count, 7)


def test_a_family_has_a_value_for_each_of_what_it_names() -> None:
    metrics = Metrics()
    metrics.family("cacp_peer_backlog", "Entities", "peer", lambda: {"a": 1, "b": 2})
    found = samples(asyncio.run(metrics.text(without_store)).decode())
    assert (found["cacp_peer_backlog", "a"], found["cacp_peer_backlog", "b"]) == (1, 2)


def test_a_store_that_can_not_be_read_hides_no_other_metric() -> None:
    async def refuse(function: ReadFunction[T], /) -> T:
        raise Unavailable("away", reason="storage_away")

    metrics = Metrics()
    metrics.gauge("cacp_things", "Things", lambda: 3)
    metrics.stored_gauge("cacp_rows", "Rows", lambda db: 4)
    metrics.stored_family("cacp_kinds", "Rows by kind", "kind", lambda db: {"a": 1})
    before = samples(asyncio.run(metrics.text(without_store)).decode())
    assert (before["cacp_rows",], before["cacp_kinds", "a"]) == (4, 1)
    after = samples(asyncio.run(metrics.text(refuse)).decode())
    assert after["cacp_things",] == 3
    assert ("cacp_rows",) not in after


def scrape(node: Node) -> dict[tuple[str, ...], float]:
    response = node.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return samples(response.text)


def test_a_node_counts_its_calls_and_writes(team: Team) -> None:
    before = scrape(team.node)
    contract = team.proposed()
    with pytest.raises(RpcError):
        team.contract("nothing")
    team.contract(contract)
    after = scrape(team.node)

    def more(*name: str) -> float:
        return after[name] - before.get(name, 0)

    assert more("cacp_calls_total", "cacp/contract/propose", "ok") == 1
    assert more("cacp_calls_total", "cacp/contract/get", "ok") == 1
    assert more("cacp_calls_total", "cacp/contract/get", "refused") == 1
    assert more("cacp_writes_total") >= 1
    assert more("cacp_commits_total") >= 1
    assert after.keys() >= {
        ("cacp_waiting_writes",),
        ("cacp_event_streams",),
        ("cacp_mail_dead_letters", "archived"),
        ("process_resident_memory_bytes",),
    }


def test_an_unknown_method_is_not_counted_by_its_name(node: Node) -> None:
    """What callers make up must not fill the memory."""
    node.raw('{"jsonrpc":"2.0","method":"made/up","id":1}')
    assert not [name for name in scrape(node) if "made/up" in name]
