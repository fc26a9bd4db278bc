"""What a session of an agent is shown of what waits for it, each entry once (design-next N1).

An entry is an attention item or a message. Nothing is stored in the entries themselves: a node
keeps for each session which entries it was shown.

A claim's answer may get lost: a hook gives up after a fraction of a second. So a session says which
claim it `received` last, and entries of later claims count as not shown. Those of the last seconds
are excepted: the hooks of tools that run side by side ask at the same time. What keeps a session
from stopping does so once in any case, so that it can stop.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

SECOND = 1_000_000
UNDER_WAY = 2 * SECOND
"""How long an answer may take to reach its session."""
KEPT = 30 * 24 * 3600 * SECOND
"""How long it is remembered what a session was shown."""
SESSIONS_MAX = 100
"""Of how many sessions of an agent, the last ones, it is remembered: callers choose their names."""


class ShownOnce(NamedTuple):
    """That an entry was shown by the claim with the stamp `shown_at`, whether it has `held` the
    session from stopping, and whether the session has since `lost` it."""

    shown_at: int
    held: bool = False
    lost: bool = False


class FeedEntry(NamedTuple):
    """What waits for an agent: its id, and whether it may keep a session from stopping."""

    id: str
    urgent: bool


class FeedClaim(NamedTuple):
    """How a session asks: at stamp `now`, for `urgent` entries only, and whether it has lost what
    it was shown (`again`). `received` is None if it doesn't say what it has received."""

    now: int
    urgent: bool = False
    again: bool = False
    received: int | None = None


def standing(shown: Mapping[str, ShownOnce], claim: FeedClaim) -> dict[str, ShownOnce]:
    """What a session was shown, and what of it it has lost."""
    return {
        entry_id: state._replace(lost=state.lost or _is_lost(state, claim))
        for entry_id, state in shown.items()
    }


def _is_lost(state: ShownOnce, claim: FeedClaim) -> bool:
    if claim.received is None:
        return claim.again
    return claim.again or claim.received < state.shown_at <= claim.now - UNDER_WAY


def fresh(
    entries: Iterable[FeedEntry], shown: Mapping[str, ShownOnce], claim: FeedClaim
) -> list[FeedEntry]:
    """The entries to show to a session to which `shown` is standing, in the given order."""
    return [entry for entry in entries if _is_fresh(entry, shown.get(entry.id), claim)]


def _is_fresh(entry: FeedEntry, state: ShownOnce | None, claim: FeedClaim) -> bool:
    if claim.urgent:
        return entry.urgent and not (state and state.held)
    return state is None or state.lost


def noted(
    entries: Iterable[FeedEntry], shown: Mapping[str, ShownOnce], claim: FeedClaim
) -> dict[str, ShownOnce]:
    """What is standing once these entries are shown."""
    held = {entry_id for entry_id, state in shown.items() if state.held}
    return {entry.id: ShownOnce(claim.now, claim.urgent or entry.id in held) for entry in entries}


def fitting(texts: Iterable[str], size: int, most: int) -> int:
    """How many of the first texts to show: at most `most`, and as many as fit into `size`
    characters; a first one that is too long nevertheless."""
    count = used = 0
    for text in texts:
        used += len(text)
        if count == most or (count and used > size):
            break
        count += 1
    return count
