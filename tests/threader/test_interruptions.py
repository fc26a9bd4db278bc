"""The times in which a run did not go on."""

from schemas.run_state import RunState, RunStatus, TaskStatus
from tests.threader.builders import make_manifest, record
from threader.initial_state import new_state
from threader.interruptions import last_sign, locked, over, paused, reopened, stopped


def at(minute: int) -> str:
    return f"2026-03-20T15:{minute:02}:00.000000+00:00"


def run() -> RunState:
    return new_state(make_manifest(["A", "B"]), at(0))


def told(state: RunState) -> list[tuple[str, str, str, str | None]]:
    return [
        (item.kind, item.cause, item.began[14:16], item.ended and item.ended[14:16])
        for item in state.interruptions
    ]


def test_an_outage_is_one_however_often_it_is_met() -> None:
    state = run()
    paused(state, at(1), "overloaded")
    paused(state, at(2), "rate limited")
    over(state, at(5), "outage")
    over(state, at(6), "outage")
    paused(state, at(7), "overloaded")
    assert told(state) == [
        ("outage", "rate limited", "01", "05"),
        ("outage", "overloaded", "07", None),
    ]
    assert [item.tries for item in state.interruptions] == [2, 1]


def test_a_lock_and_an_outage_go_beside_each_other() -> None:
    state = run()
    paused(state, at(1), "overloaded")
    locked(state, at(2), "index.lock")
    locked(state, at(3), "index.lock")
    over(state, at(4), "lock")
    assert told(state) == [
        ("outage", "overloaded", "01", None),
        ("lock", "index.lock", "02", "04"),
    ]


def test_a_stop_lasts_until_the_run_goes_on() -> None:
    state = run()
    paused(state, at(1), "overloaded")
    stopped(state, at(2), "stopped by a signal", ["A"])
    reopened(state, at(9))
    assert told(state) == [
        ("outage", "overloaded", "01", "02"),
        ("stopped", "stopped by a signal", "02", "09"),
    ]
    assert state.interruptions[1].tasks == ["A"]


def test_a_runner_that_was_killed_is_known_by_its_last_sign() -> None:
    state = run()
    paused(state, at(1), "overloaded")
    state.updated_at = at(3)
    state.tasks["A"].history = [record("A").model_copy(update={"timestamp": at(4)})]
    state.tasks["B"].status = TaskStatus.RUNNING
    assert last_sign(state) == at(4)
    reopened(state, at(9))
    assert told(state) == [
        ("outage", "overloaded", "01", "04"),
        ("killed", "the runner was killed, or crashed", "04", "09"),
    ]
    assert state.interruptions[1].tasks == ["B"]


def test_a_wait_that_a_kill_ended_lasted_until_the_runner_was_last_seen() -> None:
    state = run()
    locked(state, at(1), "index.lock")
    state.updated_at = at(1)
    reopened(state, at(9), seen=at(6))
    assert told(state) == [
        ("lock", "index.lock", "01", "06"),
        ("killed", "the runner was killed, or crashed", "06", "09"),
    ]


def test_a_runner_that_has_come_to_its_end_is_not_seen_later() -> None:
    state = run()
    state.run_status = RunStatus.COMPLETED
    reopened(state, at(9), seen=at(6))
    assert told(state)[0][2:] == ("00", "09")


def test_the_time_between_an_end_and_its_resume_has_the_ends_reason() -> None:
    state = run()
    state.run_status, state.abort_reason = RunStatus.ABORTED, "the budget is used up"
    reopened(state, at(9))
    assert told(state) == [("ended", "ABORTED: the budget is used up", "00", "09")]
