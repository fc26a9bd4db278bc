"""Refusals are named once for each cause, however often they come."""

from structlog.testing import capture_logs

from server.util.log_once import CAUSES_MAX, QUIET_SECONDS, RateLimitedLog, name_once


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_storm_is_one_line_for_each_cause() -> None:
    notices = RateLimitedLog(Clock())
    with capture_logs() as lines:
        for number in range(10_000):
            notices.refused("refused", ("limit", "1.2.3.4"), agent=f"peer-{number}")
        notices.refused("refused", ("limit", "5.6.7.8"))
    assert lines == [
        {"event": "refused", "log_level": "warning", "agent": "peer-0"},
        {"event": "refused", "log_level": "warning"},
    ]


def test_what_goes_on_is_named_again_with_how_much_was_left_out() -> None:
    clock = Clock()
    notices = RateLimitedLog(clock)
    with capture_logs() as lines:
        for _ in range(3):
            notices.refused("refused", ("limit",))
        clock.now += QUIET_SECONDS
        notices.refused("refused", ("limit",))
    assert [line.get("left_out") for line in lines] == [None, 2]


def test_causes_are_bounded() -> None:
    notices = RateLimitedLog(Clock())
    with capture_logs() as lines:
        for number in [*range(CAUSES_MAX + 1), 0, CAUSES_MAX]:
            notices.refused("refused", (number,))
    assert len(lines) == CAUSES_MAX + 2, "the first was forgotten, the last was not"


def test_what_is_named_once_is_named_for_each_that_it_is_about() -> None:
    with capture_logs() as lines:
        for peer in ("a", "b", "a"):
            name_once("named_once", peer=peer, reason="why")
    assert [line["peer"] for line in lines] == ["a", "b"]
