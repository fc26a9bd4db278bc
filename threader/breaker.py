"""Decides when to try an unavailable provider again. Pure: time and chance are arguments.

The breaker opens at the first outage: no attempt begins until the pause is over. Then one attempt
probes; if it succeeds, all continue; otherwise the next pause is longer. A pause is at least as
long as the provider asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.manifest import ManifestPolicy
from threader.outage import Outage, OutageKind

OUTAGES_ALONE = 3
"""A task that alone meets this many outages, while others succeed, has failed on its own."""

REFUSALS = 2
"""After this many pauses in a row that end in a refusal, waiting is pointless."""

GUESSES = 12
"""At most this many pauses in a row, about half an hour, may rest on a guess. After that, failures
are not taken for outages until an attempt reaches the provider."""


@dataclass
class Breaker:
    """The breaker of one run. Times are seconds of one clock; `chance` returns 0 to 1."""

    first_pause: float
    longest_pause: float
    limit: float
    chance: Callable[[], float]
    since: float | None = None
    until: float = 0.0
    outage: Outage | None = None
    _trips: int = 0
    _tripped_at: float | None = None
    _guesses: int = 0
    _refusals: int = 0
    _passed: int = 0
    _met: dict[str, tuple[int, int]] = field(default_factory=dict)

    def trip(self, task_id: str, outage: Outage, now: float, *, crowded: bool = False) -> bool:
        """Note an outage that an attempt met. False when the cause is the task itself.

        `crowded`: other attempts ran concurrently. A provider that serves only some of them says
        nothing about the task that it refuses.
        """
        if now >= self.until and not outage.certain:
            self._guesses += 1
        if not outage.certain and self._guesses > GUESSES:
            self._close()
            return False
        passed, alone = self._met.get(task_id, (self._passed, 0))
        alone += passed != self._passed and not crowded
        if alone >= OUTAGES_ALONE:
            self._met.pop(task_id)
            return False
        self._met[task_id] = (self._passed, alone)
        asked = (outage.retry_after or 0.0) * (1 + self.chance() / 10)
        if self.since is None:
            self.since = now
        if now >= self.until:
            self._refusals = self._refusals + 1 if outage.kind is OutageKind.QUOTA else 0
            self._trips += 1
            pause = self.first_pause * 2.0 ** min(self._trips - 1, 30)
            asked = max(asked, min(pause, self.longest_pause) * (0.5 + self.chance() / 2))
        # Concurrent attempts meet one outage, not one each.
        self.until = max(self.until, now + asked)
        self.outage, self._tripped_at = outage, now
        return True

    def _close(self) -> None:
        self.since, self.outage, self._trips = None, None, 0
        self._refusals = 0

    def passed(self, started: float) -> bool:
        """Note an attempt, begun at `started`, that reached the provider; True if that ends it.

        One that began before the last outage proves nothing.
        """
        if self._tripped_at is not None and started < self._tripped_at:
            return False
        self._passed += 1
        self._guesses = 0
        was_open = self.since is not None
        self._close()
        return was_open

    def room(self, now: float, running: int) -> int | None:
        """How many attempts may begin now; None for no limit."""
        if self.since is None:
            return None
        return 1 if now >= self.until and running == 0 else 0

    def wait(self, now: float) -> float | None:
        """Seconds until a probe is due, or until the limit; None when the breaker is closed."""
        if self.since is None:
            return None
        if self._refusals >= REFUSALS:
            return 0.0
        return max(0.0, min(self.until, self.since + self.limit) - now)

    def lost(self, now: float) -> str | None:
        """Why waiting has no point any more, or None."""
        if self.since is None or self.outage is None:
            return None
        if self._refusals >= REFUSALS:
            return (
                f"the provider refuses, and waiting does not help ({self.outage.reason}); no "
                "attempt was counted; once that is fixed, `cacp thread resume` continues"
            )
        if now - self.since < self.limit:
            return None
        return (
            f"the provider was unavailable for {_length(now - self.since)} "
            f"({self.outage.reason}); no attempt was counted; `cacp thread resume` continues"
        )


def _length(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def breaker_for(policy: ManifestPolicy, chance: Callable[[], float]) -> Breaker:
    return Breaker(
        policy.outage_pause_sec, policy.outage_longest_pause_sec, policy.outage_limit_sec, chance
    )
