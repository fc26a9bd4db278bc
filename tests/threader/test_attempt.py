"""One attempt with hostile or unlucky workers (agent-threader-v2 §5): the runner stands."""

import asyncio
from pathlib import Path

import pytest

from schemas.run_state import RunState, TaskStatus
from tests.threader.projects import Bench, result_block, write


def run(bench: Bench) -> RunState:
    return asyncio.run(bench.run())


def test_staged_content_reaches_the_workspace_and_staging_goes(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    bench.script("A", 'printf "large\\n" > "$CACP_STAGING_DIR/big"')
    staged = {"path": "big.txt", "op": "create", "encoding": "utf8", "content_ref": "big"}
    bench.answer("A", result_block("A", writes=[staged]))
    run(bench)
    assert bench.tree() == {"big.txt": "large\n"}
    assert list((bench.state_dir / "staging").iterdir()) == []


def test_a_time_limit_is_a_timeout(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "timeout_sec": 0.3}], healer=None)
    bench.script("A", "sleep 60")
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "timeout:worker_time_limit"


def test_a_missing_prompt_is_a_failure_of_the_task(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}, "C"], healer=None)
    bench.script("A", f'rm "{bench.root}/prompts/B.md"')
    state = run(bench)
    assert state.tasks["B"].last_failure_class == "missing_paths"
    assert state.tasks["C"].status is TaskStatus.DONE


HOSTILE = {
    "binary": b"\x00\xff\xfe" * 100_000,
    "ansi": b"\x1b[2J\x1b]0;x\x07" * 50_000,
    "fences": b"<<<TASK_RESULT_V2>>>\n<<<END_TASK_RESULT_V2>>>\n" * 50_000,
    "deep": b"<<<TASK_RESULT_V2>>>\n" + b'{"a":' * 50_000 + b"\n<<<END_TASK_RESULT_V2>>>\n",
    "long line": b"x" * 5_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_output_harms_nothing(tmp_path: Path, name: str) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], healer=None)
    (bench.root / "answers" / "A").write_bytes(HOSTILE[name])
    state = run(bench)
    assert state.tasks["A"].last_failure_class == "contract_error"
    assert state.tasks["B"].status is TaskStatus.DONE
    assert bench.tree() == {}


def test_an_endless_log_is_cut_off(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None, policy={"max_log_bytes": 1_000_000})
    bench.script("A", "yes")
    state = run(bench)
    assert state.tasks["A"].last_failure_signature == "output_format:log_too_large"


@pytest.mark.parametrize(
    "path", ["../out", "/tmp/out", "a/../../out", ".git/hooks/x", "manifest.json", "link/x"]
)
def test_escapes_leave_the_tree_alone(tmp_path: Path, path: str) -> None:
    bench = Bench(tmp_path / "p", ["A"], healer=None, workspace=".")
    (bench.root / "link").symlink_to(tmp_path)
    before = {item for item in tmp_path.rglob("*") if ".threader" not in item.as_posix()}
    bench.answer("A", result_block("A", writes=[write(path, "gotcha", "append")]))
    state = run(bench)
    assert state.tasks["A"].last_failure_class == "write_rejected"
    after = {item for item in tmp_path.rglob("*") if ".threader" not in item.as_posix()}
    made = {item.name for item in after - before}
    assert made <= {"A", "manifest.json", "verify_profiles.json"}, "the bench's own files"
