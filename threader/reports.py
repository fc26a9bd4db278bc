"""What a CACP node should hear of a run, from its state alone. Pure.

Each report has a key, so that what was written to the outbox before is not written again, whatever
crash came between.
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

MAX_TEXT = 2_000
MAX_SUMMARY = 500
"""Characters, which leave a message's payload below its 4096 bytes."""
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s/'\"]+/)+")
"""Of an absolute path: who reads a mail is on another machine."""


@dataclass(frozen=True)
class Call:
    """One JSON-RPC call (CACP 2.0 "Implementation Methods", "Context Methods")."""

    key: str
    method: str
    params: dict[str, Any]


def _landed_files(task: TaskState) -> list[str]:
    return next((record.files for record in reversed(task.history) if record.files), [])


def _on_contract(
    node: NodeSpec, contract_id: str, definition: ManifestTask, task: TaskState
) -> Iterator[Call]:
    base = {"projectId": node.project_id, "contractId": contract_id}
    task_id = definition.id
    if task.runs:
        plan = f"Task {task_id}: {definition.prompt_ref}"
        yield Call(f"start:{task_id}", "cacp/implementation/start", {**base, "plan": plan})
    if task.status is TaskStatus.DONE:
        files = {"files": _landed_files(task)}
        key = f"{task_id}:{task.runs}"
        yield Call(f"complete:{key}", "cacp/implementation/complete", {**base, **files})
        notes = f"Verified by the profile {definition.verify_profile}."
        verdict = {"result": "success", "notes": notes}
        yield Call(f"verify:{key}", "cacp/implementation/verify", {**base, **verdict})


def _on_escalation(node: NodeSpec, definition: ManifestTask, task: TaskState) -> Iterator[Call]:
    key = f"{definition.id}:{task.runs}"
    reason = trouble(task)[:MAX_TEXT]
    content = {"task": definition.id, "status": "escalated", "reason": reason}
    related = [definition.contract_id] if definition.contract_id else []
    yield Call(
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


def _mail(
    node: NodeSpec, key: str, kind: str, topic: str, payload: dict[str, Any]
) -> Iterator[Call]:
    """A message to whom escalations go."""
    if not node.escalate_to:
        return
    payload = payload | {"summary": _FOLDERS.sub("…/", payload["summary"])[:MAX_SUMMARY]}
    yield Call(
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


def _on_end(node: NodeSpec, state: RunState) -> Iterator[Call]:
    """The end of a run; a resume that ran anything ends anew."""
    if state.run_status is RunStatus.RUNNING:
        return
    counts = Counter(str(task.status) for task in state.tasks.values())
    told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "no tasks"
    summary = f"Run {state.run_id} {state.run_status}: {told}"
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


def _on_stop(node: NodeSpec, state: RunState) -> Iterator[Call]:
    """A run that stopped in its midst, but by a signal: who sent that knows."""
    cause = why_stopped(state)
    if cause is None or cause == BY_SIGNAL:
        return
    payload = {
        "summary": f"Run {state.run_id} stopped: {cause}",
        "blocked_on": f"what run {state.run_id} needs to go on",
    }
    # A resume that is refused alike, before anything was tried, is no news.
    attempts = sum(task.runs for task in state.tasks.values())
    key = f"stopped:{attempts}:{hashlib.sha256(cause.encode()).hexdigest()[:8]}"
    yield from _mail(node, key, "status.blocked", f"run {state.run_id} stopped", payload)


def paused_calls(node: NodeSpec, state: RunState, reason: str) -> Iterator[Call]:
    """A run that waits for its provider, once for each pause that grew long."""
    done = sum(task.status is TaskStatus.DONE for task in state.tasks.values())
    payload = {
        "summary": f"Run {state.run_id} waits: {reason}",
        "blocked_on": "the provider of its workers",
        "details": {"done": done, "tasks": len(state.tasks)},
    }
    # Nothing is done while a run waits: the key tells one long pause from the next.
    topic = f"run {state.run_id} waits for its provider"
    yield from _mail(node, f"paused:{done}", "status.blocked", topic, payload)


def task_calls(node: NodeSpec, definition: ManifestTask, task: TaskState) -> Iterator[Call]:
    """All that is to be told of one task as it stands."""
    if definition.contract_id:
        yield from _on_contract(node, definition.contract_id, definition, task)
    if task.status is TaskStatus.ESCALATED:
        yield from _on_escalation(node, definition, task)


def rule_calls(node: NodeSpec, state: RunState) -> Iterator[Call]:
    """Learned rules, shared as decisions for others to read; nobody need follow them."""
    for number, rule in enumerate(state.learned_rules):
        content = {
            "decision": rule.rule[:MAX_TEXT],
            "source": f"heal round {rule.round_number} of run {state.run_id}",
            "canonical": False,
        }
        params = {"projectId": node.project_id, "type": "decision", "content": content}
        yield Call(f"rule:{number}", "cacp/context/share", params)


def all_calls(manifest: Manifest, state: RunState) -> Iterator[Call]:
    """All that is to be told of a run as it stands; nothing without a node."""
    if manifest.node is None:
        return
    for definition in manifest.tasks:
        yield from task_calls(manifest.node, definition, state.tasks[definition.id])
    yield from rule_calls(manifest.node, state)
    yield from _on_end(manifest.node, state)
    yield from _on_stop(manifest.node, state)
