"""What is wrong with a node's time, in words, with the remedy (design §7)."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from peers.clock import SECOND, Sure, Verdict, is_ahead
from schemas.base import iso

Reason = Literal[
    "clock_off", "clocks_disagree", "clock_jumped", "clock_unconfirmed", "deferred", "stamps_ahead"
]


class Trouble(NamedTuple):
    """`detail` says what is wrong and what to do."""

    reason: Reason
    detail: str


class Deferred(NamedTuple):
    """What peers sent that is not taken in before it is due: how many messages, and when the last
    of them is (microseconds since 1970)."""

    messages: int = 0
    until: int = 0


def trouble(
    verdict: Verdict,
    *,
    has_jumped: bool,
    newest: int,
    deferred: Deferred,
    now: int,
    doubt: Sure | None = None,
    name: Callable[[str], str] | None = None,
) -> Trouble | None:
    """The worst that is wrong; None when nothing is. Times are microseconds.

    `newest` is the largest stamp of what is stored here, `doubt` what is sure while the clock is
    in doubt. Peers are told by `name`, or not named at
    all: `/health` is public.
    """
    if verdict.is_off:
        return Trouble(
            "clock_off",
            f"This machine's clock is {_way(-verdict.correction)} the time that "
            f"{verdict.agreeing} of {verdict.clocks} nodes share; what is written here is stamped "
            "with theirs. Set this machine's clock: run NTP",
        )
    if verdict.is_disputed:
        return Trouble(
            "clocks_disagree",
            f"Beside this node's clock {_told(verdict, name)}, and no majority of the "
            f"{verdict.clocks} nodes shares one time: nobody's is believed. Run NTP on each",
        )
    if has_jumped:
        return Trouble(
            "clock_jumped",
            "This machine's clock was set a moment ago, and is not followed before it has stood by "
            "that for a minute. If nobody meant to set it, look at what does: one NTP client",
        )
    if doubt is not None:
        return Trouble(
            "clock_unconfirmed",
            f"{doubted(doubt, now)}. The node works, but nothing expires, is archived or forgotten "
            f"by it: not before a peer's clock agrees, or {_length(doubt.left)} of running have "
            "passed. If it is right, `cacp clock confirm`; else set it: run NTP",
        )
    if deferred.messages:
        count = "1 message is" if deferred.messages == 1 else f"{deferred.messages} messages are"
        return Trouble(
            "deferred",
            f"Of what peers sent {count} stamped too far ahead of the time, and shown here not all "
            f"before {iso(deferred.until)}: a clock was wrong when it was written. Run NTP there; "
            "`cacp clock deferred` lists it, `cacp clock accept` takes it in now",
        )
    if is_ahead(newest, now):
        return Trouble(
            "stamps_ahead",
            f"Something here is stamped {iso(newest)}, {_length(newest - now)} ahead: a clock was "
            "wrong when it was written. Lists show it after what is written until then; it hides "
            "nothing, and what is written now has the right time. Run NTP, so that it stays so",
        )
    return None


def doubted(sure: Sure, now: int) -> str:
    """How far a clock in doubt is from what the node was sure of, in words."""
    return (
        f"This machine's clock says {iso(now)}, {_way(now - sure.time)} the last time that this "
        "node was sure of"
    )


def _told(verdict: Verdict, name: Callable[[str], str] | None) -> str:
    clocks = [
        f"{name(peer) if name else 'one'} is {_way(ahead)} it" for peer, ahead in verdict.apart
    ]
    return ", ".join(clocks)


def _way(ahead: int) -> str:
    return f"{_length(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'}"


def _length(time: int) -> str:
    seconds = round(time / SECOND)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds} s"
