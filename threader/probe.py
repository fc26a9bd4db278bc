"""Asks each CLI of a manifest for one contract, to find problems before a long run.

Worker and healer are invoked as in a run, but in a scratch folder, and their answers are not
applied.
"""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from schemas.manifest import AdapterSpec
from schemas.run_state import Spent, Usage
from schemas.task_result import ResultStatus
from threader.adapters import make_adapter
from threader.adapters.base import (
    HEALER,
    Adapter,
    ExecutionArtifact,
    ResultReader,
    RunContext,
    child_environment,
)
from threader.adapters.streams import readable
from threader.budget import add, spent_text
from threader.doctor import DoctorFinding
from threader.files import remove_tree, tail
from threader.load import ThreadProject
from threader.outage import Outage, find_trouble
from threader.outcome import Ending
from threader.parsing import ParserFailure, parse_result
from threader.process import kill_leftovers
from threader.prompt import FailedTask, healer_prompt, worker_prompt
from threader.report import duration_text
from threader.signatures import one_line

TASK = "probe"
LAST_WORDS = 300
MAX_LOG = 16 * 1024 * 1024

_WORKER = """\
This only tries whether you can be reached. Read nothing, run nothing and change nothing. Answer at
once with a result whose status is DONE, whose summary is "ready", and which has no writes.
"""
_HEALER = """\
This only tries whether you can be reached: no task has failed. Read nothing and run nothing. Answer
at once with the decision NOT_FIXABLE, the root cause "ready", and no patches.
"""


def _prompt(name: str) -> str:
    if name != "healer":
        return worker_prompt(TASK, _WORKER, {}, [])
    failed = FailedTask(TASK, "prompt_gap", "prompt_gap:probe", "probe.md", _HEALER, _HEALER)
    return healer_prompt([failed], {}, {}, len(_HEALER))


def anchored(spec: AdapterSpec, workspace: Path) -> AdapterSpec:
    """`spec` with absolute paths for the files of the workspace that its command names."""

    def absolute(words: Sequence[str], first: int) -> list[str]:
        return [
            str((workspace / word).resolve())
            if (index >= first or "/" in word) and (workspace / word).is_file()
            else word
            for index, word in enumerate(words)
        ]

    return spec.model_copy(
        update={"command": absolute(spec.command, 1), "args": absolute(spec.args, 0)}
    )


def _context(
    project: ThreadProject, name: str, scratch: Path, limit: float, read: ResultReader
) -> RunContext:
    cwd = scratch / name
    cwd.mkdir()
    if shutil.which("git"):
        # Some CLIs work only in a git repository.
        subprocess.run(["git", "init", "--quiet", str(cwd)], check=False, capture_output=True)
    for file in ("prompt.md", "log"):
        (scratch / f"{name}.{file}").write_text(_prompt(name) if file == "prompt.md" else "")
    (scratch / f"{name}.staging").mkdir()
    return RunContext(
        task_id=HEALER if name == "healer" else TASK,
        cwd=cwd,
        staging=scratch / f"{name}.staging",
        prompt_path=scratch / f"{name}.prompt.md",
        log_path=scratch / f"{name}.log",
        timeout_sec=limit,
        max_log_bytes=MAX_LOG,
        marker=str(scratch),
        environ=child_environment(project.manifest),
        read_result=read,
    )


def _last_words(log: Path) -> str:
    words = one_line(readable(tail(log)))
    return f"the end of its output: {words[-LAST_WORDS:]}" if words else "it wrote nothing"


def _ended(artifact: ExecutionArtifact, limit: float) -> str:
    """How it ended, as the beginning of a sentence; empty for exit code 0."""
    ended = artifact.exit
    if ended.ending is Ending.EXITED:
        return f"exit code {ended.exit_code}; " if ended.exit_code else ""
    return {
        Ending.TIMED_OUT: f"it was stopped after {limit:g} s; ",
        Ending.IDLE: "it fell silent and was stopped; ",
        Ending.LOG_TOO_LARGE: "it wrote too much and was stopped; ",
        Ending.NOT_STARTED: "it could not be started; ",
    }[ended.ending]


def _no_contract(
    adapter: Adapter, artifact: ExecutionArtifact, failure: ParserFailure, limit: float
) -> str:
    """Why there is no contract."""
    end = tail(artifact.log_path)
    crashed = bool(artifact.exit.exit_code)
    trouble = find_trouble(end, crashed=crashed, is_agent_cli=adapter.is_agent, now=time.time())
    how = _ended(artifact, limit)
    if artifact.exit.ending is Ending.NOT_STARTED:
        return f"{how}{_last_words(artifact.log_path)}"
    if isinstance(trouble, Outage):
        return f"{how}its provider was unavailable, {trouble.reason}"
    if trouble is not None:
        return f"{how}{trouble.reason}"
    return f"{how}{failure.code}: {failure.message}; {_last_words(artifact.log_path)}"


def _answered(seconds: float, usage: Usage | None, text: str) -> str:
    used = spent_text(add(Spent(), usage, completed=True))
    text = one_line(text)[:200]
    return f"answered with a valid contract in {duration_text(seconds)}: {text} ({used})"


async def _probe(
    project: ThreadProject,
    name: str,
    spec: AdapterSpec,
    scratch: Path,
    limit: float,
    read: ResultReader,
) -> DoctorFinding:
    adapter = make_adapter(anchored(spec, project.workspace))
    ctx = _context(project, name, scratch, limit, read)
    artifact = await adapter.execute(adapter.prepare(ctx), ctx)
    who = f"{name}: {adapter.id}"
    if name == "healer":
        decision = adapter.extract_decision(artifact)
        if isinstance(decision, ParserFailure):
            return DoctorFinding(
                False, f"{who}: {_no_contract(adapter, artifact, decision, limit)}"
            )
        answer, ok = f"{decision.value.decision}, {decision.value.root_cause}", True
    else:
        result = adapter.extract_result(artifact, ctx)
        if isinstance(result, ParserFailure):
            return DoctorFinding(False, f"{who}: {_no_contract(adapter, artifact, result, limit)}")
        answer = f"{result.value.status}, {result.value.summary}"
        ok = result.value.status is ResultStatus.DONE
    used = adapter.usage(artifact)
    return DoctorFinding(ok, f"{who} {_answered(artifact.exit.duration_sec, used, answer)}")


async def _probe_each(
    project: ThreadProject, scratch: Path, limit: float, read: ResultReader
) -> list[DoctorFinding]:
    specs = {"worker": project.manifest.worker, "healer": project.manifest.healer}
    return await asyncio.gather(
        *(
            _probe(project, name, spec, scratch, limit, read)
            for name, spec in specs.items()
            if spec is not None
        )
    )


def probe_all(
    project: ThreadProject, limit: float, read_result: ResultReader = parse_result
) -> list[DoctorFinding]:
    """A finding for worker and healer each; each has `limit` seconds to answer."""
    scratch = Path(tempfile.mkdtemp(prefix="cacp-probe-"))
    try:
        return asyncio.run(_probe_each(project, scratch, limit, read_result))
    finally:
        kill_leftovers(str(scratch))
        remove_tree(scratch)
