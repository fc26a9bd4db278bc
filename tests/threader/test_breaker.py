"""When a provider is asked again."""

from threader.breaker import GUESSES, OUTAGES_ALONE, Breaker
from threader.outage import Outage, OutageKind

BUSY = Outage(OutageKind.RATE_LIMIT, "429")


def breaker(chance: float = 1.0) -> Breaker:
    return Breaker(4, 60, 1000, lambda: chance)


def test_pauses_double_up_to_the_longest() -> None:
    gate, now, pauses = breaker(), 100.0, []
    for _ in range(6):
        assert gate.trip("A", BUSY, now)
        pauses.append(gate.until - now)
        assert gate.room(now, 0) == 0
        now = gate.until
        assert (gate.room(now, 0), gate.room(now, 1)) == (1, 0), "one probes"
    assert pauses == [4, 8, 16, 32, 60, 60]


def test_jitter_shortens_a_pause_by_half_at_most_and_never_what_was_asked() -> None:
    gate = breaker(chance=0.0)
    gate.trip("A", BUSY, 0.0)
    assert gate.until == 2
    for chance in (0.0, 0.5, 1.0):
        gate = breaker(chance)
        gate.trip("A", Outage(OutageKind.RATE_LIMIT, "429", 600), 0.0)
        assert 600 <= gate.until <= 660


def test_attempts_under_way_together_meet_one_outage() -> None:
    gate = breaker()
    for task in "ABCDE":
        gate.trip(task, BUSY, 1.0)
    assert gate.until == 5
    gate.trip("F", Outage(OutageKind.RATE_LIMIT, "429", 20), 2.0)
    assert gate.until == 24


def test_only_an_attempt_that_began_after_the_outage_closes_it() -> None:
    gate = breaker()
    gate.trip("A", BUSY, 10.0)
    assert not gate.passed(5.0)
    assert gate.room(11.0, 0) == 0
    assert gate.passed(14.0)
    assert gate.room(15.0, 7) is None
    assert gate.wait(15.0) is None
    gate.trip("A", BUSY, 20.0)
    assert gate.until == 24, "pauses begin anew"


def test_what_waiting_does_not_mend_is_asked_once_more_and_given_up() -> None:
    broke = Outage(OutageKind.QUOTA, "Credit balance is too low")
    gate = breaker()
    gate.trip("A", broke, 0.0)
    gate.trip("B", broke, 1.0, crowded=True)
    assert gate.lost(1.0) is None, "they were under way together"
    gate.trip("B", BUSY, 4.0)
    gate.trip("A", broke, 12.0)
    assert gate.lost(12.0) is None, "in between it was something else"
    gate.trip("B", broke, gate.until)
    reason = gate.lost(gate.until) or ""
    assert "its quota or credit is used up: Credit balance is too low" in reason
    assert "once that is fixed, `cacp thread resume` continues" in reason
    gate = breaker()
    gate.trip("A", broke, 0.0)
    assert gate.passed(4.0)
    gate.trip("A", broke, 9.0)
    assert gate.lost(9.0) is None


def test_a_task_that_alone_meets_outages_is_not_waited_for_for_ever() -> None:
    """Such as a prompt larger than the account's tokens per minute."""
    gate, now = breaker(), 0.0
    for _ in range(OUTAGES_ALONE):
        assert gate.trip("big", BUSY, now)
        now = gate.until
        assert gate.passed(now)
    assert not gate.trip("big", BUSY, now)
    assert gate.room(now, 0) is None
    assert gate.trip("small", BUSY, now)


def test_an_outage_without_end_is_given_up() -> None:
    gate = breaker()
    gate.trip("A", BUSY, 0.0)
    assert gate.lost(999.0) is None
    gate.trip("A", BUSY, 999.0)
    assert "17 min (rate limited: 429)" in (gate.lost(1000.0) or "")


def test_who_is_refused_in_a_crowd_has_done_nothing() -> None:
    """More attempts at once than the account allows: some get through, each time others."""
    gate, now = breaker(), 0.0
    for _ in range(9):
        assert gate.trip("A", BUSY, now, crowded=True)
        now = gate.until
        assert gate.passed(now)


def test_what_began_before_an_outage_says_nothing_of_it() -> None:
    gate = breaker()
    for now in (10.0, 20.0, 30.0, 40.0):
        assert gate.trip("A", BUSY, now), "nobody got through meanwhile"
        assert not gate.passed(5.0)


def test_guesses_are_believed_for_a_while_only() -> None:
    guess = Outage(OutageKind.NETWORK, "ECONNREFUSED", certain=False)
    gate, now = breaker(), 0.0
    for _ in range(GUESSES):
        assert gate.trip("A", guess, now)
        now = gate.until
    for task in "AB":
        assert not gate.trip(task, guess, now)
        assert gate.wait(now) is None
    assert gate.trip("A", BUSY, now), "what is certain is waited for as ever"
    now = gate.until
    assert gate.passed(now)
    assert gate.trip("B", guess, now)


def test_a_provider_that_asks_for_days_is_waited_for_to_the_limit() -> None:
    gate = breaker()
    gate.trip("A", Outage(OutageKind.RATE_LIMIT, "weekly", 600_000), 0.0)
    assert gate.wait(0.0) == 1000
    assert gate.lost(1000.0)
