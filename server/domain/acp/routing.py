"""Which channels a message takes, by its priority (acp-canonical §10)."""

from typing import Literal, get_args

from schemas.acp import ACPPriority

Channel = Literal["session", "inbox", "channel", "wake"]
State = Literal["available", "disabled", "unavailable"]

ROUTES: dict[ACPPriority, tuple[Channel, ...]] = {
    "low": ("inbox",),
    "normal": ("inbox", "session"),
    "high": ("inbox", "session", "channel"),
    "critical": ("inbox", "session", "channel", "wake"),
}
"""§10.2. The inbox is always taken; the others where they are available."""

PRIORITIES: tuple[ACPPriority, ...] = get_args(ACPPriority)
"""From the least to the greatest."""

ALWAYS: Channel = "inbox"
CHANNELS: tuple[Channel, ...] = ("inbox", "session", "channel", "wake")


def capabilities(enabled: frozenset[Channel], working: frozenset[Channel]) -> dict[Channel, State]:
    """What each channel can do: the inbox always works; another is disabled until its flag is set
    (§10.1), and unavailable until something serves it."""
    return {
        one: "available"
        if one == ALWAYS or one in enabled & working
        else "unavailable"
        if one in enabled
        else "disabled"
        for one in CHANNELS
    }


def channels(
    priority: ACPPriority, states: dict[Channel, State], wake_from: ACPPriority = "critical"
) -> list[Channel]:
    """The channels that a message of this priority takes now. An operator may let lesser ones wake
    too, by `wake_from`."""
    wakes = reaches(priority, wake_from)
    return [
        one
        for one in CHANNELS
        if states[one] == "available" and (one in ROUTES[priority] or (one == "wake" and wakes))
    ]


def reaches(priority: ACPPriority, least: ACPPriority) -> bool:
    """Whether a priority is that one or a greater."""
    return PRIORITIES.index(priority) >= PRIORITIES.index(least)
