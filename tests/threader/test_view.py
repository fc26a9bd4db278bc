"""What a person sees while a run goes on."""

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from schemas.run_state import RunState, Usage
from tests.threader.builders import NOW, make_manifest, record
from tests.threader.projects import Bench, heal_block, result_block
from threader.events import RunEvent
from threader.initial_state import new_state
from threader.interruptions import paused
from threader.view import LiveView, PlainView, time_left


def test_the_live_view_tells_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"])
    bench.answer("A", result_block("A", status="FAILED", summary="[b]odd"), result_block("A"))
    bench.answer("healer", heal_block())
    opened = bench.open()
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=30, color_system=None)
    shots: list[str] = []

    def shoot(event: RunEvent, state: RunState) -> None:
        with console.capture() as capture:
            console.print(view.render())
        shots.append(capture.get())

    with LiveView(console, opened.state) as view:
        opened.listeners += [view, shoot]
        asyncio.run(opened.go())
    told = "\n".join(shots)
    for part in ("▸ A", "1 running", "heal rounds 1/8", "failure rate 100%", "left", "COMPLETED"):
        assert part in told
    assert "prompt_gap:b_odd" in told, "text from workers is no markup"


def test_the_live_view_tells_what_is_used_and_waited_for() -> None:
    state = new_state(make_manifest(["A"]), NOW)
    usage = Usage(input_tokens=1500, output_tokens=500, cost_usd=0.5)
    worked = {"usage": usage, "duration_sec": 1.0}
    state.tasks["A"].history = [record("A").model_copy(update=worked)]
    paused(state, NOW, "rate limited [429]")
    out = io.StringIO()
    console = Console(file=out, width=100, color_system=None)
    console.print(LiveView(console, state).render())
    assert "run-1  RUNNING  2 k tokens  $0.50" in out.getvalue()
    assert "waits since 15:21:00 UTC: rate limited [429]" in out.getvalue()


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    state = new_state(make_manifest(["A"]), NOW)
    view = PlainView()
    view(RunEvent("started", "A attempt 1", "A"), state)
    view(RunEvent("settled", "A DONE", "A"), state)
    assert capsys.readouterr().out.endswith(" A DONE\n")


def test_time_left() -> None:
    state = new_state(make_manifest(["A", "B", "C"]), NOW)
    assert time_left(state, 0, 9) is None
    assert time_left(state, 2, 10) == 15
