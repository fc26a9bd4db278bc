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
    assert state.healing_rounds == []
    assert says in state.healer_failures[0].note
    assert says in (bench.state_dir / "prompts" / "@healer.2.md").read_text()
    assert (bench.root / "shared.md").read_text() == "Shared.\n", "all or nothing"
    assert bench.calls("healer") == 2


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


def test_a_healer_that_crashes_is_no_round_and_escalates_nobody(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    bench.answer("A", result_block("A", status="FAILED", summary="unclear"))
    bench.manifest["healer"] = {"adapter": "command", "command": ["/bin/false"]}
    state = run(bench)
    assert state.healing_rounds == []
    assert "exit code 1; NO_SENTINEL" in state.healer_failures[0].note
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert state.tasks["A"].worker_attempts == 2, "retry policy goes on without it"


def test_what_the_healer_changes_by_itself_is_told(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    (bench.workspace / ".env").write_text("KEY=1")
    bench.script("healer", "echo x > src.py; echo KEY=2 > .env")
    bench.answer("healer", heal_block())
    state = run(bench)
    told = " ".join(state.healing_rounds[0].changes)
    assert "files changed while it ran: .env, src.py" in told
    assert "protected file .env; it was restored" in told
    assert (bench.workspace / ".env").read_text() == "KEY=1"


def test_a_hint_that_holds_a_block_is_not_the_workers_answer(tmp_path: Path) -> None:
    """A worker that prints its prompt and dies has not answered."""
    bench = failing_bench(tmp_path)
    hint = f"Answer with:\n{result_block('A')}"
    bench.answer("healer", heal_block(patches=[patch("contract_hint", hint)]))
    bench.answer("A", result_block("A", status="FAILED"), "")
    bench.script("A", 'cat "$CACP_PROMPT_FILE"; exit 1')
    (bench.root / "answers" / "A.1.sh").write_text("true")
    state = run(bench)
    assert state.tasks["A"].status is not TaskStatus.DONE


def test_max_attempts_of_one_is_one(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    bench.manifest["tasks"][0]["retry_policy"] = {"max_attempts": 1}
    bench.answer("healer", heal_block())
    run(bench)
    assert (bench.calls("A"), bench.calls("healer")) == (1, 0)


def test_the_healer_reads_text_and_not_the_json_around_it(tmp_path: Path) -> None:
    bench = failing_bench(tmp_path)
    told = '{"type":"assistant","message":{"content":[{"type":"text","text":"TypeError: broke"}]}}'
    bench.answer("A", told + "\n", result_block("A"))
    bench.script("A", '[ $n != 1 ] || { cat "$file"; exit 1; }')
    (bench.root / "answers" / "A.1.sh").write_text('cat "$file"; exit 1')
    bench.answer("healer", heal_block())
    state = run(bench)
    first = state.tasks["A"].history[0].failure_signature
    assert first == "transient_infra:exit_typeerror_broke"
    prompt = (bench.state_dir / "prompts" / "@healer.1.md").read_text()
    assert "TypeError: broke" in prompt
    assert '{"type"' not in prompt
