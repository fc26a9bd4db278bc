"""When an agent was last nudged about what waits for it, so that nobody is nudged twice at once."""

from server.cluster.shared_values import SharedValues
from server.domain.errors import RateLimited

NUDGE_SECONDS = 600.0


class Nudges:
    """Remembers nudges of the last minutes, by agent and item, whoever sent them."""

    def __init__(self, kept: SharedValues) -> None:
        self._kept = kept

    async def note(self, agent: str, item: str, form: str) -> None:
        """Note a nudge that the form with this id sends. Raises RateLimited soon after another,
        unless it is the same form again, whose call is answered as before."""
        before = await self._kept.put_new(_name(agent, item), form, NUDGE_SECONDS)
        if before is None:
            return
        first_form, left = before
        if form and form == first_form:
            return
        minutes = int((NUDGE_SECONDS - left) // 60)
        ago = f"{minutes} min ago" if minutes else "less than a minute ago"
        raise RateLimited(
            f"{agent} was nudged about this {ago}: give it {int(NUDGE_SECONDS // 60)} minutes",
            retryAfter=int(left) + 1,
        )

    async def forget(self, agent: str, item: str) -> None:
        """Forget a nudge that was refused."""
        await self._kept.take(_name(agent, item))


def _name(agent: str, item: str) -> str:
    return f"{agent} {item}"
