"""Any seed: what honest nodes wrote is on all of them in the end, whatever a member does."""

import asyncio
from pathlib import Path

import pytest

from server.methods import base
from tests.byzantine.world import ACTS, ACTS_LEFT_OUT, World

SEEDS = range(8)
SOAK_SEEDS = range(8, 508)


def played(folder: Path, seed: int, patch: pytest.MonkeyPatch) -> World:
    folder.mkdir(exist_ok=True)
    world = World(folder, seed)
    patch.setattr(base, "uuid7", world.next_id)
    try:
        asyncio.run(world.play())
    except BaseException as error:
        error.add_note(
            f"seed {seed}; alone: pytest -m '' "
            f"'tests/byzantine/test_world.py::test_honest_nodes_agree_for_long[{seed}]'"
        )
        raise
    return world


def test_what_is_left_out_is_an_act() -> None:
    assert ACTS_LEFT_OUT.keys() <= ACTS.keys()


@pytest.mark.parametrize("seed", SEEDS)
def test_honest_nodes_agree(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path, seed, monkeypatch)


@pytest.mark.sqlite
def test_a_seed_is_one_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (played(tmp_path / name, 3, monkeypatch) for name in "ab")
    assert one.log == other.log
    assert one.nodes["alpha"].state() == other.nodes["alpha"].state()


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_honest_nodes_agree_for_long(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(tmp_path, seed, monkeypatch)
