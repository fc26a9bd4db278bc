"""One heal round: invoke the healer, check its decision, patch files (agent-threader-v2 §6)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.heal_decision import Decision, HealDecision
from schemas.manifest import HealSchedule, Manifest
from schemas.run_state import HealingRound, TaskState
from schemas.task_result import Write
from threader.adapters.base import (
    HEALER,
    Adapter,
    ExecutionArtifact,
    RunContext,
    child_environment,
)
from threader.adapters.streams import readable
from threader.files import tail
from threader.healing import Grant, review
from threader.landing import SiteFailed, WorkSite
from threader.load import ThreadProject
from threader.outage import Outage, find_trouble
from threader.outcome import Ending
from threader.parsing import ParserFailure
from threader.prompt import FailedTask, defuse, healer_prompt
from threader.scheduler import Scheduler
from threader.store import now
from threader.transaction import FileTransaction, diff_text
from threader.writes import WriteRefused, WriteRules, plan_writes

MAX_SHOWN = 20
SHOWN_SIZE = 6_000
MEDDLED = "the healer: "
"""Prefix of a round's notes on a healer that changed files directly."""


@dataclass(frozen=True)
class HealResult:
    """The outcome of a round. Without `decision` and `grant` it failed; `record.note` says why."""

    record: HealingRound
    outage: Outage | None = None
    answered: bool = True
    """Whether the healer was not stopped, so that its provider was available."""
    decision: HealDecision | None = None
    grant: Grant | None = None
    transaction: FileTransaction | None = None


def _scope_name(schedule: HealSchedule) -> str:
    return {HealSchedule.TASK: "task", HealSchedule.EPOCH: "epoch"}.get(schedule, "batch")


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return f"(cannot be read: {error.strerror})"


def _failed_task(project: ThreadProject, folder: Path, task_id: str, task: TaskState) -> FailedTask:
    reference = next(item.prompt_ref for item in project.manifest.tasks if item.id == task_id)
    logs = [
        f"[{record.phase} log]\n{readable(tail(folder / record.log_path))[-SHOWN_SIZE:]}"
        for record in task.history[-3:]
        if record.phase in ("worker", "verify") and record.attempt_number == task.runs
    ]
    notes = [note for record in task.history[-1:] for note in record.notes]
    worker_words = [record.said for record in task.history[-1:] if record.said]
    return FailedTask(
        task_id=task_id,
        failure_class=task.last_failure_class or "",
        signature=task.last_failure_signature or "",
        prompt_ref=reference,
        prompt=_read(project.root / reference),
        log_tail="\n".join([*logs, *notes, *worker_words]),
    )


def _prompt(
    project: ThreadProject, folder: Path, scheduler: Scheduler, scope: Sequence[str]
) -> str:
    manifest = project.manifest
    names = dict.fromkeys(manifest.context_refs)
    for task_id in scope:
        names |= dict.fromkeys(scheduler.tasks.definitions[task_id].context_refs)
    contexts = {name: _read(project.root / name) for name in names}
    failed = [
        _failed_task(project, folder, task_id, scheduler.state.tasks[task_id])
        for task_id in scope[:MAX_SHOWN]
    ]
    text = healer_prompt(failed, contexts, manifest.policy.runtime_limits, SHOWN_SIZE)
    if len(scope) > MAX_SHOWN:
        text += "\nAlso failed, not shown: " + ", ".join(scope[MAX_SHOWN:]) + "\n"
    if scheduler.state.window is not None and scheduler.state.window.healer_failures:
        note = defuse(scheduler.state.healer_failures[-1].note)
        text += f"\nYour last answer could not be used. {note}\n"
    return text


def _steering(manifest: Manifest, project: ThreadProject) -> list[str]:
    """The files that no patch may touch: the manifest and the verification profiles (§6)."""
    return [project.path.name, manifest.verify_profiles]


def _patch_files(
    project: ThreadProject, grant: Grant, transaction: FileTransaction, diff_path: Path
) -> bool:
    """Apply the grant's file patches under the same safeguards as a worker's writes (§8)."""
    writes = [
        Write(
            path=patch.path,
            op="append" if patch.append else "replace",
            encoding="utf8",
            content=patch.content,
        )
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


def _next_log(folder: Path) -> int:
    """The number of the next invocation: logs are never overwritten (§5)."""
    taken = (path.name.split(".")[1] for path in (folder / "logs").glob(f"{HEALER}.*.log"))
    return 1 + max((int(number) for number in taken), default=0)


def _ended(artifact: ExecutionArtifact) -> str:
    if artifact.exit.ending is not Ending.EXITED:
        return f"{artifact.exit.ending.replace('_', ' ')}; "
    return f"exit code {artifact.exit.exit_code}; " if artifact.exit.exit_code else ""


def _record(folder: Path, scheduler: Scheduler, log_path: Path) -> HealingRound:
    """The round before the healer has answered."""
    window = scheduler.state.window
    return HealingRound.model_validate(
        {
            "round_number": scheduler.healing.next_number(),
            "scope": _scope_name(scheduler.manifest.policy.heal_schedule),
            "window_task_ids": list(window.task_ids) if window else [],
            "failed_task_ids": scheduler.healing.scope(),
            "decision": "INVALID",
            "timestamp": now(),
            "window": window.number if window else 0,
            "log_path": log_path.relative_to(folder).as_posix(),
        }
    )


async def heal(
    project: ThreadProject, folder: Path, adapter: Adapter, scheduler: Scheduler, site: WorkSite
) -> HealResult:
    """Invoke the healer for the open window's failures. Patches files; books nothing."""
    asked = _next_log(folder)
    log_path = folder / "logs" / f"{HEALER}.{asked}.log"
    log_path.write_bytes(b"")
    prompt_path = folder / "prompts" / f"{HEALER}.{asked}.md"
    prompt_path.write_text(_prompt(project, folder, scheduler, scheduler.healing.scope()))
    record = _record(folder, scheduler, log_path)
    began = time.monotonic()
    try:
        artifact = await _invoke(project, folder, adapter, site, prompt_path, log_path)
        record.usage = adapter.usage(artifact)
        meddled = await site.review_healer()
    except SiteFailed as error:
        record.note = f"its worktree could not be created: {error}"
        return HealResult(record, answered=False)
    finally:
        await site.release(HEALER)
    record.duration_sec = round(time.monotonic() - began, 3)
    parsed = adapter.extract_decision(artifact)
    if isinstance(parsed, ParserFailure):
        record.note = "; ".join([f"{_ended(artifact)}{parsed.code}: {parsed.message}", *meddled])
        crashed, agent = bool(artifact.exit.exit_code), adapter.is_agent
        trouble = find_trouble(tail(log_path), crashed=crashed, is_agent_cli=agent, now=time.time())
        if isinstance(trouble, Outage):
            return HealResult(record, trouble, answered=artifact.exit.exit_code == 0)
        if trouble is not None:
            record.note = f"{trouble.reason}; {record.note}"
        return HealResult(record, answered=artifact.exit.exit_code == 0)
    done = _decide(project, folder, scheduler, record.failed_task_ids, record, parsed.value)
    record.changes += [f"{MEDDLED}{note}" for note in meddled]
    if done.decision is None:
        record.note = "; ".join([record.note or "", *meddled])
    return done


async def _invoke(
    project: ThreadProject,
    folder: Path,
    adapter: Adapter,
    site: WorkSite,
    prompt_path: Path,
    log_path: Path,
) -> ExecutionArtifact:
    policy = project.manifest.policy
    staging = folder / "staging" / prompt_path.stem
    staging.mkdir(exist_ok=True)
    ctx = RunContext(
        task_id=HEALER,
        cwd=await site.prepare(HEALER),
        staging=staging,
        prompt_path=prompt_path,
        log_path=log_path,
        timeout_sec=policy.healer_timeout_sec,
        max_log_bytes=policy.max_log_bytes,
        marker=str(folder),
        environ=child_environment(project.manifest),
    )
    return await adapter.execute(adapter.prepare(ctx), ctx)


def _decide(
    project: ThreadProject,
    folder: Path,
    scheduler: Scheduler,
    scope: Sequence[str],
    record: HealingRound,
    decision: HealDecision,
) -> HealResult:
    record.failure_class = decision.failure_class
    record.root_cause = decision.root_cause
    grant = review(decision, project.manifest, scope, scheduler.healing.next_patch())
    if isinstance(grant, list):
        record.note = "refused: " + "; ".join(grant)
        return HealResult(record)
    transaction = FileTransaction(project.root, folder / "backups" / f"@heal.{record.round_number}")
    try:
        diff_path = folder / "diffs" / f"@heal.{record.round_number}.diff"
        patched = _patch_files(project, grant, transaction, diff_path)
    except WriteRefused as error:
        record.note = f"refused: {error}"
        return HealResult(record)
    record.decision = decision.decision
    if patched:
        record.diff_path = diff_path.relative_to(folder).as_posix()
    if decision.decision is Decision.RETRY:
        record.applied_patch_ids = list(grant.patch_ids)
    hints = dict.fromkeys(hint for hints in grant.hints.values() for hint in hints)
    record.changes = [f"hint: {hint}" for hint in hints]
    record.changes += [f"{key} = {value:g}" for key, value in grant.runtime.items()]
    record.learned_rule = decision.learned_rule
    return HealResult(
        record,
        decision=decision,
        grant=grant,
        transaction=transaction if patched else None,
    )
