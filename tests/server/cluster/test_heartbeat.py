"""Replicas hear of each other what each tells, once a second."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from server.cluster import heartbeat
from server.cluster.heartbeat import Heartbeat, ReplicaTopic, own_address
from server.domain.location import DatabaseUrl
from server.store.database import Database
from server.store.postgresql.migrate import prepare
from server.util.loops import Loops
from tests.support.postgresql import database
from tests.support.waiting import until


@asynccontextmanager
async def beating(
    url: DatabaseUrl, address: str, *topics: ReplicaTopic
) -> AsyncIterator[Heartbeat]:
    store = Database(url)
    await store.open(0)
    beats = Heartbeat(store, Loops(), address, "2.0", lambda: "healthy", topics)
    await beats.start()
    try:
        yield beats
    finally:
        await beats.stop()
        await store.close()


def test_replicas_hear_what_others_tell_and_miss_who_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.02)
    heard: list[Mapping[str, Any]] = []
    own: list[Mapping[str, Any]] = []

    async def play(url: DatabaseUrl) -> None:
        listens = ReplicaTopic("news", lambda: {"of": "a"}, heard.append)
        tells = ReplicaTopic("news", lambda: {"of": "b"}, own.append)
        newer = ReplicaTopic("of a later release", dict, own.append)
        async with beating(url, "a:1", listens) as one:
            async with beating(url, "b:1", tells, newer) as other:
                await until(lambda: bool(heard) and bool(own))
                addresses = [replica.address for replica in other.running()]
                assert addresses == ["a:1", "b:1"]
                assert {one.own, other.own} == {each.replica for each in other.replicas}
            await until(lambda: [each.address for each in one.running()] == ["a:1"])

    with database() as url:
        prepare(url)
        asyncio.run(play(url))
    assert {report["of"] for report in heard} == {"b"}
    assert {report["of"] for report in own} == {"a"}


@pytest.mark.parametrize("host", ["10.0.0.7", "node.example"])
def test_a_replica_is_named_by_where_it_listens(host: str) -> None:
    assert own_address(host, 8) == f"{host}:8"


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_one_that_listens_on_all_addresses_is_named_by_its_machine(host: str) -> None:
    assert own_address(host, 8) not in (f"{host}:8", ":8")
