"""The judgement finds what is planted: each is a fault that a design of replicas may have."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replicas import planted
from tests.replicas.cluster import running
from tests.replicas.run import Judgement, Plan, run
from tests.support.postgresql import database, own_server

ROUNDS = 20
"""What depends on how replicas meet may take several runs; one mostly does. A busy machine leaves
few calls to each."""


def searched(folder: Path, plan: Plan, patch: str, shows: Callable[[Judgement], object]) -> None:
    """Run until the judgement shows it."""
    with database() as url, running(folder, url, patch=patch) as cluster:
        for seed in range(ROUNDS):
            judgement = run(seed, cluster, plan)
            if shows(judgement):
                return
    pytest.fail(f"the judgement did not show it; the last was {judgement}")


def test_a_sequence_that_is_read_too_early(tmp_path: Path) -> None:
    """The contracts are in order; their stream is not."""

    def shows(judgement: Judgement) -> bool:
        assert not judgement.violations, judgement
        return any("was skipped" in problem for problem in judgement.streams)

    plan = Plan(2.0, projects=4, kinds=("contract",))
    searched(tmp_path, plan, planted.EARLY_SEQUENCE, shows)


def test_a_missing_row_lock(tmp_path: Path) -> None:
    plan = Plan(2.0, kinds=("contract",))
    searched(tmp_path, plan, planted.NO_ROW_LOCK, lambda judgement: judgement.violations)


def test_an_answer_before_the_commit(tmp_path: Path) -> None:
    """A read at another replica does not show what was acknowledged."""
    plan = Plan(2.0, kinds=("contract",))
    searched(tmp_path, plan, planted.LAZY_COMMIT, lambda judgement: judgement.violations)


def test_a_commit_that_is_not_durable(tmp_path: Path) -> None:
    """The database server answers before its log is on disk, and is killed."""
    settings = {"synchronous_commit": "off", "wal_writer_delay": "10s", "bgwriter_delay": "10s"}
    for seed in range(ROUNDS):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        with own_server(**settings) as server, running(folder, server.url()) as cluster:
            judgement = run(seed, cluster, Plan(2.0, ("crash",), server=server))
        if judgement.writes.lost:
            return
    pytest.fail(f"the judgement did not show it; the last was {judgement}")
