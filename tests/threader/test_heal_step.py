"""One heal round of a run (agent-threader-v2 §6)."""

import asyncio
from pathlib import Path

import pytest

from schemas.run_state import RunState
from tests.support.waiting import until
from tests.threader.projects import Bench, events_of, heal_block, is_alive, result_block
from threader.errors import Interrupted


def test_healing_never_starts_midway(tmp_path: Path) -> None:
    """§5: a window is complete only when every task of it has settled."""
    bench = Bench(tmp_path / "p", ["A", "B", "C"])
    bench.manifest["policy"] = {"concurrency": 3, "heal_schedule": "batch", "batch_size": 3}
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.script("C", "sleep 0.4")
    bench.answer("healer", heal_block())
    opened = bench.open()
    events = events_of(opened)
    asyncio.run(opened.go())
    order = [f"{event.kind} {event.task_id or ''}".strip() for event in events]
    assert order.index("settled C") < order.index("healing")


def test_a_stop_while_the_healer_thinks(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"))
    bench.script("healer", 'echo $$ > "$here/healing"; sleep 60')
    opened = bench.open()

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        healing = bench.root / "healing"
        await until(lambda: healing.exists() and healing.read_text().endswith("\n"))
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert not is_alive(int((bench.root / "healing").read_text()))
    on_disk = RunState.model_validate_json((bench.state_dir / "run.json").read_bytes())
    assert on_disk.window is not None
    assert on_disk.window.needs_heal
    assert on_disk.healing_rounds == []


def test_what_a_healer_says_is_one_line_that_steers_no_terminal(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.answer("A", result_block("A", status="FAILED"), result_block("A"))
    bench.answer("healer", heal_block(root_cause="a\n\x1b]0;title\x07b\x9bc"))
    opened = bench.open()
    events = events_of(opened)
    asyncio.run(opened.go())
    assert [event.text for event in events if event.kind == "healed"] == ["round 1: RETRY: a bc"]
