"""The attempts of a window (agent-threader-v2 §5)."""

import asyncio
from pathlib import Path

import pytest

from schemas.run_state import RunState, TaskStatus
from tests.support.waiting import until
from tests.threader.projects import Bench, result_block, write
from threader.errors import Interrupted
from threader.events import RunEvent


def test_concurrency_is_bounded(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [f"T{index}" for index in range(8)])
    bench.manifest["policy"] = {"concurrency": 3, "heal_schedule": "epoch"}
    for index in range(8):
        bench.script(f"T{index}", "touch run-$$; ls run-* | wc -l >> seen; sleep 0.1; rm run-$$")
    asyncio.run(bench.run())
    seen = [int(line) for line in (bench.workspace / "seen").read_text().split()]
    assert max(seen) in (2, 3)


def test_every_attempt_is_on_disk_before_the_next_window(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    opened = bench.open()
    seen: list[bool] = []

    def check(event: RunEvent, state: RunState) -> None:
        if event.kind == "settled":
            path = bench.state_dir / "tasks" / f"{event.task_id}.json"
            seen.append('"status":"DONE"' in path.read_text())

    opened.listeners.append(check)
    asyncio.run(opened.go())
    assert seen == [True, True]


def test_a_stop_in_the_middle_of_verification_takes_the_writes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "slow"}])
    bench.profile("slow", ("test", "touch ../verifying; sleep 60"))
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        await until((bench.root / "verifying").exists)
        assert bench.tree() == {"a.txt": "x"}
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert bench.tree() == {}
    assert opened.state.tasks["A"].status is TaskStatus.PENDING
    assert opened.state.tasks["A"].worker_attempts == 0
