"""A whole run: the tests on each subject, one subject after the other."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from comply.files import Case
from comply.result import Result, Subject, not_run
from comply.run import Target, Unreachable, run_all

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Run:
    """How far a run has come.

    Each of its `subjects` has a result for each test from the start; those not yet run say so.
    `done` hears of each result as it comes, and of a subject that can't be tested. What it raises
    ends the tests of that subject. Of tests that are put `unasked`, a subject gets those of the
    protocol versions that it speaks.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        targets: Callable[[], Sequence[Target]],
        *,
        jobs: int,
        seconds: float,
        done: Callable[[Subject, Result | None], None],
        unasked: bool = False,
    ) -> None:
        self.cases = list(cases)
        self.targets = targets
        self.jobs = jobs
        self.seconds = seconds
        self.done = done
        self.unasked = unasked
        self.subjects: list[Subject] = []
        self.ended_by: signal.Signals | None = None
        """The signal that ended it before its time."""

    def go(self) -> None:
        """Every test on every target. A signal ends what runs, and leaves the rest."""
        asyncio.run(self._go())

    async def _go(self) -> None:
        self._hear_signals()
        targets = self.targets()
        self.subjects = [
            Subject(one.name, one.facts, [not_run(case) for case in self.cases]) for one in targets
        ]
        try:
            for target, subject in zip(targets, self.subjects, strict=True):
                if problem := await self._put(target, subject):
                    subject.stop(problem)
                    self.done(subject, None)
        except asyncio.CancelledError:
            if self.ended_by is None:
                raise
            for subject in self.subjects:
                if any(result.waiting for result in subject.results):
                    subject.stop(f"the run was ended by {self.ended_by.name}")

    def _hear_signals(self) -> None:
        """Whoever ends us ends the agents that we started too, and has the reports."""
        task = asyncio.current_task()
        assert task is not None
        for number in ENDING:
            # What nohup or a shell has us ignore, we ignore.
            if signal.getsignal(number) is not signal.SIG_IGN:
                stop = partial(self._stop, task, number)
                asyncio.get_running_loop().add_signal_handler(number, stop)

    def _stop(self, task: asyncio.Task[object], number: signal.Signals) -> None:
        self.ended_by = self.ended_by or number
        task.cancel()

    def _for(self, target: Target) -> list[Case]:
        """The tests for a target of which it is known now what it speaks."""
        found = [case for case in self.cases if not self.unasked or target.concerns(case.test)]
        return found or self.cases

    async def _put(self, target: Target, subject: Subject) -> str:
        """Put every test to one target; gives why it can't be tested, or not to the end."""
        places: dict[int, int] = {}
        began = time.monotonic()

        def ended(result: Result) -> None:
            subject.results[places[id(result.case)]] = result
            subject.seconds = time.monotonic() - began
            self.done(subject, result)

        try:
            try:
                await target.learn()
                cases = self._for(target)
                subject.results = [not_run(case) for case in cases]
                places = {id(case): place for place, case in enumerate(cases)}
                began = time.monotonic()
                await run_all(cases, target, jobs=self.jobs, seconds=self.seconds, done=ended)
            finally:
                await target.close()
        except Unreachable as error:
            return str(error)
        except Exception as error:
            return f"{type(error).__name__} in the harness: {error}"
        return ""
