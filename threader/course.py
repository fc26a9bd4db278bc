"""The course of a run: every transition of its state, in one place (agent-threader-v2 §5, §6, §10).

No I/O and no clock: the caller runs the tasks and the healer, brings times along, and writes the
state down after each step. Everything a resume needs is in `RunState`.
"""

from collections.abc import Iterable, Mapping

from schemas.heal_decision import HealDecision
from schemas.manifest import HealSchedule, Manifest, ManifestTask
from schemas.run_state import (
    HealerFailure,
    HealingRound,
    HistoryRecord,
    LearnedRule,
    PolicyState,
    RunState,
    RunStatus,
    TaskState,
    TaskStatus,
    Usage,
    WindowRecord,
    WindowState,
)
from threader import outcome, windows
from threader.budget import add, budget_of, counts, spent_in, why_stop
from threader.digest import manifest_digest, task_definition
from threader.healing import Grant, after_heal
from threader.outcome import VERIFY_CLASSES, Failure, Rules, rules_for
from threader.plan import ReadyQueue
from threader.windows import Action, Verdict

HEALER_TRIES = 2
"""How often a window's healer is asked when it crashes or its decision is not valid."""


def initial_policy(manifest: Manifest) -> PolicyState:
    """The policy a run starts with: windows grow from 1 in `auto`, others keep their size."""
    own = manifest.policy
    auto = own.heal_schedule is HealSchedule.AUTO
    task = own.heal_schedule is HealSchedule.TASK
    return PolicyState(
        heal_schedule=own.heal_schedule,
        batch_strategy="fibonacci" if auto else "fixed",
        current_batch_size=1 if auto or task else own.batch_size,
        failure_threshold=own.failure_threshold,
        max_worker_attempts_per_task=own.max_worker_attempts_per_task,
        max_heal_rounds_per_window=own.max_heal_rounds_per_window,
        max_total_heal_rounds=own.max_total_heal_rounds,
        signature_repeat_limit=own.signature_repeat_limit,
        concurrency=own.concurrency,
    )


def new_state(manifest: Manifest, now: str) -> RunState:
    return RunState(
        run_id=manifest.run_id,
        manifest_digest=manifest_digest(manifest),
        policy=initial_policy(manifest),
        tasks={task.id: TaskState(definition=task_definition(task)) for task in manifest.tasks},
        started_at=now,
        updated_at=now,
    )


def _with_healer_record(task: TaskState, task_id: str, round_: HealingRound) -> TaskState:
    record = HistoryRecord(
        task_id=task_id,
        phase="healer",
        attempt_number=round_.round_number,
        log_path=round_.log_path,
        failure_class=task.last_failure_class,
        failure_signature=task.last_failure_signature,
        applied_patch_ids=round_.applied_patch_ids,
        duration_sec=round_.duration_sec,
        timestamp=round_.timestamp,
        notes=[round_.root_cause] if round_.root_cause else [],
    )
    return task.model_copy(update={"history": [*task.history, record]})


def rounds_used(state: RunState) -> int:
    """Heal rounds that count against `max_total_heal_rounds`."""
    return len(state.healing_rounds) - state.rounds_forgiven


class Course:
    """A manifest and the state of its run. Tasks left RUNNING by a crash are PENDING again.

    `changed` collects the tasks touched since the caller last wrote the state down; `spent` is what
    the run used until now.
    """

    def __init__(self, manifest: Manifest, state: RunState) -> None:
        self.manifest = manifest
        self.state = state
        self.changed: set[str] = set()
        self.spent = spent_in(state)
        self.definitions: dict[str, ManifestTask] = {task.id: task for task in manifest.tasks}
        self.rules: dict[str, Rules] = {
            task.id: rules_for(task, manifest.policy) for task in manifest.tasks
        }
        for task_id, task in state.tasks.items():
            if task.status is TaskStatus.RUNNING:
                self._put(task_id, task.model_copy(update={"status": TaskStatus.PENDING}))
        done = [key for key, task in state.tasks.items() if task.status is TaskStatus.DONE]
        self.queue = ReadyQueue(manifest.tasks, done)
        taken = set(state.window.task_ids) if state.window else set()
        for task_id, task in state.tasks.items():
            if task.status is TaskStatus.PENDING and task_id not in taken:
                self.queue.offer(task_id)

    def _put(self, task_id: str, task: TaskState) -> None:
        self.state.tasks[task_id] = task
        self.changed.add(task_id)

    def _put_all(self, tasks: Mapping[str, TaskState]) -> None:
        for task_id, task in tasks.items():
            self._put(task_id, task)
            if task.status is TaskStatus.PENDING:
                self.queue.offer(task_id)

    # Windows

    def open_window(self) -> WindowState | None:
        """The window under way, else the next one; None when nothing is left to run."""
        if self.state.window is not None:
            return self.state.window
        while True:
            members = self._take()
            if members:
                number = self.state.windows[-1].number + 1 if self.state.windows else 1
                self.state.window = WindowState(number=number, task_ids=members)
                return self.state.window
            later = [
                task.epoch
                for task in self.state.tasks.values()
                if task.status is TaskStatus.PENDING and task.epoch > self.state.epoch
            ]
            if not later:
                return None
            self.state.epoch = min(later)

    def _take(self) -> list[str]:
        limit = windows.window_limit(self.state.policy, len(self.state.tasks))
        tasks = self.state.tasks
        return self.queue.take(
            limit,
            lambda key: (
                tasks[key].status is TaskStatus.PENDING and tasks[key].epoch <= self.state.epoch
            ),
        )

    def runnable(self) -> list[str]:
        """The window's tasks that wait for their attempt, in order."""
        window = self.state.window
        if window is None or window.needs_heal:
            return []
        tasks = self.state.tasks
        return [key for key in window.task_ids if tasks[key].status is TaskStatus.PENDING]

    # Attempts

    def start(self, task_id: str) -> TaskState:
        task = self.state.tasks[task_id]
        task = task.model_copy(update={"status": TaskStatus.RUNNING, "runs": task.runs + 1})
        self._put(task_id, task)
        return task

    def interrupt(self, task_id: str) -> None:
        """An attempt that a shutdown cut short never happened, but for its log's number."""
        task = self.state.tasks[task_id]
        self._put(task_id, task.model_copy(update={"status": TaskStatus.PENDING}))

    def settle(
        self, task_id: str, failure: Failure | None, records: list[HistoryRecord]
    ) -> tuple[TaskState, list[str]]:
        """Book an attempt. Returns the task, and the tasks that now join a sweeping window."""
        task = outcome.settle(self.state.tasks[task_id], task_id, failure, self.rules[task_id])
        for record in records:
            if record.phase == "worker" or (failure and failure.failure_class in VERIFY_CLASSES):
                record.failure_class = task.last_failure_class
                record.failure_signature = task.last_failure_signature
        task = task.model_copy(
            update={"history": [*task.history, *records], "revision": task.revision + 1}
        )
        self._put(task_id, task)
        for record in filter(counts, records):
            self._spend(record.usage, completed=record.exit_code == 0)
        if task.status is not TaskStatus.DONE:
            return task, []
        for freed in self.queue.finished(task_id):
            if self.state.tasks[freed].status is TaskStatus.PENDING:
                self.queue.offer(freed)
        window = self.state.window
        if window is None or window.passes > 1 or not windows.sweeps(self.state.policy):
            return task, []
        joined = self._take()
        window.task_ids.extend(joined)
        return task, joined

    def cut(self, log_path: str, usage: Usage | None, *, served: bool = True) -> None:
        """Count what an invocation used that was cut short, and so has no record.

        One that its provider has not `served` counts for nothing, now and later.
        """
        self.state.cut_logs.append(log_path)
        if not served:
            return
        self.state.aside = add(self.state.aside, usage, completed=False)
        self._spend(usage, completed=False)

    def without_record(self, logs: Iterable[str]) -> list[str]:
        """Of the logs of invocations, those that nothing counts yet."""
        state = self.state
        known = {record.log_path for task in state.tasks.values() for record in task.history}
        known |= {round_.log_path for round_ in state.healing_rounds}
        known |= {failure.log_path for failure in state.healer_failures}
        known.update(state.cut_logs)
        return [log for log in logs if log not in known]

    def _spend(self, usage: Usage | None, *, completed: bool) -> None:
        self.spent = add(self.spent, usage, completed=completed)

    def why_stop(self) -> str | None:
        """Why the budget lets no further invocation begin; None when it lets one."""
        return why_stop(self.spent, budget_of(self.state, self.manifest.policy.budget))

    # Checkpoints

    def close_pass(self, now: str, *, healer: bool) -> Verdict:
        """Judge the settled window, book the verdict, and retry what policy retries."""
        state, window = self.state, self._window()
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
        for task_id, reason in verdict.escalations.items():
            self._put(task_id, outcome.escalate(state.tasks[task_id], reason))
        state.no_convergence = state.no_convergence or verdict.no_convergence
        if verdict.action is Action.HEAL:
            window.needs_heal = True
        else:
            self._retry(window.task_ids)
            state.window = None
        return verdict

    def _window(self) -> WindowState:
        if self.state.window is None:
            raise RuntimeError("no window is open")
        return self.state.window

    def _record(self, window: WindowState, verdict: Verdict, now: str) -> None:
        statuses = [self.state.tasks[key].status for key in window.task_ids]
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

    def _retry(self, task_ids: list[str]) -> None:
        again = {
            key: outcome.retry(self.state.tasks[key])
            for key in task_ids
            if outcome.may_retry(self.state.tasks[key], self.rules[key])
        }
        self._put_all(again)

    # Healing

    def scope(self) -> list[str]:
        """The window's healable failures: what the healer is shown."""
        tasks = self.state.tasks
        return [
            key
            for key in self._window().task_ids
            if tasks[key].status is TaskStatus.FAILED and tasks[key].healable
        ]

    def next_patch(self) -> int:
        return 1 + sum(len(item.applied_patch_ids) for item in self.state.healing_rounds)

    def no_decision(self, failure: HealerFailure) -> bool:
        """The healer crashed, or its decision was invalid: no round, and nobody is escalated (§6).

        It is asked once more; then retry policy alone decides, and the run goes on. True when the
        window was given up so.
        """
        self.state.healer_failures.append(failure)
        self._spend(failure.usage, completed=False)
        window = self._window()
        window.healer_failures += 1
        if window.healer_failures < HEALER_TRIES:
            return False
        self._retry(window.task_ids)
        self.state.window = None
        return True

    def apply_heal(self, round_: HealingRound, decision: HealDecision, grant: Grant) -> None:
        """Book a granted decision: runtime settings, resets, escalations, the next window."""
        state, window = self.state, self._window()
        scope = self.scope()
        shrinks = (
            state.policy.heal_schedule is HealSchedule.AUTO
            and state.windows[-1].failure_rate > state.policy.failure_threshold
        )
        directive = decision.retry_policy.retry_window
        if state.policy.heal_schedule is HealSchedule.AUTO:
            if directive == "shrink_window" and not shrinks:
                size = windows.shrink(state.policy.current_batch_size)
                state.policy.current_batch_size = size
            size = int(grant.runtime.get("current_batch_size", state.policy.current_batch_size))
            state.policy.current_batch_size = size
        concurrency = grant.runtime.get("concurrency", state.policy.concurrency)
        state.policy.concurrency = int(concurrency)
        following = after_heal(
            decision,
            grant,
            window,
            scope,
            state.tasks,
            self.rules,
            batch_size=state.policy.current_batch_size,
            shrinks=shrinks,
            epoch=state.epoch,
        )
        state.healing_rounds.append(round_)
        self._spend(round_.usage, completed=True)
        if decision.learned_rule:
            state.learned_rules.append(
                LearnedRule(round_number=round_.round_number, rule=decision.learned_rule)
            )
        state.window = following.window
        healed = {
            task_id: _with_healer_record(task, task_id, round_)
            for task_id, task in following.tasks.items()
        }
        members = set(following.window.task_ids) if following.window else set()
        for task_id, task in healed.items():
            self._put(task_id, task)
            if task.status is TaskStatus.PENDING and task_id not in members:
                self.queue.offer(task_id)
        self._mark_others(grant, healed)

    def _mark_others(self, grant: Grant, healed: Mapping[str, TaskState]) -> None:
        for task_id, ids in grant.touched.items():
            task = self.state.tasks[task_id]
            if task_id not in healed and task.status is not TaskStatus.DONE:
                ids_now = [*task.applied_patch_ids, *ids]
                self._put(task_id, task.model_copy(update={"applied_patch_ids": ids_now}))

    # The end

    def _abort(self, reason: str) -> None:
        failing = [
            f"{key} ({task.last_failure_signature})"
            for key, task in self.state.tasks.items()
            if task.status in (TaskStatus.FAILED, TaskStatus.ESCALATED)
        ]
        if failing:
            more = f" and {len(failing) - 20} more" if len(failing) > 20 else ""
            reason += f"; failing: {', '.join(failing[:20])}{more}"
        self.state.run_status = RunStatus.ABORTED
        self.state.abort_reason = reason

    def stop(self, reason: str) -> None:
        """End the run early; what is pending stays so, for a resume."""
        self._abort(reason)

    def finish(self) -> None:
        """Nothing is left to run: COMPLETED; or ABORTED when healing did not converge (§6, §10),
        or failed tasks hold others back."""
        tasks = self.state.tasks
        held = [key for key, task in tasks.items() if task.status is TaskStatus.PENDING]
        lost = any(task.status is TaskStatus.ESCALATED for task in tasks.values())
        reasons = [self.state.no_convergence] if lost and self.state.no_convergence else []
        if held:
            reasons.append(self._why_held(held))
        if reasons:
            self._abort("; ".join(reasons))
        else:
            self.state.run_status = RunStatus.COMPLETED
            self.state.abort_reason = None

    def _why_held(self, held: list[str]) -> str:
        tasks = self.state.tasks
        blockers = sorted(
            {
                dep
                for key in held
                for dep in self.definitions[key].depends_on
                if tasks[dep].status not in (TaskStatus.DONE, TaskStatus.PENDING)
            }
        )
        reason = (
            f"no runnable task is left: {', '.join(blockers[:20])} did not end DONE, which "
            f"holds back {len(held)} of {len(tasks)} tasks"
        )
        if failures := self.state.healer_failures:
            reason += f"; the healer gave {len(failures)} invalid answers ({failures[-1].note})"
        return reason
