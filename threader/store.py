"""A run's folder: state, checkpoints, logs (agent-threader-v2 §10 "Atomic State Writes").

A checkpoint is a small file for one task, written after each attempt. `run.json` is the whole
state, written at every window, heal round, signal and end, and at intervals in between; unchanged
tasks in it are not serialised again. A load reads both, and the larger `revision` of a task wins.
`state.json` beside it is for other programs: `state.v2`, without the runner's own members.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import orjson
from pydantic import ValidationError

from schemas.problems import problem_text
from schemas.run_state import RunState, TaskState
from schemas.state import head, task_json
from threader.errors import NoSuchRun, RunLocked, ThreaderError
from threader.files import RunLock, sync_folder, write_atomic

FOLDERS = ("tasks", "logs", "prompts", "staging", "backups", "diffs")


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def now() -> str:
    """The time in the form of state.v2: ISO 8601, UTC, microseconds."""
    return _stamp(datetime.now(UTC))


class RunStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = RunLock(folder / "lock")
        self._fragments: dict[str, orjson.Fragment] = {}
        self._shown: dict[str, orjson.Fragment] = {}
        self._windows: list[orjson.Fragment] = []
        self._read: tuple[int, int] | None = None

    @property
    def state_path(self) -> Path:
        """The published state."""
        return self.folder / "state.json"

    @property
    def run_path(self) -> Path:
        """The whole state; older runners had it in `state.json`."""
        own = self.folder / "run.json"
        return own if own.exists() else self.state_path

    def prepare(self) -> None:
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        return self.run_path.exists()

    def _mark(self) -> tuple[int, int] | None:
        try:
            info = self.run_path.stat()
        except FileNotFoundError:
            return None
        return info.st_ino, info.st_mtime_ns

    def check_unchanged(self) -> None:
        """Raises RunLocked when another process has written the state since it was read.

        Call it while holding the lock.
        """
        if self._mark() != self._read:
            raise RunLocked(
                "another process has run this manifest since it was read; run the command again"
            )

    def write_state(self, state: RunState, changed: Iterable[str]) -> None:
        """Write the whole state; `changed` names the tasks that differ from the last time."""
        for task_id in self._stale(state, changed):
            task = state.tasks[task_id]
            self._fragments[task_id] = orjson.Fragment(task.model_dump_json().encode())
            self._shown[task_id] = orjson.Fragment(task_json(task))
        # Records of windows are only ever added, so those written before stand as they are.
        self._windows += [
            orjson.Fragment(record.model_dump_json().encode())
            for record in state.windows[len(self._windows) :]
        ]
        own = state.model_dump(mode="json", exclude={"tasks", "windows"})
        own["windows"] = self._windows
        own["tasks"] = {task_id: self._fragments[task_id] for task_id in state.tasks}
        write_atomic(self.folder / "run.json", orjson.dumps(own))
        shown = {**head(state), "tasks": {task_id: self._shown[task_id] for task_id in state.tasks}}
        write_atomic(self.state_path, orjson.dumps(shown))
        sync_folder(self.folder)

    def _stale(self, state: RunState, changed: Iterable[str]) -> set[str]:
        return {*changed, *(key for key in state.tasks if key not in self._fragments)}

    def show_life(self) -> None:
        """Touch the sign of life, which stays after a kill."""
        with suppress(OSError):
            (self.folder / "alive").touch()

    def last_seen(self) -> str | None:
        """The time of the last sign of life; None when there is none."""
        try:
            seconds = (self.folder / "alive").stat().st_mtime
        except OSError:
            return None
        return _stamp(datetime.fromtimestamp(seconds, UTC))

    def write_task(self, task_id: str, task: TaskState) -> None:
        """The checkpoint after an attempt."""
        write_atomic(self.folder / "tasks" / f"{task_id}.json", task.model_dump_json().encode())

    def load(self) -> RunState:
        """The state with newer checkpoints merged in. Raises NoSuchRun, or ThreaderError."""
        self._read = self._mark()
        try:
            path = self.run_path
            state = RunState.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise NoSuchRun("this manifest has not been run yet") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ThreaderError(
                f"{path.name} is not the state of a run: {problem_text(first, 'the file')}; "
                "start over with `run --fresh`, which keeps the old files"
            ) from None
        for path in (self.folder / "tasks").glob("[!.]*.json"):
            self._merge(state, path)
        return state

    @staticmethod
    def _merge(state: RunState, path: Path) -> None:
        known = state.tasks.get(path.stem)
        if known is None:
            return
        try:
            data = path.read_bytes()
            if orjson.loads(data)["revision"] <= known.revision:
                return
            state.tasks[path.stem] = TaskState.model_validate_json(data)
        except (ValueError, KeyError, TypeError):
            raise ThreaderError(
                f"tasks/{path.name} is not the state of a task; remove it to continue from run.json"
            ) from None
        if state.window is not None and path.stem not in state.window.task_ids:
            state.window.task_ids.append(path.stem)
