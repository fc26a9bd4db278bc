"""Each call to the disk fails in turn: callers are refused, never lied to, and it mends."""

import asyncio
import shutil
from pathlib import Path
from random import Random

import pytest

from schemas.errors import ErrorCode
from server.domain.errors import Unavailable
from server.store import changes
from server.store.group_commit import Transaction
from tests.faults import callers, shim
from tests.faults.account import Account
from tests.faults.callers import RecordedNode, Step, started
from tests.faults.shim import Call, Fault
from tests.faults.survey import DB, Figures, Survey
from tests.support.node import RpcError

REASONS: dict[Fault, str] = {
    "EIO": "storage_failed",
    "ENOSPC": "storage_full",
    "short": "storage_full",
}
ROUNDS = 3


@pytest.fixture(autouse=True)
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    callers.small_log(monkeypatch)


class Failing:
    """Refuses the call of that number, or all from that one on, until it is mended."""

    def __init__(self, number: int, fault: Fault, *, lasts: bool) -> None:
        self.number = number
        self.fault = fault
        self.lasts = lasts
        self.calls = 0
        self.mended = False
        self.refused: list[Call] = []

    def __call__(self, call: Call) -> Fault | None:
        self.calls += 1
        hit = self.calls > self.number if self.lasts else self.calls == self.number + 1
        # A full disk refuses what needs room.
        meant = self.fault == "EIO" or call.kind == "write"
        if self.mended or not hit or not meant:
            return None
        self.refused.append(call)
        return self.fault


def patient(step: Step, refusals: list[str]) -> Step:
    """A caller that takes a refusal for the disk's reasons, and goes on."""

    async def go() -> None:
        try:
            await step()
        except RpcError as error:
            if error.code != ErrorCode.SERVER_ERROR:
                raise
            refusals.append(str(error.reason))
        except Unavailable as error:
            refusals.append(str(error.data["reason"]))

    return go


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A node's database on which callers have worked, to be copied, and their project."""
    path = tmp_path_factory.mktemp("founded") / DB

    async def found() -> str:
        async with started(path) as node:
            await node.found()
            return node.project

    return path, asyncio.run(found())


async def one_run(path: Path, project: str, account: Account, failing: Failing) -> list[str]:
    """Callers at work while the disk fails, and after it is mended; why they were refused."""
    refusals: list[str] = []
    try:
        async with started(path, account=account) as node:
            node.project = project
            await node.told("found")
            steps = [patient(one, refusals) for one in callers.every(node, Random(failing.number))]
            await callers.work(steps, ROUNDS)
            await examine_health(node, failing)
            failing.mended = True
            await whole_again(node)
            before = len(refusals)
            await callers.work(steps, 1)
            assert len(refusals) == before, "it is mended, and refuses on"
    except Unavailable as error:
        # The start itself, which says so and changes nothing.
        refusals.append(str(error.data["reason"]))
        failing.mended = True
        async with started(path, account=account) as node:
            node.project = project
            await callers.work(callers.every(node, Random(failing.number)), 1)
    return refusals


async def examine_health(node: RecordedNode, failing: Failing) -> None:
    """What a write meets is what /health says."""
    try:
        await node.database.write(put_something)
        met = None
    except Unavailable as refusal:
        met = str(refusal.data["reason"])
        assert met == REASONS[failing.fault], failing.refused
    reason = (await node.health.examine()).reason
    if failing.lasts and met is not None:
        assert reason == met, failing.refused[-5:]
    else:
        assert reason in (None, "disk_low", REASONS[failing.fault]), failing.refused[-5:]


def put_something(transaction: Transaction) -> None:
    changes.put_meta(transaction.connection, "something", str(transaction.stamp))


async def whole_again(node: RecordedNode) -> None:
    """By the second look at the latest: reads and writes work, without a restart."""
    await node.health.examine()
    assert (await node.health.examine()).reason in (None, "disk_low")


def run(
    folder: Path, founded: tuple[Path, str], failing: Failing, *, at_syncs: bool = True
) -> Figures:
    """One run; then the power goes, at each of its syncs or at a few moments."""
    template, project = founded
    path = folder / "node" / DB
    path.parent.mkdir(parents=True)
    shutil.copy(template, path)

    async def go() -> Figures:
        with shim.below(path.parent, failing) as account:
            refusals = await one_run(path, project, account, failing)
        assert set(refusals) <= {REASONS[failing.fault]}, refusals
        survey = Survey(account, folder, failing.number)
        if not failing.refused:
            return Figures()
        return await survey.run(each=1, between=6, deep=9, at_syncs=at_syncs)

    found = asyncio.run(go())
    shutil.rmtree(folder)
    return found


def number_of_calls(folder: Path, founded: tuple[Path, str]) -> int:
    """How often such a run asks the disk for something."""
    nothing = Failing(10**9, "EIO", lasts=True)
    run(folder, founded, nothing)
    return nothing.calls


@pytest.mark.parametrize("fault", REASONS)
def test_a_disk_that_fails_is_told_of_and_loses_nothing(
    tmp_path: Path, founded: tuple[Path, str], fault: Fault
) -> None:
    """At a few calls; the soak takes each."""
    calls, dice = number_of_calls(tmp_path / "all", founded), Random(fault)
    for lasts in (False, True):
        failing = Failing(dice.randrange(calls), fault, lasts=lasts)
        assert run(tmp_path / str(lasts), founded, failing).lost == 0


@pytest.mark.soak
@pytest.mark.parametrize("fault", REASONS)
def test_a_disk_that_fails_at_each_call_loses_nothing(
    tmp_path: Path, founded: tuple[Path, str], fault: Fault
) -> None:
    total, runs, refused = Figures(), 0, 0
    # What needs no room is not refused for want of it.
    step = 1 if fault == "EIO" else 3
    for number in range(0, number_of_calls(tmp_path / "all", founded), step):
        failing = Failing(number, fault, lasts=bool(number % 2))
        total += run(tmp_path / str(number), founded, failing, at_syncs=False)
        runs, refused = runs + 1, refused + bool(failing.refused)
    assert total.lost == 0
    print(f"{fault}: {runs} runs, refused in {refused}; {total}")
