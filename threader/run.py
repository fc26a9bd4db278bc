"""The orchestrator: drives a course with real workers and a real healer (agent-threader-v2 §5)."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from schemas.run_state import HistoryRecord, RunState, RunStatus, TaskState, TaskStatus
from schemas.task_result import TaskResult
from threader.adapters import make_adapter
from threader.adapters.base import Adapter, ResultReader
from threader.attempt import Workshop, run_attempt
from threader.course import Course
from threader.errors import NotReady
from threader.files import remove_tree, sole_user
from threader.heal import heal
from threader.landing import SharedSite, Site
from threader.load import Project
from threader.outcome import Failure
from threader.parsing import parse_result
from threader.process import kill_leftovers
from threader.signatures import one_line
from threader.store import RunStore, now
from threader.windows import Action, Verdict

Kind = Literal["window", "started", "settled", "verdict", "healing", "healed", "ended", "recovered"]


@dataclass(frozen=True)
class Event:
    """Something a watcher may want to show or pass on."""

    kind: Kind
    text: str
    task_id: str | None = None
    result: TaskResult | None = None
    rule: str | None = None


Listener = Callable[[Event, RunState], None]


class Interrupted(Exception):
    """A signal stopped the run; its state can be resumed."""


def make_site(project: Project, folder: Path) -> Site:
    if project.manifest.isolation == "worktree":
        from threader.worktree import WorktreeSite

        return WorktreeSite(project, folder)
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


@dataclass
class Run:
    """One run from its lock to its end. `stop` is set by a signal handler."""

    project: Project
    store: RunStore
    course: Course
    listeners: list[Listener] = field(default_factory=list)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    read_result: ResultReader = parse_result

    async def go(self) -> RunState:
        """Run to the end. Raises Interrupted after a stop; RunLocked, NotReady before a start."""
        self.store.prepare()
        with self.store.lock.held():
            self.store.check_unchanged()
            with sole_user(self.project.workspace):
                await self._go()
        return self.course.state

    async def _go(self) -> None:
        self._worker, self._healer = make_adapters(self.project)
        self._site = make_site(self.project, self.store.folder)
        await self._recover()
        try:
            self._checkpoint()
            await self._sweep()
        finally:
            # A daemon that left its worker's group would go on writing into the workspace.
            kill_leftovers(str(self.store.folder))

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
        event = Event(kind, one_line(text), task_id, result, rule)
        for listener in self.listeners:
            listener(event, self.state)

    def _checkpoint(self) -> None:
        self.state.updated_at = now()
        self.store.write_state(self.state, self.course.changed)
        self.course.changed.clear()

    async def _recover(self) -> None:
        """Undo what a crash left: stray children, half-applied writes, scratch folders."""
        killed = kill_leftovers(str(self.store.folder))
        if killed:
            self._tell("recovered", f"killed {killed} processes that an earlier run left")
        for key in await self._site.recover(lambda key: is_committed(self.state, key)):
            self._tell("recovered", f"took back the half-done changes of {key}")
        remove_tree(self.store.folder / "staging")
        self.store.prepare()

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
                if verdict.action is Action.ABORT:
                    break
                if verdict.action is not Action.HEAL:
                    continue
            if self._healer is not None:
                await self._heal(self._healer)
        if self.state.run_status is RunStatus.RUNNING:
            course.finish()
        self._checkpoint()
        self._tell("ended", _end_text(self.state))

    async def _run_window(self) -> None:
        """Attempt the window's pending tasks, `concurrency` at a time, until all have settled."""
        waiting = deque(self.course.runnable())
        running: dict[asyncio.Task[None], str] = {}
        stopped = asyncio.ensure_future(self.stop.wait())
        shop = Workshop(self.project, self.store.folder, self._worker, self._site, self.read_result)
        try:
            while waiting or running:
                while waiting and len(running) < self.state.policy.concurrency:
                    task_id = waiting.popleft()
                    running[asyncio.create_task(self._attempt(shop, task_id, waiting))] = task_id
                done, _ = await asyncio.wait(
                    {stopped, *running}, return_when=asyncio.FIRST_COMPLETED
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
        for task_id in running.values():
            if self.state.tasks[task_id].status is TaskStatus.RUNNING:
                self.course.interrupt(task_id)
        self._checkpoint()

    async def _attempt(self, shop: Workshop, task_id: str, waiting: deque[str]) -> None:
        started = self.course.start(task_id)
        self._tell("started", f"{task_id} attempt {started.runs}", task_id)

        def settle(
            failure: Failure | None, records: list[HistoryRecord], result: TaskResult | None
        ) -> None:
            task, joined = self.course.settle(task_id, failure, records)
            self.store.write_task(task_id, task)
            waiting.extend(joined)
            if task.status is TaskStatus.PENDING:
                waiting.append(task_id)
            self._tell("settled", _task_text(task_id, task), task_id, result)

        await run_attempt(shop, self.course.definitions[task_id], started, settle)

    async def _heal(self, healer: Adapter) -> None:
        scope = self.course.scope()
        number = len(self.state.healing_rounds) + 1
        self._tell("healing", f"heal round {number} for {', '.join(scope)}")
        healing = asyncio.ensure_future(heal(self.project, self.store.folder, healer, self.course))
        stopped = asyncio.ensure_future(self.stop.wait())
        await asyncio.wait({healing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not healing.done():
            healing.cancel()
            await asyncio.gather(healing, return_exceptions=True)
            self._checkpoint()
            raise Interrupted
        done = healing.result()
        if done.decision is None or done.grant is None:
            self.course.refuse_heal(done.record)
        else:
            self.course.apply_heal(done.record, done.decision, done.grant)
        self._checkpoint()
        if done.transaction is not None:
            done.transaction.commit()
        record = done.record
        said = record.note or record.root_cause or ""
        text = f"round {number}: {record.decision}: {said}"
        self._tell("healed", text, rule=record.learned_rule)


def _task_text(task_id: str, task: TaskState) -> str:
    if task.status is TaskStatus.DONE:
        return f"{task_id} DONE"
    if task.status is TaskStatus.PENDING:
        return f"{task_id} runs again: {task.last_failure_signature}"
    return f"{task_id} {task.status}: {task.escalation_reason or task.last_failure_signature}"


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
