"""Heal rounds in the state of a run. Whole runs are in scenarios/."""

from schemas.run_state import HealerFailure, HealingRound, TaskStatus
from tests.threader.builders import NOW, decide, make_manifest, outcome_of, record
from threader.heal_rounds import HEALER_TRIES, rounds_used
from threader.healing import review
from threader.initial_state import new_state
from threader.scheduler import Scheduler


def make_failed() -> Scheduler:
    """A window whose one task has failed and needs healing."""
    manifest = make_manifest(["A"], {"heal_schedule": "batch"})
    scheduler = Scheduler(manifest, new_state(manifest, NOW))
    scheduler.open_window()
    scheduler.tasks.start("A")
    scheduler.settle("A", outcome_of("prompt_gap one"), [record("A")])
    scheduler.close_pass(NOW, healer=True)
    return scheduler


def test_a_granted_decision_resets_the_task_and_is_noted_in_its_history() -> None:
    scheduler = make_failed()
    healing = scheduler.healing
    assert (healing.scope(), healing.next_number(), healing.next_patch()) == (["A"], 1, 1)
    hint = {"target": "contract_hint", "operation": "append", "content": "mind the gap"}
    decision = decide(patches=[hint], learned_rule="always mind it")
    grant = review(decision, scheduler.manifest, ["A"], 1)
    assert not isinstance(grant, list)
    round_ = HealingRound(
        round_number=1,
        scope="batch",
        window_task_ids=["A"],
        failed_task_ids=["A"],
        decision="RETRY",
        applied_patch_ids=list(grant.patch_ids),
        timestamp=NOW,
    )
    healing.apply(round_, decision, grant)
    task = scheduler.tasks["A"]
    assert (task.status, task.hints) == (TaskStatus.PENDING, ["mind the gap"])
    assert task.history[-1].phase == "healer"
    assert [item.rule for item in scheduler.state.learned_rules] == ["always mind it"]
    assert (rounds_used(scheduler.state), healing.next_patch()) == (1, 2)
    assert scheduler.runnable() == ["A"]


def test_a_healer_that_fails_twice_is_given_up_and_costs_no_round() -> None:
    scheduler = make_failed()
    failure = HealerFailure(
        window=1, failed_task_ids=["A"], note="no decision", log_path="logs/h.log", timestamp=NOW
    )
    given_up = [scheduler.healing.fail(failure) for _ in range(HEALER_TRIES)]
    assert given_up == [False, True]
    assert (scheduler.state.window, rounds_used(scheduler.state)) == (None, 0)
