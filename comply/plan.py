"""A whole run: the tests on each subject, and what that comes to."""

import asyncio
import signal
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from comply.baseline import failures, stale
from comply.files import Case
from comply.result import Result, Subject, Verdict, results_of
from comply.run import Target, run_all

PASSED, FAILED, HARNESS = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to. `status` is the exit status of `cacp comply run`."""

    status: int
    failures: list[str]
    stale: dict[str, str]
    errors: list[str]


def judge(
    subjects: Sequence[Subject], known: frozenset[str], tests: Collection[str] = ()
) -> Outcome:
    """The run fails for a required test that fails and is not known to, or for a stale entry.

    `tests` are the keys of all tests that there are, run or not.
    """
    failed, old = failures(known, subjects), stale(known, subjects, tests)
    errors = [
        f"{subject.name}: {result.key}: {result.reason}"
        for subject, result in results_of(subjects)
        if result.verdict is Verdict.ERROR
    ]
    status = HARNESS if errors else FAILED if failed or old else PASSED
    return Outcome(status, failed, old, errors)


def run(
    cases: Sequence[Case],
    targets: Callable[[], Sequence[Target]],
    *,
    jobs: int,
    seconds: float,
    done: Callable[[Target, Result], None],
) -> list[Subject]:
    """Every test on every target, target by target. Raises what a target's `learn` raises."""

    async def whole() -> list[Subject]:
        # Whoever ends us, by SIGTERM as by Ctrl-C, ends the agents that we started too.
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        subjects = []
        for target in targets():
            try:
                await target.learn()
                began = time.monotonic()
                results = await run_all(
                    list(cases), target, jobs=jobs, seconds=seconds, done=partial(done, target)
                )
                took = time.monotonic() - began
            finally:
                await target.close()
            subjects.append(Subject(target.name, target.facts, results, took))
        return subjects

    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
