"""A whole run: the tests on each subject, one subject after the other."""

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial

from comply.files import Case
from comply.result import CaseResult, Subject, not_run
from comply.run import run_all, to_its_end
from comply.target import SubjectUnreachable, Target

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ComplianceRun:
    """A run and its results so far.

    Each of `subjects` has a result for every test from the start; those not yet run say so. `done`
    is called with each result as it comes, and with None for a subject that can't be tested. What
    it raises ends the tests of that subject. When the user named no tests (`unasked`), a subject
    gets those of the protocol versions that it speaks.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        targets: Callable[[], Sequence[Target]],
        *,
        jobs: int,
        seconds: float,
        done: Callable[[Subject, CaseResult | None], None],
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
        """The signal that interrupted the run."""

    def go(self) -> None:
        """Run every test on every target. A signal stops the current tests and skips the rest."""
        asyncio.run(self._go())

    async def _go(self) -> None:
        self._hear_signals()
        targets = self.targets()
        self.subjects = [
            Subject(target.name, target.facts, [not_run(case) for case in self.cases])
            for target in targets
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
        """On a signal, stop the agents that we started and still write the reports."""
        task = asyncio.current_task()
        assert task is not None
        for number in ENDING:
            # A signal that nohup or a shell has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                stop = partial(self._stop, task, number)
                asyncio.get_running_loop().add_signal_handler(number, stop)

    def _stop(self, task: asyncio.Task[object], number: signal.Signals) -> None:
        self.ended_by = self.ended_by or number
        task.cancel()

    def _for(self, target: Target) -> list[Case]:
        """The tests for a target whose protocol versions are known by now."""
        chosen = [case for case in self.cases if not self.unasked or target.concerns(case.test)]
        return chosen or self.cases

    async def _put(self, target: Target, subject: Subject) -> str:
        """Run every test on one target. Returns why that failed or stopped early, else empty."""
        places: dict[int, int] = {}
        began = time.monotonic()

        def ended(result: CaseResult) -> None:
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
                # Also when the run was interrupted, even twice.
                await to_its_end(_leave(target, subject))
        except SubjectUnreachable as error:
            return str(error)
        except Exception as error:
            return f"{type(error).__name__} in the harness: {error}"
        return ""


async def _leave(target: Target, subject: Subject) -> None:
    """Remove what the tests have made at a target, and let it go."""
    try:
        subject.cleanup = await target.clean()
    finally:
        await target.close()
