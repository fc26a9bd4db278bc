"""Channels by priority (acp-canonical §10)."""

from server.domain.acp.routing import CHANNELS, ROUTES, capabilities, channels, reaches


def test_the_routes_are_those_of_the_specification() -> None:
    assert ROUTES["low"] == ("inbox",)
    assert set(ROUTES["normal"]) == {"inbox", "session"}
    assert set(ROUTES["high"]) == {"inbox", "session", "channel"}
    assert set(ROUTES["critical"]) == set(CHANNELS)


def test_only_the_inbox_is_there_by_default() -> None:
    states = capabilities(frozenset(), frozenset(CHANNELS))
    assert states == {
        "inbox": "available",
        "session": "disabled",
        "channel": "disabled",
        "wake": "disabled",
    }
    assert channels("critical", states) == ["inbox"]


def test_a_flag_alone_makes_no_channel() -> None:
    states = capabilities(frozenset({"wake", "channel"}), frozenset({"channel"}))
    assert (states["wake"], states["channel"]) == ("unavailable", "available")
    assert channels("critical", states) == ["inbox", "channel"]
    assert channels("normal", states) == ["inbox"]


def test_an_operator_may_let_lesser_priorities_wake() -> None:
    """§10.2: by default only what is critical wakes."""
    states = capabilities(frozenset({"wake"}), frozenset(CHANNELS))
    assert channels("high", states) == ["inbox"]
    assert channels("critical", states) == ["inbox", "wake"]
    assert channels("high", states, wake_from="high") == ["inbox", "wake"]
    assert channels("normal", states, wake_from="high") == ["inbox"]


def test_priorities_have_an_order() -> None:
    assert reaches("critical", "low")
    assert reaches("high", "high")
    assert not reaches("normal", "high")
