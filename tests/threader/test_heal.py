"""Healing rounds with real files (agent-threader-v2 §6, §7, §8)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from schemas.run_state import RunState, TaskStatus
from tests.threader.projects import Bench, heal_block, result_block


def failing_bench(tmp_path: Path, **fields: Any) -> Bench:
    bench = Bench(tmp_path / "p", [{"id": "A", "context_refs": ["shared.md"]}], **fields)
    (bench.root / "shared.md").write_text("Shared.\n")
    bench.answer("A", result_block("A", status="FAILED", summary="unclear"), result_block("A"))
    return bench


def run(bench: Bench) -> RunState:
    return asyncio.run(bench.run())


def patch(target: str, content: Any, operation: str = "append", **fields: Any) -> dict[str, Any]:
    return {"target": target, "operation": operation, "content": content, **fields}


def test_prompts_context_and_hints_reach_the_next_attempt(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    patches = [
        patch("shared_context", "A rule.", path="shared.md"),
        patch("task_prompt", "Do A, and do it well.", "replace", task_id="A"),
        patch("contract_hint", "Mind the fence."),
    ]
    bench.answer("healer", heal_block(patches=patches, learned_rule="Say how."))
    state = run(bench)
    told = (bench.state_dir / "prompts" / "A.2.md").read_text()
    for part in ("Shared.\n\nA rule.", "do it well", "Mind the fence."):
        assert part in told
    assert state.tasks["A"].applied_patch_ids == ["patch-001", "patch-002", "patch-003"]
    assert "Mind the fence." not in (bench.root / "prompts" / "A.md").read_text()
    assert [rule.rule for rule in state.learned_rules] == ["Say how."]
    assert "Say how." not in told, "learned rules are never promoted"
    assert state.healing_rounds[0].converging is True
    assert state.healing_rounds[0].changes == ["hint: Mind the fence."]
    assert [record.phase for record in state.tasks["A"].history] == ["worker", "healer", "worker"]
    diff = bench.state_dir / (state.healing_rounds[0].diff_path or "")
    assert "+A rule." in diff.read_text()


def test_a_runtime_patch_within_bounds_is_applied(tmp_path: Path) -> None:
    limits = {"timeout_sec": {"min": 1, "max": 50}, "concurrency": {"min": 1, "max": 4}}
    bench = failing_bench(tmp_path, policy={"runtime_limits": limits})
    content = {"timeout_sec": 45, "concurrency": 3}
    bench.answer("healer", heal_block(patches=[patch("runtime_patch", content, "merge")]))
    state = run(bench)
    assert state.tasks["A"].timeout_sec == 45
    assert state.policy.concurrency == 3
    assert state.healing_rounds[0].changes == ["timeout_sec = 45", "concurrency = 3"]


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (patch("shared_context", "x", path="work/src.py"), "no task in the healing scope reads"),
        (patch("shared_context", "x", path="manifest.json"), "no task in the healing scope reads"),
        (patch("shared_context", "x", path="verify_profiles.json"), "no task in the healing scope"),
        (patch("runtime_patch", {"timeout_sec": 45}, "merge"), "has not opened"),
        (patch("task_prompt", "x", "replace", task_id="A"), "shrink"),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path: Path, item: dict[str, Any], says: str) -> None:
    bench = failing_bench(tmp_path)
    (bench.root / "prompts" / "A.md").write_text("Do A thoroughly.\n" * 20)
    good = patch("shared_context", "A rule.", path="shared.md")
    bench.answer("healer", heal_block(patches=[good, item]))
    state = run(bench)
    assert state.healing_rounds[0].decision == "INVALID"
    assert says in (state.healing_rounds[0].note or "")
    assert (bench.root / "shared.md").read_text() == "Shared.\n", "all or nothing"
    assert state.tasks["A"].status is TaskStatus.ESCALATED


def test_the_healer_is_shown_the_failures_and_their_logs(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    bench.script("A.1", "echo some trace of trouble")
    bench.answer("healer", heal_block())
    run(bench)
    told = (bench.state_dir / "prompts" / "@healer.1.md").read_text()
    for part in (
        "# Failed task A",
        "prompt_gap:unclear",
        "some trace of trouble",
        "Do A.",
        "Shared",
    ):
        assert part in told


def test_escalate_and_not_fixable(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    bench.answer("healer", heal_block(decision="NOT_FIXABLE", root_cause="no such API"))
    state = run(bench)
    assert state.tasks["A"].escalation_reason == "healer: no such API"
    assert bench.calls("A") == 1


def test_a_healer_that_crashes_uses_up_its_rounds(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    bench.manifest["healer"] = {"adapter": "command", "command": ["/bin/false"]}
    state = run(bench)
    assert [item.decision for item in state.healing_rounds] == ["INVALID", "INVALID"]
    assert state.tasks["A"].status is TaskStatus.ESCALATED
