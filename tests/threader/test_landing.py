"""Landing writes (agent-threader-v2 §8): one at a time, and never half."""

import asyncio
from pathlib import Path

import pytest

from schemas.run_state import TaskStatus
from tests.threader.projects import Bench, events_of, result_block, write
from threader.errors import Interrupted
from threader.landing import protected_patterns
from threader.load import load_project


def test_one_tasks_rollback_never_erases_anothers_writes(tmp_path: Path) -> None:
    """Two tasks append to one file at the same time; the one that fails takes back its own."""
    bench = Bench(
        tmp_path / "p",
        [{"id": "bad", "verify_profile": "slow"}, {"id": "good", "verify_profile": "slow"}],
        healer=None,
        policy={"concurrency": 2, "heal_schedule": "epoch"},
    )
    (bench.workspace / "list.txt").write_text("start\n")
    bench.profile("slow", ("test", "sleep 0.2; ! grep -q bad list.txt"))
    for name in ("bad", "good"):
        bench.answer(name, result_block(name, writes=[write("list.txt", f"{name}\n", "append")]))
    state = asyncio.run(bench.run())
    assert state.tasks["good"].status is TaskStatus.DONE
    assert bench.tree() == {"list.txt": "start\ngood\n"}


def test_writes_stay_when_the_profile_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "keep"}], healer=None)
    bench.profile("keep", ("test", "false"), rollback_on_failure=False)
    bench.answer("A", result_block("A", writes=[write("a.txt", "x")]))
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.FAILED
    assert bench.tree() == {"a.txt": "x"}
    assert [record.phase for record in state.tasks["A"].history[:2]] == ["worker", "verify"]


def test_a_folder_in_the_way_is_a_refusal_not_a_crash(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", "B"], healer=None)
    (bench.workspace / "plain").write_text("x")
    bench.answer("A", result_block("A", writes=[write("plain/child", "x")]))
    state = asyncio.run(bench.run())
    assert state.tasks["A"].last_failure_class == "write_rejected"
    assert state.tasks["B"].status is TaskStatus.DONE


def test_failed_verification_without_writes_is_the_products_fault(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "red"}])
    bench.profile("red", ("test", "false"))
    state = asyncio.run(bench.run())
    assert state.tasks["A"].status is TaskStatus.ESCALATED
    assert bench.calls("healer") == 0


def test_what_steers_the_run_is_protected(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"], workspace=".", protected=["vendor/*"])
    patterns = protected_patterns(load_project(bench.save()))
    assert {"manifest.json", "verify_profiles.json", "prompts/A.md", "vendor/*"} <= set(patterns)


def test_a_prompt_whose_name_is_a_glob_is_protected_as_it_stands(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "prompt_ref": "work/[a].md"}], healer=None)
    (bench.workspace / "[a].md").write_text("Do it.")
    bench.answer("A", result_block("A", writes=[write("[a].md", "x" * 10, "replace")]))
    state = asyncio.run(bench.run())
    assert state.tasks["A"].last_failure_signature == "write_rejected:protected_file"


def test_a_persons_edit_during_verification_is_kept_and_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "red"}], healer=None)
    (bench.workspace / "a.txt").write_text("was\n")
    bench.profile("red", ("test", "echo mine > a.txt; false"))
    bench.answer("A", result_block("A", writes=[write("a.txt", "task\n", "replace")]))
    opened = bench.open()
    events = events_of(opened)
    state = asyncio.run(opened.go())
    assert bench.tree() == {"a.txt": "was\n"}
    assert any("kept as backups/A.1/0.edited" in event.text for event in events)
    notes = state.tasks["A"].history[0].notes
    assert any("a.txt was edited" in note for note in notes)
    kept = [(copy.path, copy.place) for copy in state.tasks["A"].history[0].kept]
    assert kept == [("a.txt", "backups/A.1/0.edited")]
    assert (bench.state_dir / "backups" / "A.1" / "0.edited").read_text() == "mine\n"


def test_a_stop_tells_of_edits_that_it_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", [{"id": "A", "verify_profile": "slow"}])
    bench.profile("slow", ("test", "echo mine > a.txt; touch ../verifying; sleep 60"))
    bench.answer("A", result_block("A", writes=[write("a.txt", "task\n")]))
    opened = bench.open()
    events = events_of(opened)

    async def main() -> None:
        running = asyncio.create_task(opened.go())
        while not (bench.root / "verifying").exists():
            await asyncio.sleep(0.01)
        opened.stop.set()
        with pytest.raises(Interrupted):
            await running

    asyncio.run(main())
    assert bench.tree() == {}
    assert any("kept as backups/A.1/0.edited" in event.text for event in events)
    assert [copy.path for copy in opened.store.load().kept] == ["a.txt"]
