"""Any interleaving, any partition that heals: all end alike, and nothing is lost (design §6)."""

import pytest

from server.domain import contract as domain
from tests.scenarios.simulation import HOUR, Simulation

SKEWS = {
    "good clocks": (0, 0, 0, 0, 0),
    "one an hour ahead, one an hour behind": (0, HOUR, -HOUR, 0, 0),
    "all different": (0, HOUR, -HOUR, HOUR // 2, 17),
}


def play(seed: int, skews: tuple[int, ...]) -> None:
    story = Simulation(seed, skews)
    story.run(120)
    story.heal()
    assert len({node.digest() for node in story.nodes}) == 1
    assert all(node.aside == [] for node in story.nodes), "what was put aside came in time"
    facts = story.nodes[0].facts
    for fact in story.written:
        assert domain.join(facts, [fact]) == facts, "it is there, or lost by the rule"
    versions = {(fact.kind, fact.key) for fact in story.written if fact.kind == "version"}
    assert versions <= set(facts), "no version is lost, the conflicting ones neither"
    ends_well(story)


def ends_well(story: Simulation) -> None:
    """Nobody's write loses for ever because of a clock: each can still move the contract."""
    for place in range(len(story.nodes)):
        [asked] = story.act(place, "request_change")
        for node in story.nodes:
            assert node.facts[asked.kind, asked.key] == asked
            assert domain.status_of(node.facts) == "negotiating"


@pytest.mark.parametrize("skews", SKEWS.values(), ids=SKEWS)
@pytest.mark.parametrize("seed", range(5))
def test_five_nodes_converge(seed: int, skews: tuple[int, ...]) -> None:
    play(seed, skews)


@pytest.mark.soak
@pytest.mark.parametrize("skews", SKEWS.values(), ids=SKEWS)
def test_five_nodes_converge_for_hundreds_of_seeds(skews: tuple[int, ...]) -> None:
    for seed in range(300):
        play(seed, skews)
