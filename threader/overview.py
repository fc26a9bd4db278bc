"""Answers about a run: its status, its logs, and what its terms mean."""

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from schemas.manifest import Budget
from schemas.run_state import Interruption, RunState, RunStatus, Spent, TaskStatus
from threader.adapters.base import HEALER
from threader.budget import budget_of, budget_text, spent_in, spent_text
from threader.errors import NoSuchRun, ThreaderError
from threader.load import ThreadProject
from threader.needs import all_kept, held_back, needs, place_of
from threader.parsing import EXPLANATIONS
from threader.report import span_text
from threader.signatures import one_line

_CLASSES = {
    "prompt_gap": "The prompt lacks something that the worker must know. The healer may add it.",
    "missing_paths": "The worker lacks the path of something it needs.",
    "weak_contract": "The prompt does not make the worker follow its contract.",
    "contract_error": "The output is not a valid contract. The first time costs no attempt.",
    "output_format": "The output is unusable otherwise, such as a log beyond its limit.",
    "timeout": "The worker ran out of time or fell silent; its process group was killed.",
    "transient_infra": "The CLI crashed. During an outage of its provider the run waits instead.",
    "blocked_external": "Something outside the repository is missing. Not healable.",
    "real_bug": "The product is at fault, not the prompt. Not healable.",
    "build_error": "A build or lint step failed after the writes, which were rolled back.",
    "test_error": "A test step failed after the writes, which were rolled back.",
    "smoke_error": "A smoke step failed after build and tests had passed.",
    "write_rejected": "A write broke a safeguard (path, denylist, shrinkage, precondition).",
    "prompt_too_large": "The provider refuses the prompt for its size. Shorten it, or its context.",
    "merge_conflict": "The task's branch conflicts with changes of other tasks.",
}

_STATUSES = {
    "PENDING": "Waits for its window or its dependencies.",
    "RUNNING": "An attempt is under way.",
    "DONE": "Verified by the runner, and kept.",
    "BLOCKED": "The worker reports an obstacle outside its control.",
    "FAILED": "The last attempt failed, and no retry is due now.",
    "ESCALATED": "Given up; only `resume --retry TASK` or `--retry-failed` runs it again.",
    "COMPLETED": "Every task has ended; not all need be DONE.",
    "ABORTED": "The run could not continue, or healing did not converge; abort_reason says why.",
}

MAX_NAMES = 20
MAX_SHOWN = 10
MAX_NEEDS = 50
PHASES = ("worker", "verify", "healer", "rollback")


def explanations() -> dict[str, str]:
    """The meaning of every parser code, failure class and status."""
    return {**EXPLANATIONS, **_CLASSES, **_STATUSES}


def overview(
    project: ThreadProject,
    state: RunState,
    reports: dict[str, Any] | None = None,
    runner: str | None = None,
) -> dict[str, Any]:
    """A run's figures and problems, ready for JSON.

    `reports`: the summary of its outbox; `runner`: the process that runs it now.
    """
    manifest = project.manifest
    wanted = needs(manifest, state, place_of(project), runner=runner, reports=reports)
    spent = spent_in(state)
    budget = budget_of(state, manifest.policy.budget)
    open_ones = [item for item in state.interruptions if item.ended is None]
    waits = open_ones[-1] if runner and open_ones else None
    return {
        "run_id": state.run_id,
        "run_status": str(state.run_status),
        "abort_reason": state.abort_reason,
        "tasks": dict(Counter(str(task.status) for task in state.tasks.values())),
        "window": state.window.number if state.window else None,
        "batch_size": state.policy.current_batch_size,
        "heal_rounds": len(state.healing_rounds),
        "healer_failures": [failure.note for failure in state.healer_failures],
        "runner": runner,
        "running": [key for key, task in state.tasks.items() if task.status is TaskStatus.RUNNING],
        "paused": {"since": waits.began, "reason": waits.cause} if waits else None,
        "interruptions": [item.model_dump(mode="json") for item in state.interruptions],
        "held_back": held_back(manifest, state),
        "kept": [copy.model_dump() for copy in all_kept(state)],
        "spent": {
            **_without_unknown(spent),
            "budget": budget.model_dump(exclude_none=True) or None,
        },
        "node": reports,
        "troubled": {
            item.task: {
                "status": item.status,
                "signature": state.tasks[item.task].last_failure_signature,
                "reason": state.tasks[item.task].escalation_reason,
                "said": item.said,
            }
            for item in wanted
            if item.task is not None
        },
        "needs": [dataclasses.asdict(item) for item in wanted],
        "updated_at": state.updated_at,
    }


def _without_unknown(spent: Spent) -> dict[str, Any]:
    """`spent`, with None for what no log reports."""
    facts: dict[str, Any] = spent.model_dump()
    if not spent.tokens_told:
        facts |= dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens"))
    if not spent.cost_told:
        facts["cost_usd"] = None
    return facts


def _some(names: Sequence[str]) -> str:
    """The first names, separated by commas, and how many more there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def overview_lines(facts: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{count} {name}" for name, count in facts["tasks"].items())
    lines = [
        f"{facts['run_id']}: {facts['run_status']} ({counts or 'no tasks'})",
        f"window {facts['window'] or 'none'}, size {facts['batch_size']}, "
        f"{facts['heal_rounds']} heal rounds, last change {facts['updated_at']}",
    ]
    lines += _spent_lines(facts["spent"])
    if facts["run_status"] == RunStatus.RUNNING and facts["runner"] is None:
        lines.append(
            "no process runs it: it was stopped or killed; `cacp thread resume` continues it"
        )
    elif facts["running"]:
        lines.append("running: " + _some(facts["running"]))
    if facts["abort_reason"]:
        lines.append(f"stopped: {one_line(facts['abort_reason'])}")
    if facts["paused"]:
        lines.append(f"paused since {facts['paused']['since']}: {facts['paused']['reason']}")
    lines += _interruption_lines(facts["interruptions"])
    if failures := facts["healer_failures"]:
        lines.append(f"the healer gave {len(failures)} invalid answers, the last: {failures[-1]}")
    if held := facts["held_back"]:
        roots = _some(list(dict.fromkeys(root for blockers in held.values() for root in blockers)))
        lines.append(f"held back by {roots}: {_some(list(held))}")
    if facts["needs"]:
        lines += ["", "needs a person:"]
    for item in facts["needs"][:MAX_NEEDS]:
        lines += _need_lines(item)
    if (more := len(facts["needs"]) - MAX_NEEDS) > 0:
        lines.append(f"  and {more} more; `cacp thread status --json` lists all")
    return lines


def _spent_lines(spent: dict[str, Any]) -> list[str]:
    if not spent["invocations"]:
        return []
    used = Spent.model_validate({name: spent[name] or 0 for name in Spent.model_fields})
    text = f"used: {spent_text(used)}"
    if spent["budget"]:
        text += f"; budget {budget_text(Budget(**spent['budget']))}"
    return [text]


def _interruption_lines(items: list[dict[str, Any]]) -> list[str]:
    """The latest interruptions that are over; the open one is shown as the pause."""
    past = [Interruption.model_validate(item) for item in items if item["ended"]]
    lines = [f"interrupted {len(past)} times; the latest:"] if len(past) > MAX_SHOWN else []
    return lines + [
        f"interrupted {span_text(item)}: {item.kind}, {one_line(item.cause)}"
        for item in past[-MAX_SHOWN:]
    ]


def _need_lines(item: dict[str, Any]) -> list[str]:
    name = f"{item['task']} {item['status']}: " if item["task"] else ""
    lines = [f"  {name}{one_line(item['text'])}"]
    if item["said"]:
        lines.append(f"    its worker said: {one_line(item['said'])[:300]}")
    if item["holds"]:
        lines.append(f"    holds back {_some(item['holds'])}")
    return lines + [f"    $ {command}" for command in item["commands"]]


def find_logs(folder: Path, task: str | None, phase: str | None) -> list[Path]:
    """The run's logs, oldest first. Rollbacks are in the verify log. Raises NoSuchRun."""
    if not (folder / "logs").is_dir():
        raise NoSuchRun("this manifest has not been run yet")
    if phase not in (None, *PHASES):
        raise ThreaderError(f"--phase: {phase} should be one of {', '.join(PHASES)}")
    wanted = "verify" if phase == "rollback" else phase
    logs = []
    for path in (folder / "logs").glob("*.log"):
        parts = path.name.removesuffix(".log").split(".")
        name, kind = ("", "healer") if parts[0] == HEALER else (".".join(parts[:-2]), parts[-2])
        if (task is None or name == task) and (wanted is None or kind == wanted):
            logs.append(path)
    return sorted(logs, key=lambda path: (path.stat().st_mtime_ns, path.name))


def follow_logs(
    folder: Path, task: str | None, phase: str | None, out: TextIO, *, rounds: int | None = None
) -> None:
    """Print additions to the logs, until interrupted or for `rounds` polls."""
    sizes = {path: path.stat().st_size for path in find_logs(folder, task, phase)}
    last: Path | None = None
    while rounds is None or rounds > 0:
        for path in find_logs(folder, task, phase):
            with path.open("rb") as file:
                file.seek(sizes.get(path, 0))
                data = file.read()
            sizes[path] = sizes.get(path, 0) + len(data)
            if data:
                head = "" if path == last else f"==> {path.name} <==\n"
                out.write(head + data.decode("utf-8", "replace"))
                out.flush()
                last = path
        time.sleep(0.2)
        rounds = None if rounds is None else rounds - 1
