"""The channels of a message, by its priority (acp-canonical §10)."""

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
"""§10.2. The inbox always gets the message; other channels where they are available."""

PRIORITIES: tuple[ACPPriority, ...] = get_args(ACPPriority)
"""From the lowest to the highest."""

ALWAYS: Channel = "inbox"
CHANNELS: tuple[Channel, ...] = ("inbox", "session", "channel", "wake")


def capabilities(enabled: frozenset[Channel], working: frozenset[Channel]) -> dict[Channel, State]:
    """The state of each channel. The inbox is always available; others are disabled until their
    flag is set (§10.1), and unavailable until something serves them."""
    return {
        channel: "available"
        if channel == ALWAYS or channel in enabled & working
        else "unavailable"
        if channel in enabled
        else "disabled"
        for channel in CHANNELS
    }


def channels(
    priority: ACPPriority, states: dict[Channel, State], wake_from: ACPPriority = "critical"
) -> list[Channel]:
    """The channels of a message of this priority now. `wake_from` is the lowest priority that runs
    wake commands."""
    wakes = reaches(priority, wake_from)
    return [
        channel
        for channel in CHANNELS
        if states[channel] == "available"
        and (channel in ROUTES[priority] or (channel == "wake" and wakes))
    ]


def reaches(priority: ACPPriority, least: ACPPriority) -> bool:
    """Whether a priority is at least `least`."""
    return PRIORITIES.index(priority) >= PRIORITIES.index(least)
