"""Decides what a run does next: which tasks form a window, and what follows from it
(agent-threader-v2 §5, §6).

No I/O and no clock: the caller runs workers and healer, passes times as arguments, and writes the
state to disk after each step. `RunState` holds everything that a resume needs.
"""

from schemas.manifest import Manifest
from schemas.run_state import (
    HistoryRecord,
    RunState,
    TaskState,
    TaskStatus,
    WindowRecord,
    WindowState,
)
from threader import ending, windows
from threader.heal_rounds import HealRounds, rounds_used
from threader.ledger import UsageLedger
from threader.outcome import Failure
from threader.task_table import TaskTable
from threader.windows import Action, WindowVerdict


class Scheduler:
    """Opens, fills and closes the windows of a run, and ends it.

    `tasks`, `ledger` and `healing` are its parts: task states, usage and heal rounds.
    """

    def __init__(self, manifest: Manifest, state: RunState) -> None:
        self.manifest = manifest
        self.state = state
        self.tasks = TaskTable(manifest, state)
        self.ledger = UsageLedger(state, manifest.policy.budget)
        self.healing = HealRounds(state, self.tasks, self.ledger)

    def open_window(self) -> WindowState | None:
        """The window under way, else the next one; None when no task is left to start."""
        if self.state.window is not None:
            return self.state.window
        while not (members := self._take()):
            epoch = self.tasks.next_epoch()
            if epoch is None:
                return None
            self.state.epoch = epoch
        number = self.state.windows[-1].number + 1 if self.state.windows else 1
        self.state.window = WindowState(number=number, task_ids=members)
        return self.state.window

    def _take(self) -> list[str]:
        return self.tasks.take(windows.window_limit(self.state.policy, len(self.state.tasks)))

    def runnable(self) -> list[str]:
        """The window's tasks that wait for an attempt, in order."""
        window = self.state.window
        if window is None or window.needs_heal:
            return []
        return [key for key in window.task_ids if self.tasks[key].status is TaskStatus.PENDING]

    def settle(
        self, task_id: str, failure: Failure | None, records: list[HistoryRecord]
    ) -> tuple[TaskState, list[str]]:
        """Book the end of an attempt. Returns the task, and the tasks that now join the window."""
        task = self.tasks.settle(task_id, failure, records)
        self.ledger.charge_attempt(records)
        window = self.state.window
        if task.status is not TaskStatus.DONE or window is None or window.passes > 1:
            return task, []
        joined = self._take() if windows.sweeps(self.state.policy) else []
        window.task_ids.extend(joined)
        return task, joined

    def close_pass(self, now: str, *, healer: bool) -> WindowVerdict:
        """Judge the settled window, book the verdict and retry what the policy retries."""
        state, window = self.state, windows.open_window_of(self.state)
        verdict = windows.judge(
            window,
            state.tasks,
            state.policy,
            rounds_used=rounds_used(state),
            stalled_rounds=state.stalled_rounds,
            healer=healer,
            max_batch_size=self.manifest.policy.max_batch_size,
        )
        state.stalled_rounds = verdict.stalled_rounds
        state.policy.current_batch_size = verdict.next_batch_size
        if verdict.converging is not None and state.healing_rounds:
            state.healing_rounds[-1].converging = verdict.converging
        window.healed_failures = {}
        self._record(window, verdict, now)
        self.tasks.escalate(verdict.escalations)
        state.no_convergence = state.no_convergence or verdict.no_convergence
        if verdict.action is Action.HEAL:
            window.needs_heal = True
        else:
            self.tasks.retry(window.task_ids)
            state.window = None
        return verdict

    def _record(self, window: WindowState, verdict: WindowVerdict, now: str) -> None:
        statuses = [self.tasks[key].status for key in window.task_ids]
        self.state.windows.append(
            WindowRecord(
                number=window.number,
                attempt=window.passes,
                size=len(statuses),
                done=statuses.count(TaskStatus.DONE),
                failure_rate=round(verdict.failure_rate, 4),
                next_batch_size=verdict.next_batch_size,
                verdict=verdict.text,
                timestamp=now,
            )
        )

    def stop(self, reason: str) -> None:
        """End the run early as ABORTED; PENDING tasks stay so for a resume."""
        ending.abort(self.state, reason)

    def finish(self) -> None:
        """End the run after `open_window` gave None."""
        ending.finish(self.state, self.tasks.definitions)
