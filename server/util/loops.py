"""Supervises the loops that run beside the callers: none fails, or ends, in silence.

A loop that raises is named in the log, counted, shown by `/health`, and begun again with backoff.
What fails for one of a loop's items alone is shown alike, and holds up none of the others.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeGuard, TypeVar

import structlog

from peers.backoff import delay
from server.domain.errors import NodeAway, Unavailable

log = structlog.get_logger()

CAP_SECONDS = 10.0
"""Between two tries at most: what was mended should show soon."""
CAUSES_MAX = 100
"""Causes of one loop that are named until it goes well again; what fails beyond is counted."""

T = TypeVar("T")
Turns = AsyncIterator[Exception | None]
"""A loop. It yields after each turn: None when that went well, else what failed for some of its
items, the others having been seen to. It raises when the whole turn has failed."""
Loop = Callable[[], Turns]


class Ended(Exception):
    """A loop has ended that was to run until it is cancelled."""


@dataclass(eq=False, slots=True)
class _Watched:
    name: str
    about: dict[str, str]
    failures: int = 0
    """In a row."""
    named: set[tuple[str, str]] = field(default_factory=set)


class Loops:
    """The loops of one node. `chance` is between 0 and 1."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._failing: set[_Watched] = set()
        self.failures: Counter[str] = Counter()
        """How often each kind of loop has failed, since this node started."""

    @property
    def failing(self) -> list[str]:
        """The kinds of those whose last turn did not go well."""
        return sorted({one.name for one in self._failing})

    def start(
        self, name: str, loop: Loop, *, ends: bool = False, **about: str
    ) -> "asyncio.Task[None]":
        """Run a loop until the task is cancelled, or, if it `ends`, until it has gone well.

        `name` is public: it says what kind of loop it is, `about` is for the log alone.
        """
        self.failures[name] += 0
        watched = _Watched(name, about)
        return asyncio.create_task(self._keep(watched, loop, ends), name=f"cacp-{name}")

    async def _keep(self, one: _Watched, loop: Loop, ends: bool) -> None:
        try:
            while True:
                try:
                    async for problem in loop():
                        self._turned(one, problem)
                    if ends:
                        return
                    self._failed(one, Ended("the loop has ended"))
                except asyncio.CancelledError as error:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    # Something that the loop waited for was cancelled, not the loop.
                    self._failed(one, Ended(f"what the loop waited for was cancelled: {error}"))
                except Exception as error:
                    self._failed(one, error)
                await asyncio.sleep(delay(one.failures, self._chance(), cap=CAP_SECONDS))
        finally:
            self._failing.discard(one)

    def _turned(self, one: _Watched, problem: Exception | None) -> None:
        if problem is not None:
            self._failed(one, problem)
        elif one in self._failing:
            log.info("loop_recovered", loop=one.name, failures=one.failures, **one.about)
            self._failing.discard(one)
            one.failures = 0
            one.named.clear()

    def _failed(self, one: _Watched, problem: Exception) -> None:
        one.failures += 1
        self.failures[one.name] += 1
        self._failing.add(one)
        for cause in problem.exceptions if isinstance(problem, ExceptionGroup) else [problem]:
            key = type(cause).__name__, str(cause)[:200]
            if key in one.named or len(one.named) >= CAUSES_MAX:
                continue
            one.named.add(key)
            if storage_is_away(cause):
                reason = cause.data["reason"]
                log.warning("loop_waits", loop=one.name, reason=reason, **one.about)
            else:
                log.error("loop_failed", loop=one.name, exc_info=cause, **one.about)


def storage_is_away(error: Exception) -> TypeGuard[Unavailable]:
    """Whether the database as a whole can't be used, or is overloaded, which `/health` says: then
    no item fares better than another. What reads as another of the database's errors may be the
    fault of a single row."""
    if not isinstance(error, Unavailable) or isinstance(error, NodeAway):
        return False
    name = str(getattr(error.__cause__, "sqlite_errorname", ""))
    of_disk = name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
    return error.data["reason"] != "storage_failed" or of_disk


async def each(
    items: Iterable[T],
    act: Callable[[T], Awaitable[object]],
    *,
    stops: tuple[type[Exception], ...] = (),
) -> Exception | None:
    """Act on each item, whatever another one raises; what was raised, for a loop to yield.

    Raises at once what concerns all of them: of the types in `stops`, or that the database is away.
    """
    failed: list[Exception] = []
    for item in items:
        try:
            await act(item)
        except Exception as error:
            if isinstance(error, stops) or storage_is_away(error):
                raise
            failed.append(error)
    return together(failed)


def together(problems: Iterable[Exception]) -> Exception | None:
    """What failed for several items as one, for a loop to yield; None for none."""
    found = [
        one
        for problem in problems
        for one in (problem.exceptions if isinstance(problem, ExceptionGroup) else [problem])
    ]
    return ExceptionGroup("some items failed", found) if found else None


async def cancel(tasks: Iterable["asyncio.Task[None] | None"]) -> None:
    """End tasks, and return once they have ended, however they did."""
    ended = [task for task in tasks if task is not None]
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)
