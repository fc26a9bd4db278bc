"""What a run tells its listeners and writes to disk."""

import asyncio
from pathlib import Path

from schemas.run_state import TaskStatus
from schemas.state import State
from tests.support.waiting import until
from tests.threader.projects import Bench, heal_block, result_block


def test_a_runner_leaves_a_sign_of_life(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    bench.script("A", f"until [ -e {bench.root}/seen ]; do sleep 0.02; done")

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until(lambda: bench.calls("A"))
        first = opened.store.last_seen()
        await until(lambda: (opened.store.last_seen() or "") > (first or ""))
        (bench.root / "seen").touch()
        await running

    asyncio.run(main())


def test_the_published_state_moves_on_while_a_window_runs(tmp_path: Path) -> None:
    """And it holds what is published, whatever happened: heals, outages, invalid answers."""
    bench = Bench(tmp_path / "p", ["A", "B"], policy={"heal_schedule": "epoch", "concurrency": 2})
    seen = 'grep -q \'"A":{"status":"DONE"\' $here/.threader/run-1/state.json'
    bench.script("B", f"until {seen}; do sleep 0.05; done")
    bench.answer("B", result_block("B", status="FAILED"), result_block("B"))
    bench.answer("healer", "nonsense", heal_block())
    state = asyncio.run(bench.run())
    assert state.tasks["B"].status is TaskStatus.DONE, "it saw A done while it ran"
    shown = State.model_validate_json((bench.state_dir / "state.json").read_bytes())
    assert [item.decision for item in shown.healing_rounds] == ["RETRY"]
