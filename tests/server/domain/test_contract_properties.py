"""What holds for every contract, whatever was said and in which order (design §5, §7)."""

from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from schemas.contract import ContractStatus
from schemas.facts import Fact, ImplementationFact, ResponseFact
from server.domain import contract, contract_steps
from server.domain.contract import Facts, join, status_of
from server.domain.errors import Forbidden, IllegalTransition
from tests.server.domain.histories import (
    API,
    CONTENTS,
    IOS,
    PARTIES,
    WEB,
    Step,
    fact_sets,
    facts_of,
    histories,
    propose,
    steps,
)

FEW = settings(max_examples=60, deadline=None)
MANY = settings(max_examples=3_000, deadline=None)


def derived(facts: Facts) -> Any:
    """All that follows from the facts."""
    return (
        status_of(facts),
        contract.versions_of(facts),
        contract.ancestors_of(facts),
        contract.conflicts_of(facts),
        contract.implementations_of(facts),
        contract.updated_at(facts),
        contract.unproven_sides(facts),
    )


def check_join(one: Facts, two: Facts, three: Facts) -> None:
    both = join(one, two.values())
    assert both == join(two, one.values())
    assert join(both, three.values()) == join(one, join(two, three.values()).values())
    assert join(both, both.values()) == both
    assert join(both, one.values()) == both
    assert set(both) == set(one) | set(two)


def check_order(facts: list[Fact], shuffled: list[Fact]) -> None:
    assert join({}, facts) == join({}, shuffled)
    assert derived(join({}, facts)) == derived(join({}, shuffled))


def check_author(facts: Facts) -> None:
    """Without the word of another party the author alone reaches no agreement."""
    current = contract.current_of(facts)
    if current.parties == (current.repo_id,):
        return
    alone = {
        at: fact
        for at, fact in facts.items()
        if not isinstance(fact, ResponseFact) or fact.repo_id == current.repo_id
    }
    author = contract_steps.Party(current.repo_id, current.agent_id)
    assert status_of(alone) in ("proposed", "negotiating")
    try:
        said = contract_steps.respond(alone, author, "agree", 99)
    except (Forbidden, IllegalTransition):
        return
    # It took a request of its own back.
    assert status_of(join(alone, [said])) in ("proposed", "negotiating")


@FEW
@given(fact_sets(), fact_sets(), fact_sets())
def test_join_is_a_join_of_any_facts(one: list[Fact], two: list[Fact], three: list[Fact]) -> None:
    check_join(join({}, one), join({}, two), join({}, three))


@FEW
@given(histories())
def test_join_is_a_join_of_replicas(replicas: list[Facts]) -> None:
    check_join(*replicas)


@FEW
@given(st.data())
def test_any_order_of_the_same_facts_ends_the_same(data: st.DataObject) -> None:
    facts = data.draw(fact_sets())
    check_order(facts, data.draw(st.permutations(facts)))


@FEW
@given(histories())
def test_replicas_that_merge_in_any_order_end_the_same(replicas: list[Facts]) -> None:
    forth = [fact for facts in replicas for fact in facts.values()]
    check_order(forth, forth[::-1])


@FEW
@given(fact_sets())
def test_every_version_is_current_an_ancestor_or_a_conflict(facts: list[Fact]) -> None:
    held = join({}, facts)
    line = [*contract.ancestors_of(held), contract.current_of(held)]
    places = [fact.key for fact in [*line, *contract.conflicts_of(held)]]
    assert sorted(places) == sorted(key for kind, key in held if kind == "version")
    for parent, child in pairwise(line):
        assert parent.version < child.version
        assert parent.digest == child.parent


@FEW
@given(fact_sets())
def test_the_author_alone_never_brings_it_to_agreed(facts: list[Fact]) -> None:
    check_author(join({}, facts))


@FEW
@given(histories())
def test_the_author_never_brings_any_history_to_agreed(replicas: list[Facts]) -> None:
    for facts in replicas:
        check_author(facts)


@FEW
@given(fact_sets())
def test_work_of_an_older_round_needs_revision(facts: list[Fact]) -> None:
    held = join({}, facts)
    current = contract.current_of(held)
    number = contract.round_of(held, current)
    rounds: dict[str, int] = {}
    for fact in held.values():
        if isinstance(fact, ImplementationFact) and fact.key.startswith(current.place):
            rounds[fact.repo_id] = max(fact.round, rounds.get(fact.repo_id, 0))
    works = contract.implementations_of(held)
    assert {work.repo_id: work.round for work in works} == rounds
    assert all(work.round == number or work.status == "needs_revision" for work in works)


@FEW
@given(histories(), st.sampled_from(list(PARTIES.values())), st.sampled_from(CONTENTS))
def test_an_update_voids_what_went_before(
    replicas: list[Facts], who: contract_steps.Party, content: Any
) -> None:
    facts = replicas[0]
    try:
        new = facts_of(facts, Step(0, who, "update", content), 10_000)
    except IllegalTransition:
        return
    after = join(facts, new)
    assert status_of(after) == "proposed"
    assert contract.implementations_of(after) == []
    assert contract.current_of(after) == new[0]


@pytest.mark.soak
@MANY
@given(histories(), fact_sets())
def test_the_laws_hold_for_long(replicas: list[Facts], facts: list[Fact]) -> None:
    check_join(*replicas)
    check_join(replicas[0], join({}, facts), replicas[1])
    for held in replicas:
        check_author(held)


# --- single steps move along the state machine --------------------------------------------------

OPEN = {"proposed", "negotiating"}
LIVE = {"agreed", "implemented", "verified"}
MOVES: dict[str, dict[ContractStatus, set[str]]] = {
    "agree": {
        "proposed": {"proposed"} | LIVE,
        "negotiating": OPEN | LIVE,
        "agreed": {"agreed"},
        "implemented": {"implemented"},
        "verified": {"verified"},
    },
    "reject": {"proposed": {"proposed"}, "negotiating": OPEN},
    "request_change": {status: {"negotiating"} for status in get_args(ContractStatus)},
    "update": {"proposed": {"proposed"}, "negotiating": {"proposed"}},
    "in_progress": {"agreed": {"agreed"}},
    "complete": {"agreed": {"agreed", "implemented"}, "implemented": {"implemented"}},
    "success": {"implemented": {"verified"}, "verified": {"verified"}},
    "failure": {"implemented": {"agreed"}, "verified": {"agreed"}},
    "partial": {"implemented": {"implemented"}, "verified": {"verified"}},
}
"""Design §5: by action, from which state to which. Agreeing ends a reopening: to where it was."""


class ContractMachine(RuleBasedStateMachine):
    """One node, three parties: every step follows MOVES, or is refused and changes nothing, or
    says again what stands and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = propose(API, WEB, IOS)
        self.now = 1

    @rule(step=steps(1))
    def step(self, step: Step) -> None:
        self.now += 1
        before = status_of(self.facts)
        after = {before} if self.is_late(step) else MOVES[step.action].get(before)
        held = dict(self.facts)
        if self.is_of_own_version(step):
            with pytest.raises(Forbidden):
                facts_of(self.facts, step, self.now)
            return
        try:
            joined = join(self.facts, facts_of(self.facts, step, self.now))
        except IllegalTransition as refused:
            legal, said = after is not None, refused.data["from"]
            assert (legal, said, self.facts) == (False, before, held)
            return
        if joined != held:
            assert after is not None
            assert status_of(joined) in after
            self.repeat(joined, step)
        self.facts = joined

    def repeat(self, facts: Facts, step: Step) -> None:
        """A step that was just taken is no step any more, unless it is a new version."""
        if step.action != "update":
            self.now += 1
            assert join(facts, facts_of(facts, step, self.now)) == facts

    def is_of_own_version(self, step: Step) -> bool:
        current = contract.current_of(self.facts)
        said = self.facts.get(("response", f"{current.place}/{current.repo_id}"))
        # To agree takes a request back, the author's own too, and may be said again.
        has_asked = isinstance(said, ResponseFact) and said.action != "reject"
        return step.action == "agree" and step.who.repo_id == current.repo_id and not has_asked

    def is_late(self, step: Step) -> bool:
        """Whether a failure is of the round that another failure has ended."""
        current = contract.current_of(self.facts)
        number = contract.round_of(self.facts, current)
        begun = any(
            isinstance(fact, ImplementationFact)
            and fact.key == f"{current.place}/{fact.repo_id}/{number}"
            for fact in self.facts.values()
        )
        return step.action == "failure" and number > 1 and not begun

    @invariant()
    def a_single_line_of_versions_has_no_conflict(self) -> None:
        assert contract.conflicts_of(self.facts) == []


TestContractMachine = ContractMachine.TestCase
TestContractMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
