"""Checks whether a manifest can be run on this machine, without changing anything or asking a
model."""

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
from threader.load import ThreadProject
from threader.outbox import outbox_summary, refusal_text
from threader.preflight import check_budget
from threader.reports import NodeCall


@dataclass(frozen=True)
class DoctorFinding:
    ok: bool
    text: str


def _adapter(name: str, spec: AdapterSpec | None, cwd: Path) -> Iterator[DoctorFinding]:
    if spec is None:
        need = name == "worker"
        yield DoctorFinding(
            not need, f"{name}: none" + ("; the manifest must name one" if need else "")
        )
        return
    health = make_adapter(spec).healthcheck(os.environ, cwd)
    for detail in health.details:
        yield DoctorFinding(health.ready, f"{name}: {detail}")


def _budget(project: ThreadProject) -> Iterator[DoctorFinding]:
    budget = project.manifest.policy.budget
    if budget == Budget():
        return
    specs = (project.manifest.worker, project.manifest.healer)
    try:
        check_budget(budget, [make_adapter(spec) if spec else None for spec in specs])
    except NotReady as error:
        yield DoctorFinding(False, str(error))
    else:
        yield DoctorFinding(True, f"policy.budget: {budget_text(budget)}")


def _git(project: ThreadProject) -> Iterator[DoctorFinding]:
    if project.manifest.isolation != "worktree":
        return
    if shutil.which("git") is None:
        yield DoctorFinding(False, "isolation worktree: git is not on PATH")
        return
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=no"],
        cwd=project.workspace, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if status.returncode:
        yield DoctorFinding(False, "isolation worktree: the workspace is not a git tree")
    elif status.stdout:
        yield DoctorFinding(False, "isolation worktree: the workspace has uncommitted changes")
    else:
        yield DoctorFinding(True, "isolation worktree: the workspace is a clean git tree")


def _node(project: ThreadProject) -> Iterator[DoctorFinding]:
    spec = project.manifest.node
    if spec is None:
        return
    known = bool(os.environ.get(spec.key_env))
    yield DoctorFinding(known, f"node: {spec.key_env} is {'set' if known else 'not set'}")
    problem = asyncio.run(_ask_node(spec))
    yield DoctorFinding(problem is None, f"node: {problem or 'it answers and accepts the key'}")
    summary = outbox_summary(project.state_dir)
    yield from (
        DoctorFinding(False, f"node: {text}") for text in (summary or {}).get("problems", ())
    )


async def _ask_node(spec: NodeSpec) -> str | None:
    """Why the node would not accept reports, or None. Only reads."""
    import httpx

    from threader.node import HttpNode, ServerUnreachable

    call = NodeCall("doctor", "cacp/context/list", {"projectId": spec.project_id})
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        try:
            answer = await HttpNode(spec, client).call(call, "doctor")
        except ServerUnreachable as error:
            return f"it cannot be reached: {error}"
    refusal = answer.get("error")
    return refusal_text(refusal) if refusal is not None else None


def examine(project: ThreadProject) -> list[DoctorFinding]:
    """All findings. The run can start when each is ok."""
    findings = [
        DoctorFinding(True, f"manifest: {len(project.manifest.tasks)} tasks, all files found")
    ]
    writable = os.access(project.root, os.W_OK) and os.access(project.workspace, os.W_OK)
    findings.append(DoctorFinding(writable, "workspace and state folder can be written"))
    findings += _adapter("worker", project.manifest.worker, project.workspace)
    findings += _adapter("healer", project.manifest.healer, project.workspace)
    findings += _budget(project)
    findings += _git(project)
    findings += _node(project)
    return findings
