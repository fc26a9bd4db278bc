"""Pauses a run while its provider is unavailable: the breaker with a clock and a callback."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from schemas.manifest import ManifestPolicy
from schemas.v2 import FailureClass
from threader.breaker import Breaker, breaker_for
from threader.outage import Outage
from threader.outcome import Failure

LONG_SEC = 120.0
"""An outage that lasts this long should be reported to a person."""

_UNPROVEN = frozenset({FailureClass.TRANSIENT_INFRA, FailureClass.TIMEOUT})
"""Failures that do not show whether the provider was reached."""


class ProviderLost(Exception):
    """The outage lasted longer than the policy waits; the text says what it was."""


@dataclass
class Gate:
    """`tell` is called with a pause's reason and whether it is long, and with None at its end."""

    breaker: Breaker
    tell: Callable[[str | None, bool], None]
    clock: Callable[[], float] = field(default=time.monotonic)
    _under_way: set[str] = field(default_factory=set)
    _crowded: set[str] = field(default_factory=set)

    def room(self, limit: int, running: int) -> int:
        """How many attempts may begin. Raises ProviderLost when waiting has no point any more."""
        # A probe that is under way may get through.
        if not running and (lost := self.breaker.lost(self.clock())):
            raise ProviderLost(lost)
        room = self.breaker.room(self.clock(), running)
        return limit - running if room is None else room

    def wait(self) -> float | None:
        """Seconds until a probe is due; None when the gate is open."""
        return self.breaker.wait(self.clock())

    async def open(self) -> None:
        """Wait until an attempt may begin. Raises ProviderLost."""
        while not self.room(1, 0):  # noqa: ASYNC110  the time itself is awaited
            await asyncio.sleep(self.wait() or 0)

    def begin(self, task_id: str) -> float:
        """Note that an attempt begins; returns its start time."""
        self._under_way.add(task_id)
        if len(self._under_way) > 1:
            self._crowded |= self._under_way
        return self.clock()

    def weigh(self, task_id: str, failure: Failure | None, started: float) -> Failure | None:
        """The failure to book: an outage that only this task meets is the task's own failure."""
        crowded = task_id in self._crowded
        self._under_way.discard(task_id)
        self._crowded.discard(task_id)
        if failure is not None and failure.outage is not None:
            tripped = self.trip(task_id, failure.outage, crowded=crowded)
            return failure if tripped else replace(failure, outage=None)
        if failure is None or failure.failure_class not in _UNPROVEN:
            self.passed(started)
        return failure

    def trip(self, task_id: str, outage: Outage, *, crowded: bool = False) -> bool:
        waited = self.wait() is not None
        if not self.breaker.trip(task_id, outage, self.clock(), crowded=crowded):
            if waited and self.wait() is None:
                self.tell(None, False)
            return False
        long = self.breaker.until - (self.breaker.since or 0) >= LONG_SEC
        pause = self.wait() or 0
        lost = self.breaker.lost(self.clock())
        text = f"the provider is unavailable, {outage.reason}; next try in {pause:.0f} s"
        self.tell(lost or text, long or lost is not None)
        return True

    def passed(self, started: float) -> None:
        if self.breaker.passed(started):
            self.tell(None, False)


def make_gate(policy: ManifestPolicy, tell: Callable[[str | None, bool], None]) -> Gate:
    return Gate(breaker_for(policy, random.random), tell)
