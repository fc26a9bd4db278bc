"""State on disk (agent-threader-v2 §10 "Atomic State Writes")."""

from pathlib import Path

import orjson
import pytest

from schemas.run_state import RunState, TaskStatus, WindowState
from schemas.state import State
from tests.threader.builders import NOW, make_manifest
from threader.errors import NoSuchRun, ThreaderError
from threader.initial_state import new_state
from threader.store import RunStore, now


def make(tmp_path: Path, count: int = 3) -> tuple[RunStore, RunState]:
    store = RunStore(tmp_path / "run")
    store.prepare()
    state = new_state(make_manifest([f"T{index}" for index in range(count)]), NOW)
    return store, state


def test_what_is_written_is_read(tmp_path: Path) -> None:
    store, state = make(tmp_path)
    store.write_state(state, state.tasks)
    state.tasks["T1"].status = TaskStatus.DONE
    store.write_state(state, ["T1"])
    assert store.load() == state
    assert RunState.model_validate(orjson.loads(store.run_path.read_bytes())) == state
    shown = State.model_validate_json(store.state_path.read_bytes())
    assert [task.status for task in shown.tasks.values()] == ["PENDING", "DONE", "PENDING"]


def test_the_state_of_an_older_runner_is_read(tmp_path: Path) -> None:
    store, state = make(tmp_path)
    store.state_path.write_text(state.model_dump_json())
    assert store.exists()
    assert store.load() == state
    store.write_state(state, [])
    assert store.load() == state
    State.model_validate_json(store.state_path.read_bytes())


def test_newer_checkpoints_win_and_older_ones_do_not(tmp_path: Path) -> None:
    store, state = make(tmp_path)
    state.window = WindowState(number=1, task_ids=["T0"])
    state.tasks["T2"].revision = 5
    store.write_state(state, state.tasks)
    for task_id in ("T1", "T2"):
        newer = state.tasks[task_id].model_copy(update={"revision": 1, "status": TaskStatus.DONE})
        store.write_task(task_id, newer)
    (store.folder / "tasks" / "gone.json").write_bytes(b"{}")
    loaded = store.load()
    assert loaded.tasks["T1"].status is TaskStatus.DONE
    assert loaded.tasks["T2"].status is TaskStatus.PENDING
    assert loaded.window is not None
    assert loaded.window.task_ids == ["T0", "T1"], "a task that joined the window is in it"


def test_missing_and_broken_states(tmp_path: Path) -> None:
    store, _ = make(tmp_path)
    with pytest.raises(NoSuchRun):
        store.load()
    store.state_path.write_text('{"state_version": "9"}')
    with pytest.raises(ThreaderError, match="state_version"):
        store.load()


def test_now_has_six_digits_and_an_offset() -> None:
    assert now().endswith("+00:00")
    assert len(now()) == 32


@pytest.mark.parametrize("text", ["", "[]", '{"revision": 9, "odd": 1}', '{"revision": "x"}'])
def test_a_broken_checkpoint_is_named(tmp_path: Path, text: str) -> None:
    store, state = make(tmp_path)
    store.write_state(state, state.tasks)
    (store.folder / "tasks" / "T1.json").write_text(text)
    with pytest.raises(ThreaderError, match=r"tasks/T1\.json"):
        store.load()
