"""Runs the background loops of a node, and reports every failure and every unexpected end.

A loop that raises is logged, counted, shown by `/health`, and restarted with backoff. When only
some of a loop's items fail, they are reported in the same way and the loop continues with the
others.
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
"""The longest wait before a restart: an operator who fixed the cause should see so soon."""
CAUSES_MAX = 100
"""Distinct causes of one loop that are logged until it recovers; further ones are only counted."""

T = TypeVar("T")
Turns = AsyncIterator[Exception | None]
"""A running loop. It yields after each turn: None when the turn went well, else what failed for
some of its items. It raises when the whole turn failed."""
Loop = Callable[[], Turns]


class Ended(Exception):
    """A loop returned that should run until it is cancelled."""


@dataclass(eq=False, slots=True)
class _State:
    """The state of one running loop."""

    name: str
    about: dict[str, str]
    failures: int = 0
    """In a row."""
    logged: set[tuple[str, str]] = field(default_factory=set)


class Loops:
    """The loops of one node. `chance` returns a number between 0 and 1."""

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._failing: set[_State] = set()
        self.failures: Counter[str] = Counter()
        """Failed turns by the name of the loop, since the node started."""

    @property
    def failing(self) -> list[str]:
        """The names of the loops whose last turn failed, sorted."""
        return sorted({state.name for state in self._failing})

    def start(
        self, name: str, loop: Loop, *, ends: bool = False, **about: str
    ) -> "asyncio.Task[None]":
        """Run a loop until the task is cancelled or, if `ends`, until the loop returns.

        `name` is public: `/health` and `/metrics` show it. `about` goes to the log alone.
        """
        self.failures[name] += 0
        state = _State(name, about)
        return asyncio.create_task(self._keep(state, loop, ends), name=f"cacp-{name}")

    async def _keep(self, state: _State, loop: Loop, ends: bool) -> None:
        try:
            while True:
                try:
                    async for problem in loop():
                        self._record_turn(state, problem)
                    if ends:
                        return
                    self._record_failure(state, Ended("the loop has ended"))
                except asyncio.CancelledError as error:
                    task = asyncio.current_task()
                    if task is None or task.cancelling():
                        raise
                    # Something that the loop awaited was cancelled, not the loop.
                    self._record_failure(
                        state, Ended(f"what the loop awaited was cancelled: {error}")
                    )
                except Exception as error:
                    self._record_failure(state, error)
                await asyncio.sleep(delay(state.failures, self._chance(), cap=CAP_SECONDS))
        finally:
            self._failing.discard(state)

    def _record_turn(self, state: _State, problem: Exception | None) -> None:
        if problem is not None:
            self._record_failure(state, problem)
        elif state in self._failing:
            log.info("loop_recovered", loop=state.name, failures=state.failures, **state.about)
            self._failing.discard(state)
            state.failures = 0
            state.logged.clear()

    def _record_failure(self, state: _State, problem: Exception) -> None:
        state.failures += 1
        self.failures[state.name] += 1
        self._failing.add(state)
        for cause in problem.exceptions if isinstance(problem, ExceptionGroup) else [problem]:
            key = type(cause).__name__, str(cause)[:200]
            if key in state.logged or len(state.logged) >= CAUSES_MAX:
                continue
            state.logged.add(key)
            if storage_is_away(cause):
                reason = cause.data["reason"]
                log.warning("loop_waits", loop=state.name, reason=reason, **state.about)
            else:
                log.error("loop_failed", loop=state.name, exc_info=cause, **state.about)


async def repeat(seconds: float, act: Callable[[], Awaitable[Exception | None]]) -> Turns:
    """A loop that calls `act`, then waits `seconds`. `act` returns what failed for some items."""
    while True:
        yield await act()
        await asyncio.sleep(seconds)


def storage_is_away(error: Exception) -> TypeGuard[Unavailable]:
    """Whether the whole database is unusable or overloaded, so that every item would fail.

    Any other database error may be caused by a single row.
    """
    if not isinstance(error, Unavailable) or isinstance(error, NodeAway):
        return False
    name = str(getattr(error.__cause__, "sqlite_errorname", ""))
    of_disk = name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
    return error.data["reason"] != "storage_failed" or of_disk


async def run_each(
    items: Iterable[T],
    act: Callable[[T], Awaitable[object]],
    *,
    stops: tuple[type[Exception], ...] = (),
) -> Exception | None:
    """Call `act` for every item, even when some raise. Returns what they raised.

    Stops and raises at what concerns all items: the types in `stops`, and an unusable database.
    """
    problems: list[Exception] = []
    for item in items:
        try:
            await act(item)
        except Exception as error:
            if isinstance(error, stops) or storage_is_away(error):
                raise
            problems.append(error)
    return grouped(problems)


def grouped(problems: Iterable[Exception]) -> Exception | None:
    """The problems of several items as one ExceptionGroup, None if there are none."""
    causes = [
        cause
        for problem in problems
        for cause in (problem.exceptions if isinstance(problem, ExceptionGroup) else [problem])
    ]
    return ExceptionGroup("some items failed", causes) if causes else None


async def cancel(tasks: Iterable["asyncio.Task[None] | None"]) -> None:
    """Cancel tasks, and return once all of them have ended, whatever they raised."""
    ended = [task for task in tasks if task is not None]
    for task in ended:
        task.cancel()
    await asyncio.gather(*ended, return_exceptions=True)
