"""What a crash left behind. Whole crashes are in tests/acceptance."""

import asyncio
import json
from pathlib import Path

import pytest

from schemas.run_state import HealingRound, TaskStatus
from tests.threader.builders import NOW, make_manifest
from tests.threader.projects import Bench, events_of
from threader.adapters import make_adapter
from threader.initial_state import new_state
from threader.recovery import charge_cut_off, is_committed
from threader.transaction import FileTransaction
from threader.writes import FileChange


def test_the_state_knows_which_attempts_and_rounds_count() -> None:
    state = new_state(make_manifest(["A"]), NOW)
    state.tasks["A"] = state.tasks["A"].model_copy(update={"status": TaskStatus.DONE, "runs": 2})
    state.healing_rounds.append(
        HealingRound(
            round_number=1,
            scope="batch",
            window_task_ids=[],
            failed_task_ids=[],
            decision="RETRY",
            timestamp=NOW,
        )
    )
    keys = ["A.1", "A.2", "B.1", "@heal.1", "@heal.2"]
    assert [is_committed(state, key) for key in keys] == [False, True, False, True, False]


def test_an_invocation_that_was_cut_off_is_charged_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    opened.store.prepare()
    opened.scheduler.tasks.start("A")
    usage = {"type": "result", "usage": {"input_tokens": 5, "output_tokens": 2}}
    (bench.state_dir / "logs" / "A.worker.1.log").write_text(json.dumps(usage) + "\n")
    assert opened.project.manifest.worker is not None
    worker = make_adapter(opened.project.manifest.worker)
    for _ in range(2):
        charge_cut_off(opened.scheduler, bench.state_dir, worker, None)
    assert opened.scheduler.ledger.spent.input_tokens == 5


@pytest.mark.parametrize("edited", [False, True])
def test_half_applied_writes_are_taken_back(tmp_path: Path, *, edited: bool) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    opened.store.prepare()
    changes = [FileChange("half.txt", None, b"half")]
    crashed = FileTransaction(bench.workspace, bench.state_dir / "backups" / "A.2")
    crashed.begin(changes)
    crashed.apply(changes)
    if edited:
        (bench.workspace / "half.txt").write_text("a person's")
    events = events_of(opened)
    state = asyncio.run(opened.go())
    assert bench.tree() == {}
    texts = [event.text for event in events if event.kind == "recovered"]
    assert texts[0] == "took back the half-done changes of A.2"
    assert [copy.path for copy in state.kept] == (["half.txt"] if edited else [])
