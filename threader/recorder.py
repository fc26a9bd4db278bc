"""Records a run: its events go to the listeners, its state to disk."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from schemas.run_state import KeptCopy, TaskStatus
from schemas.task_result import TaskResult
from threader import interruptions
from threader.errors import Interrupted
from threader.events import EventKind, Listener, RunEvent
from threader.scheduler import Scheduler
from threader.signatures import one_line
from threader.store import RunStore, now

SHOW_EVERY_SEC = 1.0
"""The state on disk may be this old while a window runs; attempts have checkpoints of their own."""


class RunRecorder:
    """Tells `listeners` what happens and writes the state of `scheduler` to `store`."""

    def __init__(
        self, store: RunStore, scheduler: Scheduler, listeners: Sequence[Listener]
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._state = scheduler.state
        self._listeners = listeners
        self._write_at = 0.0
        self._interrupted: list[str] = []

    def tell(
        self,
        kind: EventKind,
        text: str,
        task_id: str | None = None,
        result: TaskResult | None = None,
        rule: str | None = None,
    ) -> None:
        spent = self._scheduler.ledger.spent
        event = RunEvent(kind, one_line(text), task_id, result, rule, spent)
        for listener in self._listeners:
            listener(event, self._state)

    def tell_kept(self, copies: Iterable[KeptCopy]) -> None:
        for copy in copies:
            self.tell("recovered", copy.text)

    def keep(self, copies: Sequence[KeptCopy]) -> None:
        """Book copies of files that somebody else had edited, and tell of them."""
        self._state.kept += copies
        self.tell_kept(copies)

    def checkpoint(self) -> None:
        """Write the whole state to disk."""
        began = time.monotonic()
        self._state.updated_at = now()
        self._store.write_state(self._state, self._scheduler.tasks.changed)
        self._scheduler.tasks.changed.clear()
        # A state of many tasks is costly to write: never more than a twentieth of the time.
        spent = time.monotonic() - began
        self._write_at = time.monotonic() + max(SHOW_EVERY_SEC, 20 * spent)

    def checkpoint_if_due(self) -> float | None:
        """Write a changed state if that is due; else the seconds until then. None if unchanged."""
        if not self._scheduler.tasks.changed:
            return None
        left = self._write_at - time.monotonic()
        if left > 0:
            return left
        self.checkpoint()
        return None

    async def show_life(self) -> None:
        """Touch the sign of life on disk until cancelled."""
        while True:
            self._store.show_life()
            await asyncio.sleep(SHOW_EVERY_SEC)

    def paused(self, cause: str, text: str, *, long: bool) -> None:
        """An outage of the provider holds the run back."""
        interruptions.paused(self._state, now(), cause)
        self.tell("blocked" if long else "paused", text)
        self.checkpoint()

    def waiting(self, reason: str) -> None:
        """The lock of another git holds the run back."""
        interruptions.locked(self._state, now(), reason)
        self.tell("waiting", reason)
        self.checkpoint()

    def resumed(self, kind: str, text: str) -> None:
        """The interruption of this kind, `outage` or `lock`, is over."""
        interruptions.over(self._state, now(), kind)
        self.tell("resumed", text)
        self.checkpoint()

    def interrupt(self, task_ids: Iterable[str]) -> None:
        """Make those of the tasks that are RUNNING PENDING again."""
        for task_id in task_ids:
            if self._state.tasks[task_id].status is TaskStatus.RUNNING:
                self._interrupted.append(task_id)
                self._scheduler.tasks.interrupt(task_id)

    def stopped(self, error: Exception) -> None:
        """Book why the runner ends before the run does. A run that never began stays unwritten."""
        if not self._store.exists():
            return
        self.interrupt(list(self._state.tasks))
        reason = error.strerror if isinstance(error, OSError) else str(error)
        cause = interruptions.BY_SIGNAL if isinstance(error, Interrupted) else reason
        cause = cause or type(error).__name__
        interruptions.stopped(self._state, now(), cause, self._interrupted)
        with suppress(OSError):
            self.checkpoint()
