"""One healing round: ask the healer, check its wishes, change prompts (agent-threader-v2 §6)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.heal_decision import Decision, HealDecision
from schemas.manifest import HealSchedule, Manifest
from schemas.run_state import HealingRound, TaskState
from schemas.task_result import Write
from threader.adapters.base import HEALER, Adapter, RunContext, child_environment
from threader.course import Course
from threader.files import tail
from threader.healing import Grant, review
from threader.load import Project
from threader.parsing import ParserFailure
from threader.prompt import FailedTask, healer_prompt
from threader.store import now
from threader.transaction import Transaction, diff_text
from threader.writes import WriteRefused, WriteRules, plan_writes

MAX_SHOWN = 20
SHOWN_SIZE = 6_000


@dataclass(frozen=True)
class Round:
    """A finished round. Without `decision` and `grant` it was refused; `note` says why."""

    record: HealingRound
    decision: HealDecision | None = None
    grant: Grant | None = None
    transaction: Transaction | None = None


def _scope_name(schedule: HealSchedule) -> str:
    return {HealSchedule.TASK: "task", HealSchedule.EPOCH: "epoch"}.get(schedule, "batch")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return f"(cannot be read: {error.strerror})"


def _failed_task(project: Project, folder: Path, task_id: str, task: TaskState) -> FailedTask:
    reference = next(item.prompt_ref for item in project.manifest.tasks if item.id == task_id)
    logs = [
        f"[{record.phase} log]\n{tail(folder / record.log_path, SHOWN_SIZE)}"
        for record in task.history[-3:]
        if record.phase in ("worker", "verify") and record.attempt_number == task.runs
    ]
    notes = [note for record in task.history[-1:] for note in record.notes]
    return FailedTask(
        task_id=task_id,
        failure_class=task.last_failure_class or "",
        signature=task.last_failure_signature or "",
        prompt_ref=reference,
        prompt=_read(project.root / reference),
        log_tail="\n".join([*logs, *notes]),
    )


def _prompt(project: Project, folder: Path, course: Course, scope: Sequence[str]) -> str:
    manifest = project.manifest
    names = dict.fromkeys(manifest.context_refs)
    for task_id in scope:
        names |= dict.fromkeys(course.definitions[task_id].context_refs)
    contexts = {name: _read(project.root / name) for name in names}
    failed = [
        _failed_task(project, folder, task_id, course.state.tasks[task_id])
        for task_id in scope[:MAX_SHOWN]
    ]
    text = healer_prompt(failed, contexts, manifest.policy.runtime_limits, SHOWN_SIZE)
    if len(scope) > MAX_SHOWN:
        text += "\nAlso failed, not shown: " + ", ".join(scope[MAX_SHOWN:]) + "\n"
    return text


def _steering(manifest: Manifest, project: Project) -> list[str]:
    """What no patch may touch: the manifest and the verification commands (§6)."""
    return [project.path.name, manifest.verify_profiles]


def _patch_files(project: Project, grant: Grant, transaction: Transaction, diff_path: Path) -> bool:
    """Apply the grant's file patches under the same safeguards as a worker's writes (§8)."""
    writes = [
        Write(path=patch.path, op="append" if patch.append else "replace", content=patch.content)
        for patch in grant.files
    ]
    for index, patch in enumerate(grant.files):
        if patch.append and not patch.content.startswith("\n"):
            writes[index].content = "\n" + patch.content.rstrip("\n") + "\n"
    rules = WriteRules(project.root, project.root, _steering(project.manifest, project), ())
    changes = plan_writes(writes, rules)
    if changes:
        transaction.begin(changes)
        diff_path.write_text(diff_text(changes))
        transaction.apply(changes)
    return bool(changes)


async def heal(project: Project, folder: Path, adapter: Adapter, course: Course) -> Round:
    """Invoke the healer for the open window's failures. Files are patched, the course is not."""
    scope = course.scope()
    number = len(course.state.healing_rounds) + 1
    prompt_path = folder / "prompts" / f"{HEALER}.{number}.md"
    log_path = folder / "logs" / f"{HEALER}.{number}.log"
    staging = folder / "staging" / f"{HEALER}.{number}"
    staging.mkdir(exist_ok=True)
    prompt_path.write_text(_prompt(project, folder, course, scope))
    log_path.write_bytes(b"")
    policy = project.manifest.policy
    ctx = RunContext(
        task_id=HEALER,
        cwd=project.workspace,
        staging=staging,
        prompt_path=prompt_path,
        log_path=log_path,
        timeout_sec=policy.healer_timeout_sec,
        max_log_bytes=policy.max_log_bytes,
        marker=str(folder),
        environ=child_environment(project.manifest),
    )
    began = time.monotonic()
    artifact = await adapter.execute(adapter.prepare(ctx), ctx)
    parsed = adapter.extract_decision(artifact)
    window = course.state.window
    record = HealingRound.model_validate(
        {
            "round_number": number,
            "scope": _scope_name(policy.heal_schedule),
            "window_task_ids": list(window.task_ids) if window else [],
            "failed_task_ids": scope,
            "decision": "INVALID",
            "timestamp": now(),
            "window": window.number if window else 0,
            "log_path": log_path.relative_to(folder).as_posix(),
            "duration_sec": round(time.monotonic() - began, 3),
        }
    )
    if isinstance(parsed, ParserFailure):
        record.note = f"{parsed.code}: {parsed.message}"
        return Round(record)
    return _decide(project, folder, course, scope, record, parsed.value)


def _decide(
    project: Project,
    folder: Path,
    course: Course,
    scope: Sequence[str],
    record: HealingRound,
    decision: HealDecision,
) -> Round:
    record.failure_class = decision.failure_class
    record.root_cause = decision.root_cause
    grant = review(decision, project.manifest, scope, course.next_patch())
    if isinstance(grant, list):
        record.note = "refused: " + "; ".join(grant)
        return Round(record)
    transaction = Transaction(project.root, folder / "backups" / f"@heal.{record.round_number}")
    try:
        diff_path = folder / "diffs" / f"@heal.{record.round_number}.diff"
        patched = _patch_files(project, grant, transaction, diff_path)
    except WriteRefused as error:
        record.note = f"refused: {error}"
        return Round(record)
    record.decision = decision.decision
    if patched:
        record.diff_path = diff_path.relative_to(folder).as_posix()
    if decision.decision is Decision.RETRY:
        record.applied_patch_ids = list(grant.patch_ids)
    hints = dict.fromkeys(hint for hints in grant.hints.values() for hint in hints)
    record.changes = [f"hint: {hint}" for hint in hints]
    record.changes += [f"{key} = {value:g}" for key, value in grant.runtime.items()]
    record.learned_rule = decision.learned_rule
    return Round(record, decision, grant, transaction if patched else None)
