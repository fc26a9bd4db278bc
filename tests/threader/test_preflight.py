"""What a run needs before it begins."""

import asyncio
from pathlib import Path

import pytest

from schemas.manifest import AdapterSpec, Budget
from tests.threader.projects import Bench
from threader.adapters import make_adapter
from threader.errors import NotReady
from threader.landing import SharedSite
from threader.load import load_project
from threader.preflight import check_budget, make_site
from threader.worktree import WorktreeSite


def test_a_manifest_without_a_worker_is_not_ready(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], worker=None)
    with pytest.raises(NotReady, match="names no worker"):
        asyncio.run(bench.run())


def test_a_cli_that_is_not_there_is_found_out_before_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer={"adapter": "claude", "command": ["./claude"]})
    with pytest.raises(NotReady, match=r"cannot find the executable \./claude"):
        asyncio.run(bench.run())
    assert bench.calls("A") == 0


def test_a_budget_that_a_cli_never_reports_on_cannot_be_kept() -> None:
    agent = make_adapter(AdapterSpec(adapter="agent"))
    command = make_adapter(AdapterSpec(adapter="command", command=["true"]))
    check_budget(Budget(), (agent, None))
    check_budget(Budget(tokens=1), (command, None))
    with pytest.raises(NotReady, match="healer agent with the output text reports neither"):
        check_budget(Budget(tokens=1), (command, agent))


@pytest.mark.parametrize(("isolation", "site"), [("none", SharedSite), ("worktree", WorktreeSite)])
def test_isolation_decides_where_tasks_work(tmp_path: Path, isolation: str, site: type) -> None:
    project = load_project(Bench(tmp_path / "p", ["A"], isolation=isolation).save())
    assert isinstance(make_site(project, tmp_path), site)
