"""The orchestrator: drives a course with real workers and a real healer (agent-threader-v2 §5)."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from schemas.manifest import Budget
from schemas.run_state import (
    HealerFailure,
    HistoryRecord,
    KeptCopy,
    RunState,
    RunStatus,
    Spent,
    TaskState,
    TaskStatus,
)
from schemas.task_result import TaskResult
from threader import interruptions
from threader.adapters import make_adapter
from threader.adapters.base import HEALER, Adapter, ExecutionArtifact, ResultReader
from threader.attempt import Workshop, run_attempt, worker_log
from threader.budget import budget_of, was_served
from threader.course import Course
from threader.errors import NotReady
from threader.files import remove_tree, sole_user
from threader.gate import ProviderLost, make_gate
from threader.heal import MEDDLED, Round, heal
from threader.landing import SharedSite, Site
from threader.load import Project
from threader.outcome import Ending, Failure, trouble
from threader.parsing import parse_result
from threader.process import Exit, kill_leftovers
from threader.signatures import one_line
from threader.store import RunStore, now
from threader.windows import Action, Verdict

Kind = Literal[
    "window", "started", "settled", "verdict", "healing", "healed", "ended", "recovered",
    "paused", "blocked", "resumed", "waiting",
]  # fmt: skip


Result = TypeVar("Result")

SHOW_EVERY_SEC = 1.0
"""How old the state on disk may be while a window runs; attempts have their own checkpoints."""


@dataclass(frozen=True)
class Event:
    """Something a watcher may want to show or pass on."""

    kind: Kind
    text: str
    task_id: str | None = None
    result: TaskResult | None = None
    rule: str | None = None
    spent: Spent | None = None
    """What the run has used until then."""


Listener = Callable[[Event, RunState], None]


class Interrupted(Exception):
    """A signal stopped the run; its state can be resumed."""


class OutOfBudget(Exception):
    """The budget lets nothing more begin; says why."""


def make_site(
    project: Project, folder: Path, tell: Callable[[str | None], None] = lambda _: None
) -> Site:
    """Where tasks work; `tell` hears what is waited for there, and None when that is over."""
    if project.manifest.isolation == "worktree":
        from threader.worktree import WorktreeSite

        return WorktreeSite(project, folder, tell)
    return SharedSite(project, folder)


def is_committed(state: RunState, key: str) -> bool:
    """Whether `state` knows the attempt or round behind the backup folder `key` as done."""
    name, _, number = key.rpartition(".")
    if name == "@heal":
        return int(number) <= len(state.healing_rounds)
    task = state.tasks.get(name)
    return task is not None and task.status is TaskStatus.DONE and task.runs == int(number)


def make_adapters(project: Project) -> tuple[Adapter, Adapter | None]:
    """Worker and healer. Raises NotReady when there is no worker, or a CLI cannot be found."""
    manifest = project.manifest
    if manifest.worker is None:
        raise NotReady("worker: the manifest names no worker; see `cacp thread scaffold`")
    worker = make_adapter(manifest.worker)
    healer = make_adapter(manifest.healer) if manifest.healer else None
    for adapter in (worker, healer):
        if adapter is not None:
            health = adapter.healthcheck(os.environ, project.workspace)
            if not health.ready:
                raise NotReady("; ".join(health.details))
    return worker, healer


def check_budget(budget: Budget, adapters: Sequence[Adapter | None]) -> None:
    """Raises NotReady when a CLI never tells what the budget limits."""
    if budget == Budget():
        return
    for name, adapter in zip(("worker", "healer"), adapters, strict=True):
        if adapter is not None and not adapter.tells_usage:
            raise NotReady(
                f"policy.budget: it cannot be kept, as {name} {adapter.id} with the output "
                f"{adapter.spec.output} tells neither tokens nor money; let it write JSON where it "
                "can, or take the budget away"
            )


@dataclass
class Run:
    """One run from its lock to its end. `stop` is set by a signal handler."""

    project: Project
    store: RunStore
    course: Course
    listeners: list[Listener] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    read_result: ResultReader = parse_result

    def __post_init__(self) -> None:
        self._gate = make_gate(self.project.manifest.policy, self._on_pause)
        self._write_at = 0.0
        self._cut: list[str] = []

    async def go(self) -> RunState:
        """Run to the end. Raises Interrupted after a stop; RunLocked, NotReady before a start."""
        self.store.prepare()
        with self.store.lock.held():
            self.store.check_unchanged()
            with sole_user(self.project.workspace):
                await self._go()
        return self.course.state

    async def _go(self) -> None:
        try:
            self._worker, self._healer = make_adapters(self.project)
            budget = budget_of(self.state, self.project.manifest.policy.budget)
            check_budget(budget, (self._worker, self._healer))
        except NotReady as error:
            self._book_stop(error)
            raise
        self._site = make_site(self.project, self.store.folder, self._on_lock)
        self._tell_kept(self.state.kept)
        life = asyncio.create_task(self._show_life())
        try:
            await self._recover()
            self._checkpoint()
            await self._to_the_end()
        except Exception as error:
            self._keep(self._site.kept())
            self._count_cut()
            self._book_stop(error)
            raise
        finally:
            life.cancel()
            # A daemon that left its worker's group would go on writing into the workspace.
            kill_leftovers(str(self.store.folder))

    async def _show_life(self) -> None:
        while True:
            self.store.show_life()
            await asyncio.sleep(SHOW_EVERY_SEC)

    @property
    def state(self) -> RunState:
        return self.course.state

    def _tell(
        self,
        kind: Kind,
        text: str,
        task_id: str | None = None,
        result: TaskResult | None = None,
        rule: str | None = None,
    ) -> None:
        event = Event(kind, one_line(text), task_id, result, rule, self.course.spent)
        for listener in self.listeners:
            listener(event, self.state)

    def _on_pause(self, reason: str | None, long: bool) -> None:
        outage = self._gate.breaker.outage
        if reason is None or outage is None:
            interruptions.over(self.state, now(), "outage")
            self._tell("resumed", "the pause is over")
        else:
            interruptions.paused(self.state, now(), outage.reason)
            self._tell("blocked" if long else "paused", reason)
        self._checkpoint()

    def _on_lock(self, reason: str | None) -> None:
        if reason is None:
            interruptions.over(self.state, now(), "lock")
            self._tell("resumed", "the lock is free")
        else:
            interruptions.locked(self.state, now(), reason)
            self._tell("waiting", reason)
        self._checkpoint()

    def _book_stop(self, error: Exception) -> None:
        """Write down why the runner ends before the run does; a run that never began has none."""
        if not self.store.exists():
            return
        for key, task in self.state.tasks.items():
            if task.status is TaskStatus.RUNNING:
                self._cut.append(key)
                self.course.interrupt(key)
        said = error.strerror if isinstance(error, OSError) else str(error)
        cause = interruptions.BY_SIGNAL if isinstance(error, Interrupted) else said
        interruptions.stopped(self.state, now(), cause or type(error).__name__, self._cut)
        with suppress(OSError):
            self._checkpoint()

    def _count_cut(self) -> None:
        """Count what invocations used that were cut short, as far as their logs tell.

        Called when none is under way; what is counted is not counted again.
        """
        folder = self.store.folder
        logs = [worker_log(folder, key, task.runs) for key, task in self.state.tasks.items()]
        logs += sorted((folder / "logs").glob(f"{HEALER}.*.log"))
        there = (log.relative_to(folder).as_posix() for log in logs if log.exists())
        for name in self.course.without_record(there):
            adapter = self._healer if Path(name).name.startswith(HEALER) else self._worker
            if adapter is not None:
                ended = Exit(Ending.EXITED, None, 0.0)
                self.course.cut(name, adapter.usage(ExecutionArtifact(folder / name, ended)))

    def _keep(self, copies: list[KeptCopy]) -> None:
        self.state.kept += copies
        self._tell_kept(copies)

    def _tell_kept(self, copies: Iterable[KeptCopy]) -> None:
        for copy in copies:
            self._tell("recovered", copy.text)

    def _checkpoint(self) -> None:
        began = time.monotonic()
        self.state.updated_at = now()
        self.store.write_state(self.state, self.course.changed)
        self.course.changed.clear()
        # A state of many tasks is costly to write: never more than a twentieth of the time.
        spent = time.monotonic() - began
        self._write_at = time.monotonic() + max(SHOW_EVERY_SEC, 20 * spent)

    def _keep_shown(self) -> float | None:
        """Write the state when that is due; else seconds until then, None when nothing changed."""
        if not self.course.changed:
            return None
        left = self._write_at - time.monotonic()
        if left > 0:
            return left
        self._checkpoint()
        return None

    async def _recover(self) -> None:
        """Undo what a crash left: stray children, half-applied writes, scratch folders."""
        killed = kill_leftovers(str(self.store.folder))
        if killed:
            self._tell("recovered", f"killed {killed} processes that an earlier run left")
        self._count_cut()
        undone = await self._site.recover(lambda key: is_committed(self.state, key))
        for key, copies in undone.items():
            self._tell("recovered", f"took back the half-done changes of {key}")
            self._keep(copies)
        remove_tree(self.store.folder / "staging")
        self.store.prepare()

    async def _to_the_end(self) -> None:
        try:
            await self._sweep()
        except (ProviderLost, OutOfBudget) as reason:
            interruptions.over(self.state, now(), "outage")
            self.course.stop(str(reason))
        if self.state.run_status is RunStatus.RUNNING:
            self.course.finish()
        self._checkpoint()
        self._tell("ended", _end_text(self.state))

    async def _sweep(self) -> None:
        course = self.course
        while (window := course.open_window()) is not None:
            if not window.needs_heal or self._healer is None:
                self._checkpoint()
                size = len(window.task_ids)
                again = f", pass {window.passes}" if window.passes > 1 else ""
                self._tell("window", f"window {window.number}{again}: {size} tasks")
                await self._run_window()
                verdict = course.close_pass(now(), healer=self._healer is not None)
                self._checkpoint()
                self._tell("verdict", _verdict_text(verdict))
                if verdict.action is not Action.HEAL:
                    continue
            if self._healer is not None:
                await self._heal(self._healer)

    async def _run_window(self) -> None:
        """Attempt the window's pending tasks, `concurrency` at a time, until all have settled."""
        waiting = deque(self.course.runnable())
        running: dict[asyncio.Task[None], str] = {}
        stopped = asyncio.ensure_future(self.stop.wait())
        shop = Workshop(self.project, self.store.folder, self._worker, self._site, self.read_result)
        try:
            while waiting or running:
                room = self._gate.room(self.state.policy.concurrency, len(running))
                if waiting and (reason := self.course.why_stop()):
                    if not running:
                        raise OutOfBudget(reason)
                    room = 0
                for _ in range(min(room, len(waiting))):
                    task_id = waiting.popleft()
                    running[asyncio.create_task(self._attempt(shop, task_id, waiting))] = task_id
                pauses = (self._keep_shown(), None if running else self._gate.wait())
                done, _ = await asyncio.wait(
                    {stopped, *running},
                    timeout=min((one for one in pauses if one is not None), default=None),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for finished in done - {stopped}:
                    del running[finished]  # type: ignore[arg-type]
                    await finished
                if stopped in done:
                    raise Interrupted
        finally:
            stopped.cancel()
            if running:
                await self._interrupt(running)

    async def _interrupt(self, running: dict[asyncio.Task[None], str]) -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._keep(self._site.kept())
        for task_id in running.values():
            if self.state.tasks[task_id].status is TaskStatus.RUNNING:
                self._cut.append(task_id)
                self.course.interrupt(task_id)
        self._checkpoint()

    async def _attempt(self, shop: Workshop, task_id: str, waiting: deque[str]) -> None:
        started = self.course.start(task_id)
        began = self._gate.begin(task_id)
        self._tell("started", f"{task_id} attempt {started.runs}", task_id)

        def settle(
            failure: Failure | None, records: list[HistoryRecord], result: TaskResult | None
        ) -> None:
            failure = self._gate.weigh(task_id, failure, began)
            task, joined = self.course.settle(task_id, failure, records)
            self.store.write_task(task_id, task)
            waiting.extend(joined)
            if task.status is TaskStatus.PENDING:
                waiting.append(task_id)
            self._tell_kept(copy for record in records for copy in record.kept)
            self._tell("settled", _task_text(task_id, task), task_id, result)

        await run_attempt(shop, self.course.definitions[task_id], started, settle)

    async def _heal(self, healer: Adapter) -> None:
        scope = self.course.scope()
        number = len(self.state.healing_rounds) + 1
        self._tell("healing", f"heal round {number} for {', '.join(scope)}")
        done, began = await self._unless_stopped(self._ask(healer))
        if done.outage is not None and self._gate.trip(HEALER, done.outage):
            usage = done.record.usage
            served = usage is not None and was_served(usage)
            self.course.cut(done.record.log_path, usage, served=served)
            self._checkpoint()
            return
        if done.outage is None and done.answered:
            self._gate.passed(began)
        record = done.record
        if done.decision is None or done.grant is None:
            failure = HealerFailure(
                window=record.window,
                failed_task_ids=record.failed_task_ids,
                note=record.note or "",
                log_path=record.log_path,
                timestamp=record.timestamp,
                usage=record.usage,
            )
            given_up = self.course.no_decision(failure)
            self._checkpoint()
            then = "the window goes on without it" if given_up else "it is asked once more"
            self._tell("healed", f"no round: the healer gave no decision: {record.note}; {then}")
            return
        self.course.apply_heal(record, done.decision, done.grant)
        self._checkpoint()
        if done.transaction is not None:
            done.transaction.commit()
        meddled = "".join(f"; {note}" for note in record.changes if note.startswith(MEDDLED))
        text = f"round {number}: {record.decision}: {record.root_cause}{meddled}"
        self._tell("healed", text, rule=record.learned_rule)

    async def _ask(self, healer: Adapter) -> tuple[Round, float]:
        """The healer's answer, and when it was asked. Raises ProviderLost, OutOfBudget."""
        await self._gate.open()
        if reason := self.course.why_stop():
            raise OutOfBudget(reason)
        began = self._gate.clock()
        done = await heal(self.project, self.store.folder, healer, self.course, self._site)
        return done, began

    async def _unless_stopped(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What `work` gives. Raises Interrupted when a stop comes first."""
        working = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self.stop.wait())
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            self._checkpoint()
            raise Interrupted
        return working.result()


def _task_text(task_id: str, task: TaskState) -> str:
    if task.status is TaskStatus.DONE:
        return f"{task_id} DONE"
    if task.status is TaskStatus.PENDING:
        return f"{task_id} runs again: {task.last_failure_signature}"
    return f"{task_id} {task.status}: {trouble(task)}"


def _verdict_text(verdict: Verdict) -> str:
    text = f"{verdict.text}; failure rate {verdict.failure_rate:.0%}"
    for task_id, reason in verdict.escalations.items():
        text += f"; {task_id} ESCALATED: {reason}"
    return text


def _end_text(state: RunState) -> str:
    counts: dict[str, int] = {}
    for task in state.tasks.values():
        counts[task.status] = counts.get(task.status, 0) + 1
    told = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no tasks"
    reason = f": {state.abort_reason}" if state.abort_reason else ""
    return f"{state.run_status}: {told}{reason}"
