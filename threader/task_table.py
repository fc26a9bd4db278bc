"""The states of a run's tasks, and the queue of the ready ones (agent-threader-v2 §5). Pure."""

from collections.abc import Iterable, Mapping

from schemas.manifest import Manifest, ManifestTask
from schemas.run_state import HistoryRecord, RunState, TaskState, TaskStatus
from threader import outcome
from threader.outcome import VERIFY_CLASSES, Failure, Rules, rules_for
from threader.plan import ReadyQueue


class TaskTable:
    """Reads and replaces the task states in `state`. A task that a crash left RUNNING is PENDING.

    `changed` collects the ids of the tasks that differ from what the caller last wrote to disk; the
    caller clears it.
    """

    def __init__(self, manifest: Manifest, state: RunState) -> None:
        self.changed: set[str] = set()
        self.definitions: dict[str, ManifestTask] = {task.id: task for task in manifest.tasks}
        self.rules: dict[str, Rules] = {
            task.id: rules_for(task, manifest.policy) for task in manifest.tasks
        }
        self._state = state
        for task_id, task in state.tasks.items():
            if task.status is TaskStatus.RUNNING:
                self.put(task_id, task.model_copy(update={"status": TaskStatus.PENDING}))
        done = [key for key, task in state.tasks.items() if task.status is TaskStatus.DONE]
        self._queue = ReadyQueue(manifest.tasks, done)
        members = set(state.window.task_ids) if state.window else set()
        self._offer(key for key in state.tasks if key not in members)

    def __getitem__(self, task_id: str) -> TaskState:
        return self._state.tasks[task_id]

    def put(self, task_id: str, task: TaskState) -> None:
        """Replace a task's state; its place in the queue stays."""
        self._state.tasks[task_id] = task
        self.changed.add(task_id)

    def _offer(self, task_ids: Iterable[str]) -> None:
        for task_id in task_ids:
            if self[task_id].status is TaskStatus.PENDING:
                self._queue.offer(task_id)

    def put_all(self, tasks: Mapping[str, TaskState], *, members: Iterable[str] = ()) -> None:
        """Replace `tasks`. Those that are PENDING are queued, except the `members` of a window."""
        for task_id, task in tasks.items():
            self.put(task_id, task)
        held = set(members)
        self._offer(key for key in tasks if key not in held)

    def take(self, limit: int) -> list[str]:
        """Remove up to `limit` ready tasks of this epoch from the queue, in stable order."""
        epoch = self._state.epoch

        def is_eligible(task_id: str) -> bool:
            task = self[task_id]
            return task.status is TaskStatus.PENDING and task.epoch <= epoch

        return self._queue.take(limit, is_eligible)

    def next_epoch(self) -> int | None:
        """The nearest later epoch that a PENDING task waits for, or None."""
        later = (
            task.epoch
            for task in self._state.tasks.values()
            if task.status is TaskStatus.PENDING and task.epoch > self._state.epoch
        )
        return min(later, default=None)

    def start(self, task_id: str) -> TaskState:
        """Mark a task RUNNING under a new run number."""
        task = self[task_id]
        task = task.model_copy(update={"status": TaskStatus.RUNNING, "runs": task.runs + 1})
        self.put(task_id, task)
        return task

    def interrupt(self, task_id: str) -> None:
        """Make a cancelled task PENDING again: the attempt does not count, its run number does."""
        self.put(task_id, self[task_id].model_copy(update={"status": TaskStatus.PENDING}))

    def settle(
        self, task_id: str, failure: Failure | None, records: list[HistoryRecord]
    ) -> TaskState:
        """Book the end of an attempt and its history records; returns the task's new state.

        A task that is now DONE makes its dependents ready.
        """
        task = outcome.settle(self[task_id], task_id, failure, self.rules[task_id])
        for record in records:
            if record.phase == "worker" or (failure and failure.failure_class in VERIFY_CLASSES):
                record.failure_class = task.last_failure_class
                record.failure_signature = task.last_failure_signature
        task = task.model_copy(
            update={"history": [*task.history, *records], "revision": task.revision + 1}
        )
        self.put(task_id, task)
        if task.status is TaskStatus.DONE:
            self._offer(self._queue.finished(task_id))
        return task

    def escalate(self, reasons: Mapping[str, str]) -> None:
        """Escalate the tasks that `reasons` names, each with its reason."""
        for task_id, reason in reasons.items():
            self.put(task_id, outcome.escalate(self[task_id], reason))

    def retry(self, task_ids: Iterable[str]) -> None:
        """Queue again those of `task_ids` that the retry policy grants another attempt."""
        self.put_all(
            {
                key: outcome.retry(self[key])
                for key in task_ids
                if outcome.may_retry(self[key], self.rules[key])
            }
        )
