"""Derives the reports for a CACP node from the state of a run. Pure.

Each report has a key, so that after a crash the same report is not written to the outbox twice.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas.manifest import Manifest, ManifestTask, NodeSpec
from schemas.run_state import RunState, RunStatus, TaskState, TaskStatus
from threader.interruptions import BY_SIGNAL, why_stopped
from threader.outcome import trouble

COMPLETE = "cacp/implementation/complete"
MAX_TEXT = 2_000
MAX_SUMMARY = 500
"""Characters; keeps a message's payload below its limit of 4096 bytes."""
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+")
"""The folders of an absolute path, which mean nothing on the recipient's machine."""


@dataclass(frozen=True)
class NodeCall:
    """One JSON-RPC call (CACP 2.0 "Implementation Methods", "Context Methods")."""

    key: str
    method: str
    params: dict[str, Any]


def _landed_files(task: TaskState) -> list[str]:
    return next((record.files for record in reversed(task.history) if record.files), [])


def landed_commit(task: TaskState) -> str | None:
    """The commit that holds the writes of a task that is DONE, with `isolation: worktree`."""
    if task.status is not TaskStatus.DONE:
        return None
    return next((record.commit for record in reversed(task.history) if record.commit), None)


def _on_contract(
    node: NodeSpec, contract_id: str, definition: ManifestTask, task: TaskState
) -> Iterator[NodeCall]:
    base = {"projectId": node.project_id, "contractId": contract_id}
    task_id = definition.id
    if task.runs:
        plan = f"Task {task_id}: {definition.prompt_ref}"
        yield NodeCall(f"start:{task_id}", "cacp/implementation/start", {**base, "plan": plan})
    if task.status is TaskStatus.DONE:
        landed: dict[str, Any] = {"files": _landed_files(task)}
        if commit := landed_commit(task):
            landed["commit"] = commit
        key = f"{task_id}:{task.runs}"
        yield NodeCall(f"complete:{key}", COMPLETE, {**base, **landed})
        notes = f"Verified by the profile {definition.verify_profile}."
        verdict = {"result": "success", "notes": notes}
        yield NodeCall(f"verify:{key}", "cacp/implementation/verify", {**base, **verdict})


def _on_escalation(node: NodeSpec, definition: ManifestTask, task: TaskState) -> Iterator[NodeCall]:
    key = f"{definition.id}:{task.runs}"
    reason = trouble(task)[:MAX_TEXT]
    content = {"task": definition.id, "status": "escalated", "reason": reason}
    related = [definition.contract_id] if definition.contract_id else []
    yield NodeCall(
        f"escalated:{key}",
        "cacp/context/share",
        {
            "projectId": node.project_id,
            "type": "implementation_status",
            "content": content,
            "relatedContracts": related,
        },
    )
    blocked = {
        "summary": f"Task {definition.id} is escalated: {reason}",
        "blocked_on": f"a decision on task {definition.id}",
        "details": {"task": definition.id, "status": "escalated"},
    }
    topic = f"task {definition.id} escalated"
    yield from _mail(node, f"alert:{key}", "status.blocked", topic, blocked)


def without_folders(text: str) -> str:
    """The text with the folders of absolute paths left out."""
    return _FOLDERS.sub("…/", text)


def _mail(
    node: NodeSpec, key: str, kind: str, topic: str, payload: dict[str, Any]
) -> Iterator[NodeCall]:
    """A message to the recipient of escalations, if there is one."""
    if not node.escalate_to:
        return
    payload = payload | {"summary": without_folders(payload["summary"])[:MAX_SUMMARY]}
    yield NodeCall(
        key,
        "acp/send",
        {
            "to": [node.escalate_to],
            "type": kind,
            "topic": topic,
            "priority": "normal" if kind == "status.complete" else "high",
            "payload": payload,
            "policy": {"visibility": "private", "sensitivity": "low", "human_gate": "none"},
        },
    )


def _on_end(node: NodeSpec, state: RunState) -> Iterator[NodeCall]:
    """Mail on the end of a run. A resume with further attempts is another end."""
    if state.run_status is RunStatus.RUNNING:
        return
    counts = Counter(str(task.status) for task in state.tasks.values())
    statuses = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no tasks"
    summary = f"Run {state.run_id} {state.run_status}: {statuses}"
    if state.abort_reason:
        summary += f". {state.abort_reason}"
    payload: dict[str, Any] = {"summary": summary, "details": {"tasks": counts}}
    clean = all(task.status is TaskStatus.DONE for task in state.tasks.values())
    if not clean:
        payload["blocked_on"] = f"a decision on run {state.run_id}"
    key = f"end:{state.run_status}:{sum(task.runs for task in state.tasks.values())}"
    kind = "status.complete" if clean else "status.blocked"
    topic = f"run {state.run_id} {state.run_status.lower()}"
    yield from _mail(node, key, kind, topic, payload)


def _on_stop(node: NodeSpec, state: RunState) -> Iterator[NodeCall]:
    """Mail on a run that stopped before its end, unless by a signal: its sender knows."""
    cause = why_stopped(state)
    if cause is None or cause == BY_SIGNAL:
        return
    payload = {
        "summary": f"Run {state.run_id} stopped: {cause}",
        "blocked_on": f"what run {state.run_id} needs to continue",
    }
    # A resume that stops for the same cause before any attempt gets the same key.
    attempts = sum(task.runs for task in state.tasks.values())
    key = f"stopped:{attempts}:{hashlib.sha256(cause.encode()).hexdigest()[:8]}"
    yield from _mail(node, key, "status.blocked", f"run {state.run_id} stopped", payload)


def paused_calls(node: NodeSpec, state: RunState, reason: str) -> Iterator[NodeCall]:
    """Mail on a run that waits for its provider, once for each long pause."""
    done = sum(task.status is TaskStatus.DONE for task in state.tasks.values())
    payload = {
        "summary": f"Run {state.run_id} waits: {reason}",
        "blocked_on": "the provider of its workers",
        "details": {"done": done, "tasks": len(state.tasks)},
    }
    # No task ends while a run waits, so this number is different for each long pause.
    topic = f"run {state.run_id} waits for its provider"
    yield from _mail(node, f"paused:{done}", "status.blocked", topic, payload)


def task_calls(node: NodeSpec, definition: ManifestTask, task: TaskState) -> Iterator[NodeCall]:
    """The reports on one task in its current state."""
    if definition.contract_id:
        yield from _on_contract(node, definition.contract_id, definition, task)
    if task.status is TaskStatus.ESCALATED:
        yield from _on_escalation(node, definition, task)


def rule_calls(node: NodeSpec, state: RunState) -> Iterator[NodeCall]:
    """Learned rules, shared as decisions that are not canonical."""
    for number, rule in enumerate(state.learned_rules):
        content = {
            "decision": rule.rule[:MAX_TEXT],
            "source": f"heal round {rule.round_number} of run {state.run_id}",
            "canonical": False,
        }
        params = {"projectId": node.project_id, "type": "decision", "content": content}
        yield NodeCall(f"rule:{number}", "cacp/context/share", params)


def all_calls(manifest: Manifest, state: RunState) -> Iterator[NodeCall]:
    """The reports on a run in its current state; none without a node."""
    if manifest.node is None:
        return
    for definition in manifest.tasks:
        yield from task_calls(manifest.node, definition, state.tasks[definition.id])
    yield from rule_calls(manifest.node, state)
    yield from _on_end(manifest.node, state)
    yield from _on_stop(manifest.node, state)
