"""When an agent was last nudged about what waits for it, so that nobody is nudged twice at once."""

from typing import NamedTuple

from server.domain.errors import RateLimited

NUDGE_SECONDS = 600.0
REMEMBERED_MAX = 5_000


class SentNudge(NamedTuple):
    """A nudge: when (seconds, monotonic), and the id of the form that sent it."""

    at: float
    form: str


class Nudges:
    """Remembers nudges of the last minutes, by agent and item, whoever sent them."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], SentNudge] = {}

    def note(self, agent: str, item: str, sent: SentNudge) -> None:
        """Note a nudge. Raises RateLimited soon after another, unless it is the same form again,
        whose call is answered as before."""
        before = self._sent.get((agent, item))
        if before is not None and sent.at - before.at < NUDGE_SECONDS:
            if sent.form and sent.form == before.form:
                return
            minutes = int((sent.at - before.at) // 60)
            ago = f"{minutes} min ago" if minutes else "less than a minute ago"
            raise RateLimited(
                f"{agent} was nudged about this {ago}: give it {int(NUDGE_SECONDS // 60)} minutes",
                retryAfter=int(NUDGE_SECONDS - (sent.at - before.at)) + 1,
            )
        self._sent.pop((agent, item), None)
        self._sent[agent, item] = sent
        if len(self._sent) > REMEMBERED_MAX:
            del self._sent[next(iter(self._sent))]

    def forget(self, agent: str, item: str) -> None:
        """Forget a nudge that was refused."""
        self._sent.pop((agent, item), None)
