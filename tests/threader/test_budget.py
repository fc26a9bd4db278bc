"""What a run used, and what its budget says to that."""

import pytest

from schemas.manifest import Budget
from schemas.run_state import Spent, Usage
from tests.threader.builders import NOW, make_manifest, record
from threader.budget import (
    BLIND_LIMIT,
    add,
    budget_of,
    budget_text,
    count_text,
    over,
    spent_in,
    spent_text,
    used_up,
    why_stop,
)
from threader.initial_state import new_state

USED = Usage(input_tokens=900_000, cached_tokens=800_000, output_tokens=100_000, cost_usd=2.5)


def spent(*usages: Usage | None) -> Spent:
    total = Spent()
    for usage in usages:
        total = add(total, usage, completed=True)
    return total


def test_what_is_not_told_is_said_and_not_counted() -> None:
    assert spent_text(spent()) == "tokens not reported, cost not reported"
    assert spent_text(spent(None)) == "tokens not reported, cost not reported"
    assert spent_text(spent(USED)) == (
        "1 M tokens (900 k in, of which 800 k cached, 100 k out), $2.50"
    )
    assert spent_text(spent(USED, None)).endswith(
        "$2.50; not reported: tokens of 1 and cost of 1 of 2 invocations"
    )
    assert spent_text(spent(Usage(cost_usd=0.0021))) == "tokens not reported, $0.0021"
    codex = USED.model_copy(update={"cost_usd": None})
    assert spent_text(spent(codex)).endswith("cost not reported")


def test_a_run_is_the_sum_of_its_attempts_and_of_what_left_it() -> None:
    manifest = make_manifest(["A", "B"])
    state = new_state(manifest, NOW)
    done = {"duration_sec": 1.0, "exit_code": 0}
    told = record("A").model_copy(update={**done, "usage": USED})
    silent = record("A", 2).model_copy(update=done)
    away = record("A", 3).model_copy(update={**done, "outage": "rate limited"})
    refused = {**done, "usage": Usage(input_tokens=0, output_tokens=0)}
    state.tasks["A"].history = [told, silent, away, record("A", 4)]
    state.tasks["B"].history = [record("B").model_copy(update=refused)]
    state.aside = spent(USED)
    total = spent_in(state)
    assert (total.invocations, total.tokens_told, total.cost_usd) == (3, 2, 5.0)


@pytest.mark.parametrize(
    ("budget", "units"),
    [
        (Budget(), []),
        (Budget(tokens=1_000_001, usd=2.51), []),
        (Budget(tokens=1_000_000), ["tokens"]),
        (Budget(tokens=5, usd=2.5), ["tokens", "usd"]),
    ],
)
def test_a_budget_is_used_up_when_it_is_reached(budget: Budget, units: list[str]) -> None:
    assert used_up(spent(USED), budget) == units
    assert bool(why_stop(spent(USED), budget)) is bool(units)


def test_the_reason_names_the_limit_and_the_way_on() -> None:
    reason = why_stop(spent(USED), Budget(tokens=9_000_000, usd=2)) or ""
    assert reason.startswith("the budget of $2.00 is used up (1 M tokens")
    assert "cacp thread resume" in reason


def test_a_budget_that_nothing_is_told_of_is_not_kept() -> None:
    silent = [None] * BLIND_LIMIT
    assert why_stop(spent(*silent), Budget()) is None
    assert why_stop(spent(*silent[1:]), Budget(usd=1)) is None
    assert "reported no tokens or cost" in (why_stop(spent(*silent), Budget(tokens=1, usd=1)) or "")
    tokens_only = USED.model_copy(update={"cost_usd": None})
    total = spent(tokens_only, *silent)
    assert why_stop(total, Budget(tokens=10**9)) is None
    assert "cannot be kept: 4 invocations reported no cost" in (
        why_stop(total, Budget(usd=1)) or ""
    )
    crashed = Spent(invocations=9)
    assert why_stop(crashed, Budget(usd=1)) is None


def test_what_is_given_for_a_run_counts_before_its_manifest() -> None:
    state = new_state(make_manifest([]), NOW)
    assert budget_of(state, Budget(tokens=5)) == Budget(tokens=5)
    state.budget = over(Budget(usd=3), Budget(tokens=7, usd=1))
    assert budget_of(state, Budget(tokens=5)) == Budget(tokens=7, usd=3)
    assert budget_text(Budget(tokens=7, usd=3)) == "7 tokens and $3.00"
    assert budget_text(Budget()) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (12_345, "12.3 k"), (999_499, "999 k"), (1_234_567, "1.23 M")],
)
def test_counts(number: int, text: str) -> None:
    assert count_text(number) == text
