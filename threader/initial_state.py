"""The state that a run begins with. Pure."""

from schemas.manifest import HealSchedule, Manifest
from schemas.run_state import PolicyState, RunState, TaskState
from threader.digest import manifest_digest, task_definition


def initial_policy(manifest: Manifest) -> PolicyState:
    """The policy a run begins with: in `auto` windows grow from 1, else they keep their size."""
    policy = manifest.policy
    auto = policy.heal_schedule is HealSchedule.AUTO
    task = policy.heal_schedule is HealSchedule.TASK
    return PolicyState(
        heal_schedule=policy.heal_schedule,
        batch_strategy="fibonacci" if auto else "fixed",
        current_batch_size=1 if auto or task else policy.batch_size,
        failure_threshold=policy.failure_threshold,
        max_worker_attempts_per_task=policy.max_worker_attempts_per_task,
        max_heal_rounds_per_window=policy.max_heal_rounds_per_window,
        max_total_heal_rounds=policy.max_total_heal_rounds,
        signature_repeat_limit=policy.signature_repeat_limit,
        concurrency=policy.concurrency,
    )


def new_state(manifest: Manifest, now: str) -> RunState:
    """A run of `manifest` in which every task is PENDING; `now` is its start, ISO 8601."""
    return RunState(
        run_id=manifest.run_id,
        manifest_digest=manifest_digest(manifest),
        policy=initial_policy(manifest),
        tasks={task.id: TaskState(definition=task_definition(task)) for task in manifest.tasks},
        started_at=now,
        updated_at=now,
    )
