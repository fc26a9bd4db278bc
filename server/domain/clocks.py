"""Problems with a node's time, in words, with the remedy (design §7)."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from peers.clock import SECOND, ClockVerdict, Sure, is_ahead
from schemas.stamps import iso

Reason = Literal[
    "clock_off", "clocks_disagree", "clock_jumped", "clock_unconfirmed", "deferred", "stamps_ahead"
]


class Trouble(NamedTuple):
    """A problem with the time; `detail` says what is wrong and what to do."""

    reason: Reason
    detail: str


class Deferred(NamedTuple):
    """Messages of peers that are stamped ahead of the time: how many, and when the last of them is
    due (microseconds since 1970)."""

    messages: int = 0
    until: int = 0


def trouble(
    verdict: ClockVerdict,
    *,
    has_jumped: bool,
    newest: int,
    deferred: Deferred,
    now: int,
    doubt: Sure | None = None,
    name: Callable[[str], str] | None = None,
) -> Trouble | None:
    """The gravest problem with the node's time; None when there is none. Times are microseconds.

    `newest` is the largest stamp of what is stored here, `doubt` the last sure time while the clock
    is in doubt. `name` gives a peer's name; without it peers stay unnamed, because `/health` is
    public.
    """
    if verdict.is_off:
        return _clock_off(verdict)
    if verdict.is_disputed:
        return _clocks_disagree(verdict, name)
    if has_jumped:
        return JUMPED
    if doubt is not None:
        return _clock_unconfirmed(doubt, now)
    if deferred.messages:
        return _messages_deferred(deferred)
    return _stamps_ahead(newest, now) if is_ahead(newest, now) else None


def _clock_off(verdict: ClockVerdict) -> Trouble:
    return Trouble(
        "clock_off",
        f"This machine's clock is {_way(-verdict.correction)} the time that "
        f"{verdict.agreeing} of {verdict.clocks} nodes share; new entries are stamped with their "
        "time. Set this machine's clock: run NTP",
    )


def _clocks_disagree(verdict: ClockVerdict, name: Callable[[str], str] | None) -> Trouble:
    apart = ", ".join(
        f"{name(peer) if name else 'a peer'} is {_way(ahead)} this node"
        for peer, ahead in verdict.apart
    )
    return Trouble(
        "clocks_disagree",
        f"The clocks of the {verdict.clocks} nodes disagree, and no majority shares one time, so "
        f"none is trusted: {apart}. Run NTP on each node",
    )


JUMPED = Trouble(
    "clock_jumped",
    "This machine's clock was set a moment ago; the node adopts the new time after a minute "
    "without another change. If the change was not intended, find its cause: run only one NTP "
    "client",
)


def _clock_unconfirmed(doubt: Sure, now: int) -> Trouble:
    return Trouble(
        "clock_unconfirmed",
        f"{doubted(doubt, now)}. The node works, but nothing expires, is archived or deleted "
        f"by this clock until a peer's clock agrees or the node has run for {_length(doubt.left)}. "
        "If the clock is right, run `cacp clock confirm`; else set it: run NTP",
    )


def _messages_deferred(deferred: Deferred) -> Trouble:
    if deferred.messages == 1:
        count = "1 peer message is deferred because its timestamp is too far in the future; it will"
    else:
        count = (
            f"{deferred.messages} peer messages are deferred because their timestamps are too far "
            "in the future; the last will"
        )
    return Trouble(
        "deferred",
        f"{count} be applied at {iso(deferred.until)}. A sender's clock was wrong: run NTP there. "
        "`cacp clock deferred` lists such messages, `cacp clock accept` applies them now",
    )


def _stamps_ahead(newest: int, now: int) -> Trouble:
    return Trouble(
        "stamps_ahead",
        f"An entry of this node has the timestamp {iso(newest)}, {_length(newest - now)} in the "
        "future: a clock was wrong when it was written. Until then, lists show it after newer "
        "entries; nothing is hidden, and new entries get the right time. Run NTP",
    )


def doubted(sure: Sure, now: int) -> str:
    """How far a doubted clock is from the last sure time, in words."""
    return (
        f"This machine's clock says {iso(now)}, {_way(now - sure.time)} the last time that this "
        "node had confirmed"
    )


def _way(ahead: int) -> str:
    return f"{_length(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'}"


def _length(time: int) -> str:
    seconds = round(time / SECOND)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds} s"
