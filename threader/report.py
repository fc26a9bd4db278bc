"""The morning's report: one self-contained HTML page, and the same in Markdown."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from schemas.manifest import Manifest
from schemas.run_state import HistoryRecord, RunState, TaskState, TaskStatus

MAX_ROWS = 150
MAX_DETAILS = 400
MAX_DIFF = 60_000
_ORDER = ("ESCALATED", "FAILED", "BLOCKED", "RUNNING", "PENDING", "DONE")


@dataclass(frozen=True)
class Bar:
    """One attempt or heal on the timeline; times in seconds from the run's start."""

    start: float
    length: float
    kind: str
    title: str


@dataclass
class Row:
    task_id: str
    status: str
    bars: list[Bar] = field(default_factory=list)


@dataclass
class Attempt:
    """A history record as the page shows it."""

    record: HistoryRecord
    diff: str = ""


@dataclass
class TaskView:
    task_id: str
    state: TaskState
    attempts: list[Attempt]
    needs_person: bool

    @property
    def caption(self) -> str:
        """Why it is not done, else what its worker said."""
        trouble = self.state.escalation_reason or self.state.last_failure_signature
        said = [a.record.notes[-1] for a in self.attempts if a.record.notes]
        return trouble or (said[-1] if said else "")


def _seconds(moment: str, start: datetime) -> float:
    return (datetime.fromisoformat(moment) - start).total_seconds()


def _row(task_id: str, task: TaskState, start: datetime) -> Row:
    row = Row(task_id, task.status)
    for record in task.history:
        if record.duration_sec is None:
            continue
        length = record.duration_sec
        begin = max(0.0, _seconds(record.timestamp, start) - length)
        worker = "bad" if record.failure_class else "good"
        kind = {"healer": "heal", "verify": "check"}.get(record.phase, worker)
        said = record.failure_signature if kind == "bad" else record.phase
        row.bars.append(Bar(begin, length, kind, f"{task_id} #{record.attempt_number}: {said}"))
    return row


def _diff(folder: Path, path: str | None) -> str:
    if path is None or not (folder / path).is_file():
        return ""
    return (folder / path).read_text(errors="replace")[:MAX_DIFF]


def _task_view(task_id: str, task: TaskState, folder: Path) -> TaskView:
    attempts = [Attempt(record, _diff(folder, record.diff_path)) for record in task.history]
    wants = task.status in (TaskStatus.ESCALATED, TaskStatus.FAILED, TaskStatus.BLOCKED)
    return TaskView(task_id, task, attempts, wants)


def duration_text(seconds: float) -> str:
    """`42 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def report_data(manifest: Manifest, state: RunState, folder: Path) -> dict[str, Any]:
    """All the page shows. Troubled tasks come first; long runs are cut, and say so."""
    start = datetime.fromisoformat(state.started_at)
    end = max(_seconds(state.updated_at, start), 0.001)
    counts = Counter(str(task.status) for task in state.tasks.values())

    def weight(item: tuple[str, TaskState]) -> tuple[int, int]:
        return _ORDER.index(item[1].status), -len(item[1].history)

    ranked = sorted(state.tasks.items(), key=weight)
    interesting = {task_id for task_id, _ in ranked[:MAX_ROWS]}
    rows = [_row(key, task, start) for key, task in state.tasks.items() if key in interesting]
    signatures = Counter(
        record.failure_signature
        for task in state.tasks.values()
        for record in task.history
        if record.phase == "worker" and record.failure_signature
    )
    attempts = sum(
        record.phase == "worker" for task in state.tasks.values() for record in task.history
    )
    return {
        "manifest": manifest,
        "state": state,
        "counts": [(name, counts[name]) for name in reversed(_ORDER) if counts[name]],
        "total": len(state.tasks),
        "attempts": attempts,
        "duration": duration_text(end),
        "seconds": end,
        "rows": rows,
        "hidden_rows": len(state.tasks) - len(rows),
        "tasks": [_task_view(key, task, folder) for key, task in ranked[:MAX_DETAILS]],
        "hidden_tasks": max(0, len(ranked) - MAX_DETAILS),
        "signatures": signatures.most_common(30),
        "rounds": [(item, _diff(folder, item.diff_path)) for item in state.healing_rounds],
    }


def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("threader"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = duration_text
    return environment


def write_report(manifest: Manifest, state: RunState, folder: Path) -> tuple[Path, Path]:
    """Write `report.html` and `report.md` into the run's folder; returns their paths."""
    data = report_data(manifest, state, folder)
    environment = _environment()
    paths = (folder / "report.html", folder / "report.md")
    for path in paths:
        text = environment.get_template(path.name).render(data)
        path.write_text(text, errors="replace")
    return paths
