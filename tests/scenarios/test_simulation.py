"""Any interleaving, any partition that heals: all end alike, and nothing is lost (design §7)."""

from dataclasses import asdict
from typing import Any

import pytest

from schemas.facts import Fact, ImplementationFact, ResponseFact, VerificationFact
from server.domain import contract as domain
from tests.scenarios.simulation import HOUR, LIMIT, Simulation

SKEWS = {
    "good clocks": (0, 0, 0, 0, 0),
    "one an hour ahead, one an hour behind": (0, HOUR, -HOUR, 0, 0),
    "all different": (0, HOUR, -HOUR, HOUR // 2, 17),
    "one of three an hour ahead": (0, HOUR, 0),
    "one of three an hour behind": (-HOUR, 0, 0),
    "one right, one ahead, one behind": (0, HOUR, -HOUR),
    "two an hour apart": (0, HOUR),
}


def play(seed: int, skews: tuple[int, ...]) -> None:
    story = Simulation(seed, skews)
    story.run(120)
    story.heal()
    ends_well(story)


def ends_well(story: Simulation) -> None:
    """Within minutes, whatever hour a clock shows: all are equal, and nothing is lost or waits."""
    assert len({node.digest() for node in story.nodes}) == 1
    assert all(node.aside == [] for node in story.nodes), "what was deferred came in time"
    facts = story.nodes[0].facts
    keys = {(fact.kind, fact.key) for fact in story.written}
    assert keys <= set(facts), "nothing is lost, the conflicting versions neither"
    last = {(fact.kind, fact.key): fact for fact in story.written}
    for at, fact in last.items():
        if isinstance(fact, ResponseFact | ImplementationFact | VerificationFact):
            assert said(facts[at]) == said(fact), "a repo's last word stays, whatever its clock was"
    for place in range(len(story.nodes)):
        for action in ("request_change", "request_change"):
            everyone_sees(story, place, action)


def said(fact: Fact) -> dict[str, Any]:
    """What a fact says, without the times."""
    times = ("stamp", "started_at", "completed_at")
    return {name: value for name, value in asdict(fact).items() if name not in times}


def everyone_sees(story: Simulation, place: int, action: str) -> None:
    """Nobody's write waits or loses because of a clock, the second in its place neither."""
    [asked] = story.act(place, action)
    for node in story.nodes:
        assert node.facts[asked.kind, asked.key] == asked
        assert domain.status_of(node.facts) == "negotiating"


@pytest.mark.parametrize("skews", SKEWS.values(), ids=SKEWS)
@pytest.mark.parametrize("seed", range(5))
def test_nodes_converge(seed: int, skews: tuple[int, ...]) -> None:
    play(seed, skews)


@pytest.mark.parametrize("seed", range(5))
def test_what_was_stamped_ahead_before_the_nodes_met_waits_for_nobody(seed: int) -> None:
    """Three start together, one an hour ahead: it writes before it has heard of the others."""
    story = Simulation(seed, (0, HOUR, 0))
    story.apart(1, 20)
    story.heal()
    ends_well(story)
    assert all(fact.stamp <= story.time + LIMIT for fact in story.nodes[0].facts.values())


@pytest.mark.parametrize("skews", [(0, HOUR), (0, HOUR, 0)], ids=["of two", "of three"])
@pytest.mark.parametrize("seed", range(5))
def test_a_node_that_was_an_hour_ahead_and_is_set_right(seed: int, skews: tuple[int, ...]) -> None:
    story = Simulation(seed, skews)
    story.run(60)
    story.set_clock(1, 0)
    story.run(60)
    story.heal()
    ends_well(story)


@pytest.mark.parametrize("seed", range(5))
def test_a_node_that_worked_alone_an_hour_ahead_and_is_set_right_before_it_is_met(
    seed: int,
) -> None:
    story = Simulation(seed, (0, HOUR))
    story.apart(1, 20)
    story.set_clock(1, 0)
    story.apart(1, 20)
    story.heal()
    ends_well(story)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("seed", range(5))
def test_in_a_line_a_wrong_clock_hides_nothing_from_who_does_not_know_it(
    seed: int, place: int
) -> None:
    skews = [0, 0, 0]
    skews[place] = HOUR
    story = Simulation(seed, tuple(skews), line=True)
    story.run(120)
    story.heal()
    assert len({node.digest() for node in story.nodes}) == 1
    [asked] = story.act(1, "request_change")
    story.heal()
    for node in story.nodes:
        assert node.aside == []
        assert node.facts[asked.kind, asked.key] == asked


@pytest.mark.parametrize("set_right", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_who_joins_late_gets_what_a_wrong_clock_wrote_before_it_was_gone(
    seed: int, set_right: bool
) -> None:
    story = Simulation(seed, (0, HOUR))
    story.run(60)
    story.heal()
    if set_right:
        story.set_clock(1, 0)
    story.leave(1)
    late = story.join(0)
    story.heal()
    story.run(30)
    story.heal()
    assert late.digest() == story.nodes[0].digest()
    assert late.aside == []


@pytest.mark.parametrize("seed", range(5))
def test_what_is_more_than_a_day_ahead_hides_nothing_else_and_comes_when_it_is_due(
    seed: int,
) -> None:
    story = Simulation(seed, (0, 30 * HOUR, 0), line=True)
    story.nodes[1].clocks = 1
    story.run(60)
    story.set_clock(1, 0)
    [asked] = story.act(0, "request_change")
    story.heal()
    for node in story.nodes:
        assert node.facts[asked.kind, asked.key] == asked
    story.time += 31 * HOUR
    story.heal()
    assert len({node.digest() for node in story.nodes}) == 1


@pytest.mark.soak
@pytest.mark.parametrize("skews", SKEWS.values(), ids=SKEWS)
def test_nodes_converge_for_hundreds_of_seeds(skews: tuple[int, ...]) -> None:
    for seed in range(300):
        play(seed, skews)
