"""Whether a manifest can be run on this machine; nothing is changed and no model is asked."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.manifest import AdapterSpec, Budget, NodeSpec
from threader.adapters import make_adapter
from threader.budget import budget_text
from threader.errors import NotReady
from threader.load import Project
from threader.outbox import outbox_summary, said
from threader.reports import Call
from threader.run import check_budget


@dataclass(frozen=True)
class Finding:
    ok: bool
    text: str


def _adapter(name: str, spec: AdapterSpec | None, cwd: Path) -> Iterator[Finding]:
    if spec is None:
        need = name == "worker"
        yield Finding(not need, f"{name}: none" + ("; the manifest must name one" if need else ""))
        return
    health = make_adapter(spec).healthcheck(os.environ, cwd)
    for detail in health.details:
        yield Finding(health.ready, f"{name}: {detail}")


def _budget(project: Project) -> Iterator[Finding]:
    budget = project.manifest.policy.budget
    if budget == Budget():
        return
    specs = (project.manifest.worker, project.manifest.healer)
    try:
        check_budget(budget, [make_adapter(spec) if spec else None for spec in specs])
    except NotReady as error:
        yield Finding(False, str(error))
    else:
        yield Finding(True, f"policy.budget: {budget_text(budget)}")


def _git(project: Project) -> Iterator[Finding]:
    if project.manifest.isolation != "worktree":
        return
    if shutil.which("git") is None:
        yield Finding(False, "isolation worktree: there is no git")
        return
    told = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        cwd=project.workspace, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode:
        yield Finding(False, "isolation worktree: the workspace is no git tree")
    elif told.stdout:
        yield Finding(False, "isolation worktree: the workspace has uncommitted changes")
    else:
        yield Finding(True, "isolation worktree: the workspace is a clean git tree")


def _node(project: Project) -> Iterator[Finding]:
    spec = project.manifest.node
    if spec is None:
        return
    known = bool(os.environ.get(spec.key_env))
    yield Finding(known, f"node: {spec.key_env} is {'set' if known else 'not set'}")
    problem = asyncio.run(_ask_node(spec))
    yield Finding(problem is None, f"node: {problem or 'it answers, and takes the key'}")
    summary = outbox_summary(project.state_dir)
    yield from (Finding(False, f"node: {text}") for text in (summary or {}).get("problems", ()))


async def _ask_node(spec: NodeSpec) -> str | None:
    """What keeps a report from the node; None when nothing does. Only reads."""
    import httpx

    from threader.node import HttpNode, Unreachable

    call = Call("doctor", "cacp/context/list", {"projectId": spec.project_id})
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        try:
            answer = await HttpNode(spec, client).call(call, "doctor")
        except Unreachable as error:
            return f"it cannot be told anything: {error}"
    refusal = answer.get("error")
    return said(refusal) if refusal is not None else None


def examine(project: Project) -> list[Finding]:
    """All findings; the run can start when each is ok."""
    findings = [Finding(True, f"manifest: {len(project.manifest.tasks)} tasks, all files found")]
    writable = os.access(project.root, os.W_OK) and os.access(project.workspace, os.W_OK)
    findings.append(Finding(writable, "workspace and state folder can be written"))
    findings += _adapter("worker", project.manifest.worker, project.workspace)
    findings += _adapter("healer", project.manifest.healer, project.workspace)
    findings += _budget(project)
    findings += _git(project)
    findings += _node(project)
    return findings
