"""One worker attempt, from its prompt to its history records (agent-threader-v2 §5)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from schemas.manifest import ManifestTask
from schemas.run_state import HistoryRecord, TaskState
from schemas.task_result import TaskResult
from schemas.v2 import FailureClass
from threader.adapters.base import (
    Adapter,
    ExecutionArtifact,
    ResultReader,
    RunContext,
    child_environment,
)
from threader.adapters.streams import readable
from threader.files import remove_tree, tail
from threader.landing import AttemptResult, Landing, SiteFailed, WorkSite
from threader.load import ThreadProject
from threader.outage import Outage, find_trouble
from threader.outcome import Failure, classify_execution
from threader.parsing import ParsedContract, ParserFailure
from threader.prompt import worker_prompt
from threader.signatures import strip_ansi
from threader.store import now

MAX_SAID = 2_000
LAST_WORDS = 600
"""Characters kept of a worker's words: of its result, and of an output without a result."""

Settle = Callable[[Failure | None, list[HistoryRecord], TaskResult | None], None]
"""Books the attempt's end: what failed, the records, and the result if there is a valid one."""


@dataclass(frozen=True)
class Workshop:
    """What every attempt of a run shares."""

    project: ThreadProject
    folder: Path
    adapter: Adapter
    site: WorkSite
    read_result: ResultReader

    def relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


@dataclass(frozen=True)
class _Papers:
    """The files of one attempt."""

    prompt: Path
    log: Path
    verify_log: Path
    staging: Path
    diff: Path


def worker_log(folder: Path, task_id: str, number: int) -> Path:
    """The log of an attempt's worker."""
    return folder / "logs" / f"{task_id}.worker.{number}.log"


def _papers(shop: Workshop, task_id: str, number: int) -> _Papers:
    papers = _Papers(
        prompt=shop.folder / "prompts" / f"{task_id}.{number}.md",
        log=worker_log(shop.folder, task_id, number),
        verify_log=shop.folder / "logs" / f"{task_id}.verify.{number}.log",
        staging=shop.folder / "staging" / f"{task_id}.{number}",
        diff=shop.folder / "diffs" / f"{task_id}.{number}.diff",
    )
    # An attempt that a crash cut off had the same number: its files must not be read.
    for path in (papers.log, papers.verify_log):
        path.unlink(missing_ok=True)
    remove_tree(papers.staging)
    papers.staging.mkdir()
    papers.log.touch()
    return papers


def assemble_prompt(project: ThreadProject, task: ManifestTask, state: TaskState) -> str:
    references = [*project.manifest.context_refs, *task.context_refs]
    contexts = {
        name: (project.root / name).read_text(errors="replace")
        for name in dict.fromkeys(references)
    }
    prompt = (project.root / task.prompt_ref).read_text(errors="replace")
    return worker_prompt(task.id, prompt, contexts, state.hints)


def _record(
    shop: Workshop, papers: _Papers, state: TaskState, task_id: str, artifact: ExecutionArtifact
) -> HistoryRecord:
    return HistoryRecord(
        task_id=task_id,
        phase="worker",
        attempt_number=state.runs,
        log_path=shop.relative(papers.log),
        exit_code=artifact.exit.exit_code,
        applied_patch_ids=state.applied_patch_ids,
        duration_sec=round(artifact.exit.duration_sec, 3),
        timestamp=now(),
        usage=shop.adapter.usage(artifact),
    )


def _no_prompt(
    shop: Workshop, papers: _Papers, state: TaskState, task_id: str, error: OSError
) -> tuple[Failure, list[HistoryRecord]]:
    """The prompt or a context file has gone since the manifest was checked."""
    name = Path(error.filename or "").name
    record = _blank_record(shop, papers, state, task_id, [f"cannot read {name}: {error.strerror}"])
    return Failure(FailureClass.MISSING_PATHS, f"cannot read {name}"), [record]


def _blank_record(
    shop: Workshop, papers: _Papers, state: TaskState, task_id: str, notes: list[str]
) -> HistoryRecord:
    """The record of an attempt in which no worker ran."""
    return HistoryRecord(
        task_id=task_id,
        phase="worker",
        attempt_number=state.runs,
        log_path=shop.relative(papers.log),
        timestamp=now(),
        notes=notes,
    )


def _landed(
    shop: Workshop, papers: _Papers, record: HistoryRecord, landing: Landing
) -> list[HistoryRecord]:
    """The completed record of the worker, and records of verification and rollback."""
    records = [record]
    record.notes += [*landing.notes, *(copy.text for copy in landing.backup_copies)]
    record.kept = landing.backup_copies
    record.files = landing.files
    record.stat = landing.stat
    record.commit = landing.commit
    if landing.diff:
        papers.diff.write_text(landing.diff)
        record.diff_path = shop.relative(papers.diff)
    if landing.verify_sec is not None:
        record.verify_log_path = shop.relative(papers.verify_log)
        records.append(
            HistoryRecord(
                task_id=record.task_id,
                phase="verify",
                attempt_number=record.attempt_number,
                log_path=record.verify_log_path,
                applied_patch_ids=record.applied_patch_ids,
                duration_sec=landing.verify_sec,
                timestamp=now(),
            )
        )
        if landing.rolled_back:
            undone = {"phase": "rollback", "duration_sec": None, "timestamp": now()}
            records.append(records[-1].model_copy(update=undone))
    return records


async def run_attempt(shop: Workshop, task: ManifestTask, state: TaskState, settle: Settle) -> None:
    """Run one attempt; `settle` is called exactly once, unless the attempt is cancelled."""
    papers = _papers(shop, task.id, state.runs)
    try:
        text = assemble_prompt(shop.project, task, state)
    except OSError as error:
        settle(*_no_prompt(shop, papers, state, task.id, error), None)
        return
    papers.prompt.write_text(text)
    try:
        await _work(shop, task, state, papers, settle)
    except SiteFailed as error:
        record = _blank_record(shop, papers, state, task.id, [str(error)])
        settle(Failure(FailureClass.TRANSIENT_INFRA, str(error)), [record], None)
    finally:
        await shop.site.release(task.id)
        remove_tree(papers.staging)


async def _work(
    shop: Workshop, task: ManifestTask, state: TaskState, papers: _Papers, settle: Settle
) -> None:
    cwd = await shop.site.prepare(task.id)
    ctx = RunContext(
        task_id=task.id,
        cwd=cwd,
        staging=papers.staging,
        prompt_path=papers.prompt,
        log_path=papers.log,
        timeout_sec=state.timeout_sec or task.timeout_sec,
        max_log_bytes=shop.project.manifest.policy.max_log_bytes,
        marker=str(shop.folder),
        environ=child_environment(shop.project.manifest),
        read_result=shop.read_result,
    )
    artifact = await shop.adapter.execute(shop.adapter.prepare(ctx), ctx)
    parsed = shop.adapter.extract_result(artifact, ctx)
    record = _record(shop, papers, state, task.id, artifact)
    record.notes += shop.site.inspect()
    failure = _classify(parsed, artifact, record, agent=shop.adapter.is_agent)
    if failure is not None or isinstance(parsed, ParserFailure):
        result = parsed.value if isinstance(parsed, ParsedContract) else None
        settle(failure, [record], result)
        return
    attempt_result = AttemptResult(
        task=task,
        key=f"{task.id}.{state.runs}",
        writes=parsed.value.writes,
        profile=shop.project.profile_of(task),
        staging=papers.staging,
        verify_log=papers.verify_log,
        summary=parsed.value.summary,
    )
    result = parsed.value
    await shop.site.land(
        attempt_result,
        lambda landing: settle(landing.failure, _landed(shop, papers, record, landing), result),
    )


def _classify(
    parsed: ParsedContract[TaskResult] | ParserFailure,
    artifact: ExecutionArtifact,
    record: HistoryRecord,
    *,
    agent: bool,
) -> Failure | None:
    ended = artifact.exit
    if isinstance(parsed, ParsedContract):
        result = parsed.value
        record.notes += parsed.warnings
        record.said = "\n".join([result.summary, *result.evidence.notes])[:MAX_SAID]
        return classify_execution(ended.ending, ended.exit_code, parsed, "")
    record.notes.append(f"{parsed.code}: {parsed.message}")
    end = tail(artifact.log_path)
    words = readable(end)
    trouble = find_trouble(end, crashed=bool(ended.exit_code), is_agent_cli=agent, now=time.time())
    if isinstance(trouble, Outage):
        record.outage = trouble.reason
        record.notes.append(f"the provider was unavailable: {trouble.reason}")
    elif trouble is not None:
        record.notes.append(trouble.reason)
    else:
        record.said = strip_ansi(words).strip()[-LAST_WORDS:] or None
    return classify_execution(ended.ending, ended.exit_code, parsed, words[-8_192:], trouble)
