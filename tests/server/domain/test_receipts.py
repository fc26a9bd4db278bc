"""Zero false done: whatever is claimed, only what was proven is verified (N2)."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.base import iso, stamp_of
from schemas.facts import ReceiptFact
from server.domain import contract, contract_steps
from server.domain.receipts import fact_of, flaw_of, judged, receipts_of
from tests.server.domain.histories import API, SECOND, WEB
from tests.server.domain.liars import (
    CONTRACT,
    LIARS,
    TOLD,
    Brought,
    Scenario,
    Told,
    resigned,
    scenario,
    undeclared,
)

FEW = settings(max_examples=300, deadline=None)
MANY = settings(max_examples=10_000, deadline=None)


def check_honest(told: Told, data: st.DataObject) -> None:
    """Every honest receipt is taken, in any order, and the last verifies."""
    world = scenario(told)
    receipts = data.draw(st.permutations(world.honest))
    for number, brought in enumerate(receipts):
        assert world.status == "implemented"
        assert len(contract.unproven_sides(world.facts)) == len(receipts) - number
        assert world.takes(brought) is None
        assert world.takes(brought) is None, "a retry"
    assert world.status == "verified"
    assert len(receipts_of(world.facts)) == len(receipts)


def check_lie(told: Told, name: str, data: st.DataObject) -> bool:
    """With a lie in place of an honest receipt, and all others honest, nothing is verified. False
    if there is no such lie here."""
    world = scenario(told)
    victim = data.draw(st.sampled_from(world.honest))
    lie = LIARS[name](world, victim)
    if lie is None:
        return False
    for brought in world.honest:
        if brought is not victim:
            assert world.takes(brought) is None
    if lie.stamp is None:
        assert world.takes(lie.brought) == lie.reason
        assert world.status == "implemented"
    if lie.by_status:
        world.forced(lie.brought.receipt, lie.stamp)
        assert world.status == "implemented"
    return True


@FEW
@given(TOLD, st.data())
def test_honest_work_is_taken(told: Told, data: st.DataObject) -> None:
    check_honest(told, data)


@FEW
@given(TOLD, st.sampled_from(sorted(LIARS)), st.data())
def test_no_lie_is_taken(told: Told, name: str, data: st.DataObject) -> None:
    check_lie(told, name, data)


@pytest.mark.soak
def test_no_lie_is_taken_for_long() -> None:
    tried = Counter[str]()

    @MANY
    @given(TOLD, st.sampled_from(sorted(LIARS)), st.data())
    def try_all(told: Told, name: str, data: st.DataObject) -> None:
        tried[name] += check_lie(told, name, data)

    try_all()
    assert set(tried) == set(LIARS)
    assert min(tried.values()) > 20


@pytest.mark.soak
@MANY
@given(TOLD, st.data())
def test_honest_work_is_taken_for_long(told: Told, data: st.DataObject) -> None:
    check_honest(told, data)


# --- one by one ---------------------------------------------------------------------------------

PLAIN = Told(
    policy="receipt",
    roles={"api": "provider", "web": "consumer"},
    rounds=1,
    skew=0,
    runner_repo=False,
    runner_project=False,
    own_runner=False,
    duration=10,
    undeclared=False,
)
REOPENED = PLAIN._replace(policy="independent", rounds=2)


@pytest.mark.parametrize("name", LIARS)
def test_each_liar_is_told_apart(name: str) -> None:
    world = scenario(REOPENED)
    [victim] = world.honest
    lie = LIARS[name](world, victim)
    assert lie is not None
    if lie.stamp is None:
        assert world.takes(lie.brought) == lie.reason
    assert world.status == "implemented"
    again = resigned(victim, started_at=later(victim))
    assert world.takes(again, after=60 * SECOND) is None, "what is honest is taken all the same"
    assert world.status == "verified"


def test_a_word_verifies_nothing_where_receipts_are_asked() -> None:
    world = scenario(PLAIN)
    word = contract_steps.verify(world.facts, WEB, "success", world.now)
    world.facts = contract.join(world.facts, word)
    assert world.status == "implemented"


def test_without_a_declared_commit_nothing_is_proven() -> None:
    world = undeclared(scenario(PLAIN))
    [honest] = world.honest
    assert world.takes(honest) == "receipt_no_commit"
    world.forced(honest.receipt)
    assert world.status == "implemented"


def test_a_failure_stands_until_the_same_command_passes() -> None:
    """Another command that passes doesn't hide it."""
    world = scenario(PLAIN)
    [honest] = world.honest
    failed = resigned(honest, outcome="regression", exit_code=1, command="test all")
    assert world.takes(failed) is None
    assert world.takes(honest) is None
    assert world.status == "implemented"
    started = later(failed)
    assert world.takes(resigned(failed, outcome="passed", exit_code=0, started_at=started)) is None
    assert world.status == "verified"


def test_a_later_failure_ends_a_proof_and_the_pass_of_before_is_no_answer() -> None:
    world = scenario(PLAIN)
    [honest] = world.honest
    assert world.takes(honest) is None
    failed = resigned(honest, outcome="regression", exit_code=1, started_at=later(honest))
    assert world.takes(failed) is None
    assert world.status == "implemented"
    assert world.takes(honest, after=60 * SECOND) == "receipt_superseded"
    world.forced(honest.receipt)
    assert world.status == "implemented"


def later(brought: Brought) -> str:
    return iso(stamp_of(brought.receipt.started_at) + 5 * SECOND)


def test_of_one_receipt_that_two_nodes_record_the_first_record_stays() -> None:
    world = scenario(PLAIN)
    [honest] = world.honest
    first, second = (fact_of(honest.receipt, world.now + number) for number in (1, 2))
    for facts in ([first, second], [second, first]):
        assert contract.join({}, facts) == {(first.kind, first.key): first}


def test_another_commit_that_is_declared_needs_another_receipt() -> None:
    world = scenario(PLAIN)
    [honest] = world.honest
    again = contract_steps.implement(
        world.facts, API, "complete", world.now + SECOND, commit="e" * 40
    )
    world.facts = contract.join(world.facts, [again])
    assert world.takes(honest, after=2 * SECOND) == "receipt_commit"
    renamed = resigned(honest, commit="e" * 40)
    assert world.takes(renamed, after=2 * SECOND) is None
    assert world.status == "verified"


def test_a_receipt_that_says_more_than_its_fact_is_flawed() -> None:
    [honest] = scenario(PLAIN).honest
    fact = fact_of(honest.receipt, 1)
    assert flaw_of(CONTRACT, fact) is None
    for member, value in (("round", 2), ("repo_id", "web"), ("agent_id", "x"), ("version", 3)):
        flaw = flaw_of(CONTRACT, replace(fact, **{member: value}))  # type: ignore[arg-type]
        assert flaw is not None
        assert "the fact that carries it" in flaw
    for receipt in ({}, {**fact.receipt, "commit": 1}, {**fact.receipt, "more": 1}):
        flaw = flaw_of(CONTRACT, replace(fact, receipt=receipt))
        assert flaw is not None
        assert "malformed" in flaw
    absent = {**fact.receipt, "base": None}
    assert flaw_of(CONTRACT, replace(fact, receipt=absent)) is not None


def test_a_completion_stamped_by_a_clock_ahead_delays_no_receipt() -> None:
    """The node has seen the completion, so what it records is later."""
    world = scenario(PLAIN)
    [honest] = world.honest
    completed = contract.ground_for_receipts(world.facts).works["api"].completed_at
    assert completed is not None
    outcome = judged(world.place, honest.receipt, honest.key, completed - SECOND)
    assert isinstance(outcome, ReceiptFact)
    assert outcome.stamp > completed


def world_of(policy: str) -> Scenario:
    return scenario(PLAIN._replace(policy=policy))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "sides"),
    [
        ("receipt", [("api", "provider")]),
        ("receipt_both", [("api", "provider"), ("web", "consumer")]),
        ("independent", [("api", "provider")]),
        ("independent_both", [("api", "provider"), ("web", "consumer")]),
    ],
)
def test_each_policy_asks_for_its_sides(policy: str, sides: list[tuple[str, str]]) -> None:
    assert contract.unproven_sides(world_of(policy).facts) == sides
