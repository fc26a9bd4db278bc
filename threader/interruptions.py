"""The times in which a run was interrupted, and why. Pure: times are arguments, ISO 8601 text."""

from collections.abc import Sequence

from schemas.run_state import Interruption, RunState, RunStatus, TaskStatus

BY_SIGNAL = "stopped by a signal"


def _open(state: RunState, kind: str) -> Interruption | None:
    of_kind = (item for item in reversed(state.interruptions) if item.kind == kind)
    latest = next(of_kind, None)
    return latest if latest is not None and latest.ended is None else None


def paused(state: RunState, now: str, cause: str) -> None:
    """An attempt met an outage of the provider."""
    known = _open(state, "outage")
    if known is None:
        known = Interruption(kind="outage", cause=cause, began=now)
        state.interruptions.append(known)
    known.cause = cause
    known.tries += 1


def locked(state: RunState, now: str, cause: str) -> None:
    """Another git holds a lock that the run waits for."""
    if _open(state, "lock") is None:
        state.interruptions.append(Interruption(kind="lock", cause=cause, began=now))


def over(state: RunState, now: str, kind: str) -> None:
    """The wait for an outage or a lock is over."""
    if (known := _open(state, kind)) is not None:
        known.ended = now


def stopped(state: RunState, now: str, cause: str, tasks: Sequence[str]) -> None:
    """The runner ends before the run does; `tasks` were under way."""
    _close(state, now)
    state.interruptions.append(
        Interruption(kind="stopped", cause=cause, began=now, tasks=list(tasks))
    )


def why_stopped(state: RunState) -> str | None:
    """What stopped the runner before the end of its run; None while it runs or has ended."""
    known = _open(state, "stopped") if state.run_status is RunStatus.RUNNING else None
    return None if known is None else known.cause


def _close(state: RunState, now: str) -> None:
    for item in state.interruptions:
        if item.ended is None:
            item.ended = now


def last_sign(state: RunState) -> str:
    """When the state last changed, as far as it is on disk."""
    records = (task.history[-1].timestamp for task in state.tasks.values() if task.history)
    return max([state.updated_at, *records])


def reopened(state: RunState, now: str, seen: str | None = None) -> None:
    """Book the interruption before a resume. Call it before the state is changed for the resume.

    `seen`: when the runner was last alive; a run that only waits writes no state.
    """
    if _open(state, "stopped") is not None:
        _close(state, now)
        return
    began = last_sign(state)
    if state.run_status is RunStatus.RUNNING:
        began = min(now, max(began, seen or began))
    _close(state, began)
    if state.run_status is RunStatus.RUNNING:
        cut = [key for key, task in state.tasks.items() if task.status is TaskStatus.RUNNING]
        item = Interruption(
            kind="killed",
            cause="the runner was killed, or crashed",
            began=began,
            ended=now,
            tasks=cut,
        )
    else:
        cause = f"{state.run_status}: {state.abort_reason or 'every task had come to its end'}"
        item = Interruption(kind="ended", cause=cause, began=began, ended=now)
    state.interruptions.append(item)
