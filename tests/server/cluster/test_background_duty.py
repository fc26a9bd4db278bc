"""The services that only one replica may run: they start and stop with the duty."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from server.cluster import background_duty
from server.cluster.background_duty import BackgroundDuty
from server.domain.duty import LEASE, SECOND, Lease, end_of
from server.domain.errors import Unavailable
from server.util.duty import HeldDuty, acting_for
from server.util.loops import Loops, Turns
from server.util.service import Service
from tests.server.cluster.shared import DatabaseOfTest, Server, rows_in_memory
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_in_memory(monkeypatch)
    monkeypatch.setattr(background_duty, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(background_duty, "RENEW_SECONDS", 0.001)


class Noted(Service):
    """Notes what happens to it, and in the name of which duty its loop runs."""

    def __init__(self, notes: list[str], name: str = "") -> None:
        super().__init__(Loops())
        self.notes = notes
        self.name = name
        self.fails = False
        self.duties: list[HeldDuty | None] = []

    async def start(self) -> None:
        if self.fails:
            raise Unavailable("the disk", reason="storage_failed")
        self.notes.append(f"start{self.name}")
        self.run("noted", self._note)

    async def stop(self) -> None:
        await super().stop()
        self.notes.append(f"stop{self.name}")

    async def close(self) -> None:
        self.notes.append(f"close{self.name}")

    async def _note(self) -> Turns:
        self.duties.append(acting_for())
        yield None
        await asyncio.Event().wait()


class Member:
    """A replica with one service."""

    def __init__(self, server: Server, name: str) -> None:
        self.notes: list[str] = []
        self.service = Noted(self.notes)
        self.database = DatabaseOfTest(server, name)
        self.duty = BackgroundDuty(self.database.as_database(), Loops(), [self.service])

    def is_renewed(self) -> bool:
        held = self.duty._duty
        return held is not None and held.until == end_of(self.duty._steady())

    @property
    def works(self) -> bool:
        return self.notes[-1:] == ["start"]


@asynccontextmanager
async def members(*names: str) -> AsyncIterator[tuple[Server, list[Member]]]:
    server = Server()
    made = [Member(server, name) for name in names]
    for member in made:
        await member.duty.start()
    try:
        yield server, made
    finally:
        for member in made:
            await member.duty.stop()
            await member.duty.close()


async def test_alone_it_is_always_held_without_a_lease() -> None:
    member = Member(Server(), "a")
    member.database.shared = None
    duty = BackgroundDuty(member.database.as_database(), Loops(), [member.service])
    await duty.start()
    await until(lambda: member.service.duties == [None])
    assert duty.is_held
    assert duty.vacant_for() == 0
    await duty.stop()
    await duty.close()
    assert member.notes == ["start", "stop", "close"]


async def test_the_first_has_it_and_the_next_gets_it_at_a_clean_stop() -> None:
    async with members("a", "b") as (server, [a, b]):
        assert a.works
        assert b.notes == []
        await until(lambda: len(a.service.duties) == 1)
        [held] = a.service.duties
        assert held is not None
        assert (held.replica, held.epoch) == ("a", 1)
        await a.duty.stop()
        await until(lambda: b.works)
        assert server.lease is not None
        assert server.lease[:2] == ("b", 2)
        assert b.duty.holder.replica == "b"


async def test_a_holder_renews_for_as_long_as_it_lives() -> None:
    async with members("a", "b") as (server, [a, b]):
        for _ in range(5):
            server.time += LEASE - 2 * SECOND
            await until(a.is_renewed)
        assert a.works
        assert b.notes == []


async def test_one_that_can_t_reach_the_server_stops_before_another_begins() -> None:
    async with members("a", "b") as (server, [a, b]):
        assert a.database.shared is not None
        a.database.shared.away = True
        server.time += LEASE - SECOND
        await until(lambda: not a.works)
        assert not a.duty.is_held
        assert b.notes == []
        server.time += SECOND
        await until(lambda: b.works)
        a.database.shared.away = False
        await asyncio.sleep(0.05)
        assert a.notes == ["start", "stop"]


async def test_one_that_slept_past_its_lease_stops_when_it_wakes() -> None:
    async with members("a") as (server, [a]):
        server.lease = Lease("b", 2, server.time + 10 * LEASE)
        with capture_logs() as lines:
            await until(lambda: not a.works)
        assert [line["event"] for line in lines] == ["background_duty_lost"]
        assert a.duty.holder.replica == "b"


async def test_a_duty_that_is_lost_twice_at_once_stops_each_service_once() -> None:
    server, notes = Server(), list[str]()
    services = [Noted(notes, f" {number}") for number in (1, 2, 3)]
    database = DatabaseOfTest(server, "a")
    member = BackgroundDuty(database.as_database(), Loops(), services)
    assert member._shared is not None
    await member._turn(member._shared)
    held = member._duty
    assert held is not None
    await asyncio.gather(member._lose(held, "it lapsed"), member._lose(held, "another has it"))
    assert notes == ["start 1", "start 2", "start 3", "stop 3", "stop 2", "stop 1"]


async def test_services_that_can_t_start_are_begun_anew_with_another_epoch() -> None:
    server, notes = Server(), list[str]()
    first, second = Noted(notes, " 1"), Noted(notes, " 2")
    second.fails = True
    duty = BackgroundDuty(DatabaseOfTest(server, "a").as_database(), Loops(), [first, second])
    await duty.start()
    assert notes == ["start 1", "stop 1"]
    second.fails = False
    await until(lambda: notes[-1] == "start 2")
    held = second.duties[-1]
    assert held is not None
    assert held.epoch > 1
    await duty.stop()
    assert notes[-2:] == ["stop 2", "stop 1"]


async def test_how_long_nobody_has_had_it_is_known() -> None:
    async with members("a") as (server, [a]):
        assert a.duty.vacant_for() == 0
        assert a.database.shared is not None
        server.lease = Lease("dead", 7, server.time + SECOND)
        await until(lambda: not a.works)
        a.database.shared.away = True
        assert a.duty.vacant_for() == 0
