"""Services start in order and stop in reverse order, whatever one of them raises."""

import asyncio
from functools import partial

import pytest

from server.util.loops import Loops, repeat
from server.util.service import Service, running
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Noted(Service):
    """Notes its start and its stop; fails in one of the two where told."""

    def __init__(self, name: str, notes: list[str], fails: str = "") -> None:
        super().__init__(Loops())
        self.name = name
        self.notes = notes
        self.fails = fails

    async def start(self) -> None:
        self._note("start")

    async def stop(self) -> None:
        await super().stop()
        self._note("stop")

    async def close(self) -> None:
        self._note("close")

    def _note(self, step: str) -> None:
        self.notes.append(f"{step} {self.name}")
        if step == self.fails:
            raise RuntimeError(self.name)


async def test_services_stop_in_the_reverse_of_their_order() -> None:
    notes: list[str] = []
    async with running([Noted("a", notes), Noted("b", notes)]):
        assert notes == ["start a", "start b"]
    assert notes[2:] == ["stop b", "close b", "stop a", "close a"]


async def test_a_start_that_fails_stops_what_has_started() -> None:
    notes: list[str] = []
    with pytest.raises(RuntimeError, match="b"):
        async with running([Noted("a", notes), Noted("b", notes, "start"), Noted("c", notes)]):
            pass
    assert notes == ["start a", "start b", "close b", "stop a", "close a"]


async def test_a_stop_that_fails_keeps_no_other_from_stopping() -> None:
    notes: list[str] = []
    with pytest.raises(RuntimeError, match="b"):
        async with running([Noted("a", notes), Noted("b", notes, "stop")]):
            pass
    assert notes[2:] == ["stop b", "close b", "stop a", "close a"]


async def test_the_loops_of_a_service_run_until_it_stops() -> None:
    loops, turns = Loops(), 0
    service = Service(loops)

    async def act() -> Exception | None:
        nonlocal turns
        turns += 1
        return ValueError("an item")

    service.run("mine", partial(repeat, 0.001, act))
    await until(lambda: turns > 2)
    assert loops.failing == ["mine"]
    await service.stop()
    assert "cacp-mine" not in {task.get_name() for task in asyncio.all_tasks()}
    assert loops.failing == []
