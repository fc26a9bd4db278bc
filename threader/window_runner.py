"""Runs the attempts of a window, several concurrently (agent-threader-v2 §5)."""

import asyncio
from collections import deque

from schemas.run_state import HistoryRecord, TaskStatus
from schemas.task_result import TaskResult
from threader.attempt import Workshop, run_attempt
from threader.errors import Interrupted, OutOfBudget
from threader.events import task_text
from threader.gate import Gate
from threader.outcome import Failure
from threader.recorder import RunRecorder
from threader.scheduler import Scheduler
from threader.store import RunStore


class WindowRunner:
    """Attempts a window's tasks until all have settled; `stop` interrupts it."""

    def __init__(
        self,
        scheduler: Scheduler,
        store: RunStore,
        recorder: RunRecorder,
        gate: Gate,
        shop: Workshop,
        stop: asyncio.Event,
    ) -> None:
        self._scheduler = scheduler
        self._store = store
        self._recorder = recorder
        self._gate = gate
        self._shop = shop
        self._stop = stop
        self._waiting: deque[str] = deque()
        self._running: dict[asyncio.Task[None], str] = {}

    async def run(self) -> None:
        """Raises Interrupted, OutOfBudget, ProviderLost, or what an attempt raises."""
        self._waiting.extend(self._scheduler.runnable())
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            while self._waiting or self._running:
                self._start_attempts()
                done, _ = await asyncio.wait(
                    {stopped, *self._running},
                    timeout=self._pause(),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for attempt in [task for task in self._running if task in done]:
                    del self._running[attempt]
                    await attempt
                if stopped in done:
                    raise Interrupted
        finally:
            stopped.cancel()
            if self._running:
                await self._cancel()

    def _start_attempts(self) -> None:
        """Start what concurrency, the provider and the budget allow. Raises OutOfBudget."""
        running = len(self._running)
        room = self._gate.room(self._scheduler.state.policy.concurrency, running)
        if self._waiting and (reason := self._scheduler.ledger.why_stop()):
            if not running:
                raise OutOfBudget(reason)
            room = 0
        for _ in range(min(room, len(self._waiting))):
            task_id = self._waiting.popleft()
            self._running[asyncio.create_task(self._attempt(task_id))] = task_id

    def _pause(self) -> float | None:
        """Seconds until a checkpoint or a probe of the provider is due; None without a limit."""
        pauses = (self._recorder.checkpoint_if_due(), None if self._running else self._gate.wait())
        return min((pause for pause in pauses if pause is not None), default=None)

    async def _cancel(self) -> None:
        for attempt in self._running:
            attempt.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._recorder.keep(self._shop.site.backup_copies())
        self._recorder.interrupt(self._running.values())
        self._recorder.checkpoint()

    async def _attempt(self, task_id: str) -> None:
        started = self._scheduler.tasks.start(task_id)
        began = self._gate.begin(task_id)
        self._recorder.tell("started", f"{task_id} attempt {started.runs}", task_id)

        def settle(
            failure: Failure | None, records: list[HistoryRecord], result: TaskResult | None
        ) -> None:
            failure = self._gate.weigh(task_id, failure, began)
            task, joined = self._scheduler.settle(task_id, failure, records)
            self._store.write_task(task_id, task)
            self._waiting.extend(joined)
            if task.status is TaskStatus.PENDING:
                self._waiting.append(task_id)
            self._recorder.tell_kept(copy for record in records for copy in record.kept)
            self._recorder.tell("settled", task_text(task_id, task), task_id, result)

        definition = self._scheduler.tasks.definitions[task_id]
        await run_attempt(self._shop, definition, started, settle)
