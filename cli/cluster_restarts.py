"""When a process that has ended is started again. Pure."""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 15.0
STEADY_SECONDS = 30.0
"""A run of this length forgives the failures before it."""


class Restarts:
    """The restarts of one process. Times are seconds of any clock that only goes forward.

    >>> restarts = Restarts()
    >>> restarts.started(0.0)
    >>> restarts.ended(10.0), restarts.is_due(10.0), restarts.is_due(10.5)
    (0.5, False, True)
    """

    def __init__(self) -> None:
        self.count = 0
        """How often it ended."""
        self._began = 0.0
        self._pause = FIRST_SECONDS
        self._due: float | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether it has ended and was not started since."""
        return self._due is not None

    def started(self, now: float) -> None:
        self._began = now
        self._due = None

    def ended(self, now: float) -> float:
        """Returns the seconds until it is to be started again: the more, the oftener it ended
        soon after its start."""
        self.count += 1
        steady = now - self._began >= STEADY_SECONDS
        pause = FIRST_SECONDS if steady else self._pause
        self._pause = min(2 * pause, LONGEST_SECONDS)
        self._due = now + pause
        return pause

    def is_due(self, now: float) -> bool:
        return self._due is not None and now >= self._due
