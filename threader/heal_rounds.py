"""What the healer is asked about, and what its answer changes (agent-threader-v2 §6). Pure."""

from collections.abc import Mapping

from schemas.heal_decision import HealDecision
from schemas.manifest import HealSchedule
from schemas.run_state import (
    HealerFailure,
    HealingRound,
    HistoryRecord,
    LearnedRule,
    RunState,
    TaskState,
    TaskStatus,
)
from threader import windows
from threader.healing import Grant, after_heal
from threader.ledger import UsageLedger
from threader.task_table import TaskTable

HEALER_TRIES = 2
"""How often a window's healer is asked when it crashes or its decision is invalid."""


def rounds_used(state: RunState) -> int:
    """Heal rounds that count against `max_total_heal_rounds`."""
    return len(state.healing_rounds) - state.rounds_forgiven


class HealRounds:
    """The heal rounds of a run. Scope, decisions and failures concern the open window."""

    def __init__(self, state: RunState, tasks: TaskTable, ledger: UsageLedger) -> None:
        self._state = state
        self._tasks = tasks
        self._ledger = ledger

    def scope(self) -> list[str]:
        """The tasks that the healer is shown: the window's healable failures, in order."""
        members = windows.open_window_of(self._state).task_ids
        return [key for key in members if windows.is_healable_failure(self._tasks[key])]

    def next_number(self) -> int:
        """The number of the next round, from 1."""
        return len(self._state.healing_rounds) + 1

    def next_patch(self) -> int:
        """The number of the next patch, from 1."""
        return 1 + sum(len(item.applied_patch_ids) for item in self._state.healing_rounds)

    def fail(self, failure: HealerFailure) -> bool:
        """Book a healer that crashed or gave an invalid decision. It costs no heal round (§6).

        After `HEALER_TRIES` failures the window closes and only the retry policy applies; returns
        whether that is so.
        """
        self._state.healer_failures.append(failure)
        self._ledger.charge(failure.usage, completed=False)
        window = windows.open_window_of(self._state)
        window.healer_failures += 1
        if window.healer_failures < HEALER_TRIES:
            return False
        self._tasks.retry(window.task_ids)
        self._state.window = None
        return True

    def apply(self, round_: HealingRound, decision: HealDecision, grant: Grant) -> None:
        """Book a granted decision: settings, resets, escalations and the next window."""
        state, scope = self._state, self.scope()
        window = windows.open_window_of(state)
        auto = state.policy.heal_schedule is HealSchedule.AUTO
        shrinks = auto and state.windows[-1].failure_rate > state.policy.failure_threshold
        self._apply_settings(decision, grant, shrunk=shrinks)
        following = after_heal(
            decision,
            grant,
            window,
            scope,
            state.tasks,
            self._tasks.rules,
            batch_size=state.policy.current_batch_size,
            shrinks=shrinks,
            epoch=state.epoch,
        )
        state.healing_rounds.append(round_)
        self._ledger.charge(round_.usage, completed=True)
        if decision.learned_rule:
            rule = LearnedRule(round_number=round_.round_number, rule=decision.learned_rule)
            state.learned_rules.append(rule)
        state.window = following.window
        healed = {
            task_id: _with_healer_record(task, task_id, round_)
            for task_id, task in following.tasks.items()
        }
        members = following.window.task_ids if following.window else ()
        self._tasks.put_all(healed, members=members)
        self._mark_touched(grant, healed)

    def _apply_settings(self, decision: HealDecision, grant: Grant, *, shrunk: bool) -> None:
        """`shrunk`: the window's verdict has made the batch smaller already."""
        policy = self._state.policy
        if policy.heal_schedule is HealSchedule.AUTO:
            size = policy.current_batch_size
            if decision.retry_policy.retry_window == "shrink_window" and not shrunk:
                size = windows.shrink(size)
            policy.current_batch_size = int(grant.runtime.get("current_batch_size", size))
        policy.concurrency = int(grant.runtime.get("concurrency", policy.concurrency))

    def _mark_touched(self, grant: Grant, healed: Mapping[str, TaskState]) -> None:
        """Note the patches on tasks outside the scope that read a patched file."""
        for task_id, patch_ids in grant.touched.items():
            task = self._tasks[task_id]
            if task_id not in healed and task.status is not TaskStatus.DONE:
                applied = [*task.applied_patch_ids, *patch_ids]
                self._tasks.put(task_id, task.model_copy(update={"applied_patch_ids": applied}))


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
