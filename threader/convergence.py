"""Whether healing helps, and when to stop (agent-threader-v2 §10). Pure."""

from collections.abc import Mapping

from schemas.v2 import FailureClass

_DEPTH = {
    FailureClass.TRANSIENT_INFRA: 0,
    FailureClass.TIMEOUT: 0,
    FailureClass.CONTRACT_ERROR: 1,
    FailureClass.OUTPUT_FORMAT: 1,
    FailureClass.PROMPT_GAP: 2,
    FailureClass.MISSING_PATHS: 2,
    FailureClass.WEAK_CONTRACT: 2,
    FailureClass.WRITE_REJECTED: 3,
    FailureClass.MERGE_CONFLICT: 4,
    FailureClass.BUILD_ERROR: 5,
    FailureClass.TEST_ERROR: 6,
    FailureClass.SMOKE_ERROR: 7,
}
"""How far an attempt got before it failed."""


def depth(signature: str) -> int:
    """The depth of a signature's class; unknown classes have a middle depth."""
    name = signature.partition(":")[0]
    return next((value for key, value in _DEPTH.items() if key == name), 2)


def repeated(failing: Mapping[str, str]) -> int:
    """How many failing tasks share their signature with an earlier one."""
    return len(failing) - len(set(failing.values()))


def is_converging(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether a heal round helped the tasks that it retried.

    Both map a failing task to its signature; `before` holds the retried tasks only.
    """
    if len(after) < len(before) or repeated(after) < repeated(before):
        return True
    common = before.keys() & after.keys()
    deeper = [depth(after[task]) - depth(before[task]) for task in common]
    return any(step > 0 for step in deeper) and all(step >= 0 for step in deeper)


def no_convergence(
    *,
    before: Mapping[str, str],
    after: Mapping[str, str],
    stalled_rounds: int,
    rounds_used: int,
    max_rounds_per_window: int,
    max_total_rounds: int,
) -> str | None:
    """Why healing must stop for these tasks, or None.

    Several fail with the same signatures through all rounds of a window, rounds keep failing beyond
    one window, or the run's rounds are used up. The run continues with other tasks.
    """
    same = len(after) > 1 and dict(before) == dict(after)
    if same and stalled_rounds >= max(1, max_rounds_per_window):
        return (
            f"repeated same failure signatures after allowed retries: {len(after)} tasks failed "
            f"alike through {stalled_rounds} heal rounds"
        )
    if after and stalled_rounds > max_rounds_per_window:
        return f"no reduction in failing task count across {stalled_rounds} heal rounds"
    if after and stalled_rounds and rounds_used >= max_total_rounds:
        return f"total healing budget exhausted ({max_total_rounds} rounds) without convergence"
    return None
