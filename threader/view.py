"""Shows a run in progress: as a live table, or as plain lines."""

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from schemas.run_state import RunState, RunStatus, TaskStatus
from threader.budget import cost_text, count_text, spent_in
from threader.events import RunEvent
from threader.report import duration_text
from threader.signatures import one_line

if TYPE_CHECKING:
    from rich.console import Console, Group

COLOURS = {
    "DONE": "green",
    "RUNNING": "cyan",
    "PENDING": "bright_black",
    "FAILED": "red",
    "ESCALATED": "bold red",
    "BLOCKED": "yellow",
}
LAST = 8


def time_left(state: RunState, done_now: int, seconds: float) -> float | None:
    """Seconds until the pending tasks are done at this run's pace; None before one is done."""
    waiting = sum(
        task.status in (TaskStatus.PENDING, TaskStatus.RUNNING) for task in state.tasks.values()
    )
    return waiting * seconds / done_now if done_now else None


class PlainView:
    """One line per event, for logs and pipes."""

    def __call__(self, event: RunEvent, state: RunState) -> None:
        if event.kind != "started":
            print(f"{time.strftime('%H:%M:%S')} {event.text}", flush=True)


class LiveView:
    """A table that is redrawn in place; a context manager."""

    def __init__(self, console: "Console", state: RunState) -> None:
        from rich.live import Live

        self._state = state
        self._began = time.monotonic()
        self._done_before = self._count(TaskStatus.DONE)
        self._started: dict[str, float] = {}
        self._spent = spent_in(state)
        self._events: deque[tuple[str, RunEvent]] = deque(maxlen=LAST)
        self._live = Live(
            console=console, refresh_per_second=4, get_renderable=self.render, transient=False
        )

    def __enter__(self) -> "LiveView":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _count(self, status: TaskStatus) -> int:
        return sum(task.status is status for task in self._state.tasks.values())

    def __call__(self, event: RunEvent, state: RunState) -> None:
        self._spent = event.spent or self._spent
        if event.kind == "started" and event.task_id:
            self._started[event.task_id] = time.monotonic()
            return
        if event.kind == "settled" and event.task_id:
            self._started.pop(event.task_id, None)
        self._events.append((time.strftime("%H:%M:%S"), event))

    def _facts(self) -> list[str]:
        state = self._state
        rate = state.windows[-1].failure_rate if state.windows else 0.0
        window = state.window
        number = f"{window.number}, pass {window.passes}" if window else "none"
        elapsed = time.monotonic() - self._began
        done = self._count(TaskStatus.DONE) - self._done_before
        running = state.run_status is RunStatus.RUNNING
        left = time_left(state, done, elapsed) if running else None
        policy = state.policy
        return [
            f"window [b]{number}[/b]",
            f"size [b]{policy.current_batch_size}[/b]",
            f"failure rate [b]{rate:.0%}[/b]",
            f"heal rounds [b]{len(state.healing_rounds)}[/b]/{policy.max_total_heal_rounds}",
            f"[b]{duration_text(elapsed)}[/b]"
            + (f", about [b]{duration_text(left)}[/b] left" if left else ""),
        ]

    def _used(self) -> list[str]:
        spent = self._spent
        tokens = count_text(spent.input_tokens + spent.output_tokens)
        return [
            *([f"[b]{tokens}[/b] tokens"] if spent.tokens_told else []),
            *([f"[b]{cost_text(spent)}[/b]"] if spent.cost_told else []),
        ]

    def _waits(self) -> list[str]:
        """What the run waits for."""
        from rich.markup import escape

        waiting = [item for item in self._state.interruptions if item.ended is None]
        return [
            f"  [yellow]waits since {item.began[11:19]} UTC: {escape(one_line(item.cause))}[/]"
            for item in waiting
        ]

    def _bar(self) -> str:
        counts = Counter(str(task.status) for task in self._state.tasks.values())
        total = max(1, len(self._state.tasks))
        bar, used = "", 0
        for name in ("DONE", "RUNNING", "BLOCKED", "FAILED", "ESCALATED"):
            width = min(50 - used, -(-counts[name] * 50 // total))
            used += width
            bar += f"[{COLOURS[name]}]{'━' * width}[/]"
        bar += f"[bright_black]{'━' * (50 - used)}[/]"
        legend = "  ".join(
            f"[{COLOURS[name]}]{counts[name]} {name.lower()}[/]" for name in COLOURS if counts[name]
        )
        return f"{bar}  {legend}"

    def render(self) -> "Group":
        from rich.console import Group
        from rich.markup import escape
        from rich.text import Text

        state = self._state
        colour = {"RUNNING": "cyan", "COMPLETED": "green", "ABORTED": "red"}[state.run_status]
        lines = [
            "  ".join(
                [f"[b]{state.run_id}[/b]", f"[{colour}]{state.run_status}[/]", *self._used()]
            ),
            self._bar(),
            "  ".join(self._facts()),
            *self._waits(),
        ]
        now = time.monotonic()
        running = list(self._started.items())[:LAST]
        if running:
            lines.append("")
        lines += [
            f"  [cyan]▸[/] {escape(key)}  [bright_black]{duration_text(now - began)}[/]"
            for key, began in running
        ]
        if len(self._started) > LAST:
            lines.append(f"    and {len(self._started) - LAST} more")
        lines.append("")
        for clock, event in list(self._events):
            style = "magenta" if event.kind in ("healing", "healed") else "default"
            if " FAILED" in event.text or "ESCALATED" in event.text or "ABORTED" in event.text:
                style = "red"
            lines.append(f"[bright_black]{clock}[/] [{style}]{escape(event.text)}[/]")
        return Group(*(Text.from_markup(line, overflow="ellipsis") for line in lines))
