"""The power goes at every sync of a mixed workload: nothing that was acknowledged is lost."""

import asyncio
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from server.store.sqlite.connection import Durability
from server.store.sqlite.migrate import prepare
from server.store.sqlite.schema import SchemaDamaged
from tests.faults import callers, images, shim
from tests.faults.account import Account
from tests.faults.images import Disk
from tests.faults.survey import DB, Figures, Survey
from tests.server.store.sqlite.test_migrate import BRANCHES, former

SOAK_SEEDS = range(100, 106)


@pytest.fixture(autouse=True)
def small_log(monkeypatch: pytest.MonkeyPatch) -> None:
    callers.small_log(monkeypatch)


def surveyed(
    folder: Path,
    seed: int,
    durability: Durability,
    *,
    rounds: list[int],
    each: int,
    between: int,
    deep: int,
) -> Figures:
    """Let a node live as often as `rounds` says, and cut the power while it does."""
    path = folder / "node" / DB
    path.parent.mkdir(parents=True)
    (folder / "images").mkdir()
    with shim.below(path.parent) as account:
        asyncio.run(callers.lives(path, account, Random(seed), durability, rounds))
    survey = Survey(account, folder / "images", seed, durability)
    found = asyncio.run(survey.run(each=each, between=between, deep=deep))
    shutil.rmtree(folder)
    return found


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    found = surveyed(tmp_path / "full", 1, "FULL", rounds=[4, 2], each=1, between=10, deep=12)
    print(found)
    assert found.lost == 0
    assert found.images > found.syncs > 30
    assert found.told > 30


def test_the_survey_sees_a_loss(tmp_path: Path) -> None:
    """A node that doesn't sync each commit, held to what one promises that does."""
    path = tmp_path / "node" / DB
    path.parent.mkdir()
    (tmp_path / "images").mkdir()
    with shim.below(path.parent) as account:
        asyncio.run(callers.lives(path, account, Random(1), "NORMAL", [6]))
    survey = Survey(account, tmp_path / "images", 1)
    with pytest.raises((AssertionError, SchemaDamaged), match=r"is told|can't be read"):
        asyncio.run(survey.run(each=1, between=40, deep=1_000))


def test_without_syncs_the_last_writes_may_be_lost_and_nothing_else(tmp_path: Path) -> None:
    """And a start does not take what the power cut took for damage."""
    found = surveyed(tmp_path / "normal", 2, "NORMAL", rounds=[5, 2], each=1, between=30, deep=12)
    print(found)
    assert found.lost == 0


@pytest.mark.soak
@pytest.mark.parametrize("durability", ["FULL", "NORMAL"])
def test_nothing_is_lost_in_thousands_of_power_losses(
    tmp_path: Path, durability: Durability
) -> None:
    total, began = Figures(), time.monotonic()
    for seed in SOAK_SEEDS:
        folder = tmp_path / str(seed)
        total += surveyed(folder, seed, durability, rounds=[12, 8, 8], each=4, between=300, deep=20)
        print(f"seed {seed}: {total}")
    assert total.lost == 0
    print(f"{durability}: {total}, {time.monotonic() - began:.0f} s")


@pytest.mark.parametrize("each", [1, pytest.param(3, marks=pytest.mark.soak)])
def test_a_migration_that_loses_power_is_run_again(tmp_path: Path, each: int) -> None:
    """At each sync of it: the next start brings the database up to date, with what it held."""
    path = tmp_path / "node" / DB
    path.parent.mkdir()
    former(path, *BRANCHES["thread hops"])
    with shim.below(path.parent) as account:
        prepare(path)
    assert len(account.syncs()) > 3
    dice = Random(3)
    for number, image in enumerate(left_at_syncs(account, dice, each=each)):
        folder = tmp_path / str(number)
        images.write(image, folder)
        with shim.below(folder):
            prepare(folder / DB)
        with closing(sqlite3.connect(folder / DB)) as db:
            assert db.execute("SELECT name FROM projects").fetchall() == [("Kept",)]
        shutil.rmtree(folder)


def left_at_syncs(account: Account, dice: Random, *, each: int) -> list[dict[str, bytes]]:
    disk, syncs = Disk(), set(account.syncs())
    found = []
    for at, entry in enumerate(account.entries):
        if at in syncs:
            found += [disk.lost(dice) for _ in range(each)]
        disk.take(entry)
    return found
