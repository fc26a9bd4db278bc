"""Whether a manifest can be run on this machine; nothing is changed and no model is asked."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.manifest import AdapterSpec
from threader.adapters import make_adapter
from threader.load import Project


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
    if spec is not None:
        known = bool(os.environ.get(spec.key_env))
        yield Finding(known, f"node: {spec.key_env} is {'set' if known else 'not set'}")


def examine(project: Project) -> list[Finding]:
    """All findings; the run can start when each is ok."""
    findings = [Finding(True, f"manifest: {len(project.manifest.tasks)} tasks, all files found")]
    writable = os.access(project.root, os.W_OK) and os.access(project.workspace, os.W_OK)
    findings.append(Finding(writable, "workspace and state folder can be written"))
    findings += _adapter("worker", project.manifest.worker, project.workspace)
    findings += _adapter("healer", project.manifest.healer, project.workspace)
    findings += _git(project)
    findings += _node(project)
    return findings
