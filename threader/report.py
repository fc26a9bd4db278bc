"""The report of a run: one self-contained HTML page, and the same in Markdown."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from schemas.run_state import FileStat, HistoryRecord, Interruption, RunState, Spent, TaskState
from threader.budget import (
    add,
    budget_of,
    budget_text,
    cost_text,
    count_text,
    counts,
    spent_in,
    spent_on,
    spent_on_healing,
    spent_text,
    together,
)
from threader.load import ThreadProject
from threader.needs import held_back, needs, place_of
from threader.outbox import outbox_summary
from threader.outcome import trouble
from threader.signatures import one_line

MAX_ROWS = 150
MAX_DETAILS = 400
MAX_DIFF = 60_000
MAX_NEEDS = 100
MAX_HELD = 200
MAX_FILES = 100
MAX_SPENDERS = 10
MAX_INTERRUPTIONS = 100
_ORDER = ("ESCALATED", "FAILED", "BLOCKED", "RUNNING", "PENDING", "DONE")


@dataclass(frozen=True)
class Bar:
    """One bar of the timeline; `start` and `length` in percent of the run."""

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
    spent: Spent

    @property
    def caption(self) -> str:
        """Why the task is not done, else its worker's own words."""
        words = [a.record.said for a in self.attempts if a.record.said]
        return trouble(self.state) or (words[-1] if words else "")


@dataclass(frozen=True)
class Gap:
    """An interruption as the page shows it."""

    item: Interruption
    seconds: float


@dataclass(frozen=True)
class Landed:
    """The changes of a task that is done."""

    task_id: str
    record: HistoryRecord


class _Clock:
    """Converts times of a run to seconds and percentages from its start."""

    def __init__(self, state: RunState) -> None:
        self._start = datetime.fromisoformat(state.started_at)
        self.length = max(self.seconds(state.updated_at), 0.001)

    def seconds(self, moment: str) -> float:
        return (datetime.fromisoformat(moment) - self._start).total_seconds()

    def bar(self, start: float, length: float, kind: str, title: str) -> Bar:
        begin = min(max(0.0, start), self.length)
        return Bar(
            100 * begin / self.length,
            100 * min(length, self.length - begin) / self.length,
            kind,
            title,
        )


def _kind(record: HistoryRecord) -> str:
    if record.phase in ("healer", "verify"):
        return {"healer": "heal", "verify": "check"}[record.phase]
    if record.outage is not None:
        return "away"
    return "bad" if record.failure_class else "good"


def _row(task_id: str, task: TaskState, clock: _Clock) -> Row:
    row = Row(task_id, task.status)
    for record in task.history:
        if record.duration_sec is None:
            continue
        length = record.duration_sec
        kind = _kind(record)
        label = record.failure_signature if kind == "bad" else record.outage or record.phase
        begin = clock.seconds(record.timestamp) - length
        title = f"{task_id} #{record.attempt_number}: {label}"
        row.bars.append(clock.bar(begin, length, kind, title))
    return row


def _gaps(state: RunState, clock: _Clock) -> list[Gap]:
    return [
        Gap(item, clock.seconds(item.ended or state.updated_at) - clock.seconds(item.began))
        for item in state.interruptions
    ]


def _gap_bars(state: RunState, clock: _Clock, gaps: list[Gap]) -> Iterator[Bar]:
    for gap in gaps:
        title = f"{gap.item.kind}: {gap.item.cause}"
        yield clock.bar(clock.seconds(gap.item.began), gap.seconds, "gap", title)


def _diff(folder: Path, path: str | None) -> str:
    if path is None or not (folder / path).is_file():
        return ""
    return (folder / path).read_text(errors="replace")[:MAX_DIFF]


def _task_view(task_id: str, task: TaskState, folder: Path) -> TaskView:
    attempts = [Attempt(record, _diff(folder, record.diff_path)) for record in task.history]
    return TaskView(task_id, task, attempts, spent_on(task))


def _landed(state: RunState) -> list[Landed]:
    """The writes of each done task, in the order in which they landed."""
    landed = []
    for task_id, task in state.tasks.items():
        if task.status != "DONE":
            continue
        last = [record for record in task.history if record.phase == "worker"][-1:]
        landed += [Landed(task_id, record) for record in last if record.files or record.commit]
    return sorted(landed, key=lambda change: change.record.timestamp)


def _files(landed: list[Landed]) -> list[FileStat]:
    """The lines that all changes added and removed in each file; most lines first."""
    files: dict[str, FileStat] = {}
    for stat in (stat for change in landed for stat in change.record.stat):
        known = files.get(stat.path, FileStat(path=stat.path, added=0, removed=0))
        if known.added is None or known.removed is None or stat.added is None:
            files[stat.path] = FileStat(path=stat.path, added=None, removed=None)
        else:
            added, removed = known.added + stat.added, known.removed + (stat.removed or 0)
            files[stat.path] = FileStat(path=stat.path, added=added, removed=removed)
    return sorted(files.values(), key=lambda file: -((file.added or 0) + (file.removed or 0)))


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


def _money(project: ThreadProject, state: RunState) -> dict[str, Any]:
    by_task = sorted(
        ((key, spent_on(task)) for key, task in state.tasks.items()),
        key=lambda item: (-item[1].cost_usd, -item[1].input_tokens - item[1].output_tokens),
    )
    reported = [item for item in by_task if item[1].tokens_told or item[1].cost_told]
    return {
        "spent": spent_in(state),
        "spent_on_work": together(spent for _, spent in by_task),
        "spent_on_healing": spent_on_healing(state),
        "spenders": reported[:MAX_SPENDERS],
        "budget": budget_text(budget_of(state, project.manifest.policy.budget)),
    }


def _changes(state: RunState) -> dict[str, Any]:
    landed = _landed(state)
    files = _files(landed)
    return {
        "files": files[:MAX_FILES],
        "file_count": len(files),
        "added": sum(file.added or 0 for file in files),
        "removed": sum(file.removed or 0 for file in files),
        "commits": [change for change in landed if change.record.commit],
    }


def _wanted(project: ThreadProject, state: RunState, runner: str | None) -> dict[str, Any]:
    reports = outbox_summary(project.state_dir)
    wanted = needs(project.manifest, state, place_of(project), runner=runner, reports=reports)
    held = held_back(project.manifest, state)
    return {
        "needs": wanted[:MAX_NEEDS],
        "hidden_needs": max(0, len(wanted) - MAX_NEEDS),
        "held": list(held.items())[:MAX_HELD],
        "held_count": len(held),
        "reports": reports,
    }


def report_data(
    project: ThreadProject, state: RunState, runner: str | None = None
) -> dict[str, Any]:
    """Everything the page shows. Failed tasks come first; long lists are cut and say so.

    `runner`: the process that runs it now.
    """
    folder, clock = project.state_dir, _Clock(state)
    by_status = Counter(str(task.status) for task in state.tasks.values())

    def weight(item: tuple[str, TaskState]) -> tuple[int, int]:
        return _ORDER.index(item[1].status), -len(item[1].history)

    ranked = sorted(state.tasks.items(), key=weight)
    interesting = {task_id for task_id, _ in ranked[:MAX_ROWS]}
    rows = [_row(key, task, clock) for key, task in state.tasks.items() if key in interesting]
    workers = [
        record
        for task in state.tasks.values()
        for record in task.history
        if record.phase == "worker"
    ]
    signatures = Counter(record.failure_signature for record in workers if record.failure_signature)
    gaps = _gaps(state, clock)
    return {
        "manifest": project.manifest,
        "state": state,
        "counts": [(name, by_status[name]) for name in reversed(_ORDER) if by_status[name]],
        "total": len(state.tasks),
        "attempts": len(workers),
        "seconds": clock.length,
        "rows": rows,
        "hidden_rows": len(state.tasks) - len(rows),
        "gaps": gaps[-MAX_INTERRUPTIONS:],
        "hidden_gaps": max(0, len(gaps) - MAX_INTERRUPTIONS),
        "gap_bars": list(_gap_bars(state, clock, gaps)),
        "idle": sum(gap.seconds for gap in gaps if gap.item.kind != "lock"),
        "tasks": [_task_view(key, task, folder) for key, task in ranked[:MAX_DETAILS]],
        "hidden_tasks": max(0, len(ranked) - MAX_DETAILS),
        "signatures": signatures.most_common(30),
        "rounds": [(item, _diff(folder, item.diff_path)) for item in state.healing_rounds],
        **_wanted(project, state, runner),
        **_money(project, state),
        **_changes(state),
    }


def _clock(moment: str) -> str:
    return moment[:19].replace("T", " ")


def span_text(item: Interruption) -> str:
    """`2026-03-20 15:21:00 to 15:22:00`, with both dates where they differ, or `to now`."""
    began, ended = _clock(item.began), _clock(item.ended or "now")
    return f"{began} to {ended[11:] if ended[:10] == began[:10] else ended}"


def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("threader"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["served"] = lambda record: record.usage is not None and counts(record)
    environment.filters |= {
        "duration": duration_text,
        "line": one_line,
        "count": count_text,
        "spent": spent_text,
        "used": lambda usage: spent_text(add(Spent(), usage, completed=True)),
        "cost": cost_text,
        "clock": _clock,
        "span": span_text,
    }
    return environment


def write_report(
    project: ThreadProject, state: RunState, runner: str | None = None
) -> tuple[Path, Path]:
    """Write `report.html` and `report.md` into the run's folder; returns their paths.

    `runner`: the process that runs it now.
    """
    data = report_data(project, state, runner)
    environment = _environment()
    paths = (project.state_dir / "report.html", project.state_dir / "report.md")
    for path in paths:
        text = environment.get_template(path.name).render(data)
        path.write_text(text, errors="replace")
    return paths
