"""When what has ended is started again."""

from cli.cluster_restarts import FIRST_SECONDS, LONGEST_SECONDS, STEADY_SECONDS, Restarts


def test_the_pauses_grow_to_a_limit_while_starts_fail() -> None:
    restarts, now, pauses = Restarts(), 0.0, []
    restarts.started(now)
    for _ in range(8):
        now += 1
        pauses.append(restarts.ended(now))
        assert restarts.is_waiting
        now += pauses[-1]
        assert restarts.is_due(now)
        restarts.started(now)
    assert pauses[:4] == [FIRST_SECONDS, 1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST_SECONDS
    assert restarts.count == 8


def test_a_steady_run_is_forgiven_what_was_before() -> None:
    restarts = Restarts()
    restarts.started(0.0)
    restarts.ended(1.0)
    restarts.started(2.0)
    assert restarts.ended(3.0) > FIRST_SECONDS
    restarts.started(4.0)
    assert restarts.ended(4.0 + STEADY_SECONDS) == FIRST_SECONDS


def test_what_runs_is_never_due() -> None:
    restarts = Restarts()
    assert not restarts.is_due(1e9)
    restarts.started(0.0)
    assert not restarts.is_waiting
    assert not restarts.is_due(1e9)
    pause = restarts.ended(5.0)
    assert not restarts.is_due(5.0 + pause / 2)
