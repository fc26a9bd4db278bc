"""In the name of which duty a task acts (`server.domain.duty`).

The holder of a duty starts its services within `acting`. Every task that they start inherits it, so
that all they write is verified in its transaction (`Database.write`), and all that they send to
others is checked first (`server.util.outgoing_client`). Calls of others act in nobody's name.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from server.domain.errors import Unavailable


@dataclass(slots=True)
class HeldDuty:
    """A duty as its holder knows it. `until` is in microseconds of `steady`, a clock of this
    machine that never jumps."""

    replica: str
    epoch: int
    until: int
    steady: Callable[[], int]

    @property
    def is_held(self) -> bool:
        """Whether no other replica can have it yet."""
        return self.steady() < self.until

    def check(self) -> None:
        """Raise Unavailable when the lease has lapsed: another replica may do this by now."""
        if not self.is_held:
            raise duty_lost()


_ACTING: ContextVar[HeldDuty | None] = ContextVar("duty", default=None)


def acting_for() -> HeldDuty | None:
    """The duty in whose name the current task acts."""
    return _ACTING.get()


@contextmanager
def acting(duty: HeldDuty | None) -> Iterator[None]:
    """Act in the name of a duty; so do the tasks that are started within."""
    token = _ACTING.set(duty)
    try:
        yield
    finally:
        _ACTING.reset(token)


def check_duty() -> None:
    """Before an effect outside of the database: raise Unavailable when the current task acts in the
    name of a duty that has lapsed."""
    duty = _ACTING.get()
    if duty is not None:
        duty.check()


def duty_lost() -> Unavailable:
    """What a former holder gets. `Loops` waits with it as with a database that is away."""
    return Unavailable(
        "Another replica does the background work now: nothing was written", reason="duty_lost"
    )
