"""A node that starts with a clock that is years ahead ends nothing by it (design §7)."""

from pathlib import Path
from typing import Any

import pytest

from peers.clock import GAP, PROVING, SECOND, STRIDE, Reading, Sure
from peers.timekeeper import JUMP_KEPT, Timekeeper
from server.store import stamps, unreceived_changes
from server.store.connection import Connection
from server.store.database import Database
from server.store.stamps import Stamps
from server.util.loops import Loops
from server.workers.sure_time import SureTime
from tests.server.store.test_unreceived_changes import HOUR, NODE, write
from tests.support.located import location_of, prepare

# Replicas go by the clock of the database server.
pytestmark = [pytest.mark.anyio, pytest.mark.sqlite]

BEGIN = 1_800_000_000 * SECOND
DAY = 24 * 3_600 * SECOND
YEAR = 365 * DAY


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Machine:
    """A machine's clocks, which tests move; a node on it starts, looks and stops."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ahead = 0
        self.time = BEGIN
        prepare(path)

    async def start(self, last_stamp: int = 0) -> None:
        keeper = Timekeeper(lambda: self.time + self.ahead, lambda: self.time)
        kept = Stamps()
        kept.clock = keeper
        self.database = Database(location_of(self.path), stamps=kept)
        await self.database.open(last_stamp)
        self.certainty = SureTime(self.database, Loops(), last_stamp)
        await self.certainty.start()

    async def stop(self) -> None:
        await self.certainty.stop()
        await self.database.close()

    async def run(self, micros: int, step: int = STRIDE) -> None:
        """The node runs on, and looks at each step."""
        end = self.time + micros
        while self.time < end:
            self.time = min(end, self.time + step)
            await self.certainty._look()

    @property
    def sure(self) -> int:
        """How far the time that is sure is from the truth."""
        return self.database.clock.sure() - self.time

    @property
    def is_doubtful(self) -> bool:
        return self.database.clock.doubt is not None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "cacp.db")


async def test_the_first_start_takes_the_clock_as_it_is(machine: Machine) -> None:
    await machine.start()
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_a_weekend_off_is_nothing(machine: Machine) -> None:
    await machine.start()
    await machine.stop()
    machine.time += GAP - SECOND
    await machine.start()
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


@pytest.mark.parametrize("seconds", [4 * 24 * 3_600, 365 * 24 * 3_600, 3_650 * 24 * 3_600])
async def test_a_start_with_a_clock_far_ahead_goes_on_from_where_it_was(
    machine: Machine, seconds: int
) -> None:
    await machine.start()
    await machine.stop()
    machine.ahead = seconds * SECOND
    await machine.start()
    assert (machine.sure, machine.is_doubtful) == (0, True)
    await machine.run(DAY // 4)
    assert (machine.sure, machine.is_doubtful) == (0, True)
    machine.ahead = 0
    await machine.run(2 * JUMP_KEPT)
    machine.database.clock.judge(())
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_after_three_months_off_it_comes_right_by_itself_in_spite_of_restarts(
    machine: Machine,
) -> None:
    await machine.start()
    await machine.stop()
    machine.time += 90 * DAY
    for _ in range(3):
        await machine.start()
        assert machine.is_doubtful
        assert machine.sure < -80 * DAY
        await machine.run(PROVING // 3 + STRIDE)
        await machine.stop()
        machine.time += 3_600 * SECOND
    await machine.start()
    await machine.run(STRIDE)
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_an_operator_confirms_it_while_the_node_runs(machine: Machine) -> None:
    await machine.start()
    await machine.stop()
    machine.time += YEAR
    await machine.start()
    assert machine.is_doubtful
    now = machine.time
    await machine.database.write(lambda to: stamps.keep(to.connection, Sure(now)))
    await machine.run(SECOND)
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_an_operator_stamps_anew_while_the_node_runs(machine: Machine) -> None:
    """What the machine's clock stamped an hour ahead, `/health` names only until it is repaired."""
    await machine.start()
    await machine.database.write(lambda to: _write(to.connection, machine.time + HOUR))
    machine.database.stamps.stored(machine.time + HOUR)
    await machine.run(SECOND)
    trouble = await machine.database.time_trouble()
    assert trouble is not None
    assert trouble.reason == "stamps_ahead"
    given: dict[str, Any] = {"node": NODE, "now": machine.time}
    assert await machine.database.write(
        lambda to: unreceived_changes.correct_by_operator(to.connection, **given)
    )
    await machine.run(SECOND)
    assert await machine.database.time_trouble() is None
    await machine.stop()


def _write(db: Connection, at: int) -> None:
    unreceived_changes.last_received(db)
    write(db, at)


async def test_a_peer_that_tells_the_same_time_confirms_it(machine: Machine) -> None:
    await machine.start()
    await machine.stop()
    machine.time += YEAR
    await machine.start()
    machine.database.clock.heard("a", Reading(machine.time, machine.time, machine.time))
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_a_jump_that_is_followed_while_the_node_runs_is_in_doubt(machine: Machine) -> None:
    await machine.start()
    machine.ahead = YEAR
    await machine.run(SECOND)
    machine.time += JUMP_KEPT
    machine.database.clock.judge(())
    assert machine.database.now() - machine.time == YEAR
    await machine.run(SECOND)
    assert (machine.sure, machine.is_doubtful) == (0, True)
    trouble = await machine.database.time_trouble()
    assert trouble is not None
    assert trouble.reason == "clock_unconfirmed"
    assert "cacp clock confirm" in trouble.detail
    await machine.stop()


async def test_a_clock_far_behind_ends_nothing_early_and_is_in_doubt(machine: Machine) -> None:
    await machine.start()
    await machine.stop()
    machine.ahead = -YEAR
    await machine.start()
    assert (machine.sure, machine.is_doubtful) == (-YEAR, True)
    await machine.stop()
    machine.ahead = 0
    await machine.start()
    assert (machine.sure, machine.is_doubtful) == (0, False)
    await machine.stop()


async def test_what_an_older_release_wrote_is_gone_on_from(machine: Machine) -> None:
    await machine.start(last_stamp=BEGIN - YEAR)
    assert machine.is_doubtful
    assert machine.sure == -YEAR
    await machine.stop()
