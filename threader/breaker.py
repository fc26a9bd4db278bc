"""When to ask a provider again that could not be had. Pure: times and chance are brought along.

The breaker opens at the first outage: no attempt begins until the pause is over. Then one probes;
when it gets through all go on, else the next pause is longer. A pause is at least what the provider
asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.manifest import ManifestPolicy
from threader.outage import Outage, OutageKind

OUTAGES_ALONE = 3
"""So often may one task meet an outage that others do not; then it is the task's own failure."""

REFUSALS = 2
"""So many pauses in a row may end in a refusal that waiting does not mend."""

GUESSES = 12
"""So many pauses in a row may rest on guesses, about half an hour; then failures are what they look
like, until an attempt reaches the provider."""


@dataclass
class Breaker:
    """One provider's, of one run. Times are seconds of one clock; `chance` gives 0 to 1."""

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
        """Note an outage that an attempt met; False when it is the task's own doing.

        `crowded`: others were under way beside it. Where a provider serves some of many, it says
        nothing about the task that is refused.
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
        # Attempts that were under way together meet one outage, not one each.
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
        """How many attempts may begin now; None is no limit."""
        if self.since is None:
            return None
        return 1 if now >= self.until and running == 0 else 0

    def wait(self, now: float) -> float | None:
        """Seconds until a probe is due, or the limit; None when nothing is waited for."""
        if self.since is None:
            return None
        if self._refusals >= REFUSALS:
            return 0.0
        return max(0.0, min(self.until, self.since + self.limit) - now)

    def lost(self, now: float) -> str | None:
        """Why to stop waiting, or None."""
        if self.since is None or self.outage is None:
            return None
        if self._refusals >= REFUSALS:
            return (
                f"the provider refuses, and waiting mends nothing ({self.outage.reason}); no "
                "attempt was counted, and once that is mended, `cacp thread resume` goes on"
            )
        if now - self.since < self.limit:
            return None
        return (
            f"the provider could not be had for {_length(now - self.since)} "
            f"({self.outage.reason}); no attempt was counted, and `cacp thread resume` goes on"
        )


def _length(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def breaker_for(policy: ManifestPolicy, chance: Callable[[], float]) -> Breaker:
    return Breaker(
        policy.outage_pause_sec, policy.outage_longest_pause_sec, policy.outage_limit_sec, chance
    )
