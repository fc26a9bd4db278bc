"""Replicas are killed, paused and cut off, their clocks set and their database killed, while
clients work: what these were told can be true, streams skip and repeat nothing, and no write that
was acknowledged is lost or there twice.

A failure names its seed; `pytest -k "…[SEED]"` runs the same clients and faults again.
"""

from pathlib import Path

import pytest

from tests.replicas.cluster import running
from tests.replicas.run import Plan, run
from tests.support.postgresql import database, own_server

SHORT = 2.0
LONG = 5.0
WHILE_IT_RUNS = ("kill", "pause", "cut", "skew")


def judge(seed: int, folder: Path, plan: Plan) -> None:
    with database() as url, running(folder, url) as cluster:
        judgement = run(seed, cluster, plan)
    assert judgement.holds, str(judgement)
    assert judgement.record.acknowledged


def judge_with_crashes(seed: int, folder: Path, seconds: float) -> None:
    with own_server() as server, running(folder, server.url()) as cluster:
        faults = ("crash", *WHILE_IT_RUNS)
        judgement = run(seed, cluster, Plan(seconds, faults, server=server))
    assert judgement.holds, str(judgement)
    assert judgement.record.acknowledged


def test_without_faults(tmp_path: Path) -> None:
    judge(0, tmp_path, Plan(SHORT))


@pytest.mark.parametrize("seed", [1, 2])
def test_with_faults_of_replicas(tmp_path: Path, seed: int) -> None:
    judge(seed, tmp_path, Plan(SHORT, WHILE_IT_RUNS))


@pytest.mark.parametrize("seed", [3])
def test_with_kills_of_the_database(tmp_path: Path, seed: int) -> None:
    judge_with_crashes(seed, tmp_path, SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 250))
def test_many_seeds(tmp_path: Path, seed: int) -> None:
    judge(seed, tmp_path, Plan(LONG, WHILE_IT_RUNS))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(250, 350))
def test_many_seeds_with_kills_of_the_database(tmp_path: Path, seed: int) -> None:
    judge_with_crashes(seed, tmp_path, LONG)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(350, 370))
def test_long_pauses(tmp_path: Path, seed: int) -> None:
    """Longer than a transaction may be idle: its locks are taken from a paused replica."""
    plan = Plan(20.0, ("pause", "cut"), paused_seconds=(4.0, 8.0))
    judge(seed, tmp_path, plan)
