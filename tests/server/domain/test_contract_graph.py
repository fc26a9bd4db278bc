"""What a change of a contract reaches, on any graph of providers and consumers."""

import doctest
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from schemas.matrix import CellState
from server.domain import contract_graph
from server.domain.contract_graph import (
    WORST_FIRST,
    ProvidedContract,
    RepoPair,
    pairs,
    provided,
    reach,
    worst,
)
from server.domain.matrix import PartyCell

REPOS = "abcdef"


def cell(repo_id: str, state: CellState = "agreed") -> PartyCell:
    return PartyCell(repo_id, state, 1, 0)


def contract(id: str, provider: str, consumers: str) -> ProvidedContract:
    return ProvidedContract(id, cell(provider), tuple(cell(repo) for repo in consumers))


@st.composite
def graphs(draw: st.DrawFn) -> list[ProvidedContract]:
    """Contracts between a few repos, cycles included."""
    made = []
    for place in range(draw(st.integers(1, 8))):
        provider = draw(st.sampled_from(REPOS))
        consumers = draw(st.sets(st.sampled_from(REPOS)))
        made.append(contract(f"c{place}", provider, "".join(sorted(consumers - {provider}))))
    return made


def test_the_examples_hold() -> None:
    assert doctest.testmod(contract_graph).failed == 0


def test_every_state_has_a_rank() -> None:
    assert set(WORST_FIRST) == set(get_args(CellState))
    assert worst(WORST_FIRST) == "broken"


def test_a_change_goes_on_through_what_its_consumers_provide() -> None:
    chain = [
        contract("users", "a", "wb"),
        contract("pages", "b", "i"),
        contract("other", "p", "a"),
    ]
    assert reach(chain, "users") == ({"users": 0, "pages": 1}, {"w": 1, "b": 1, "i": 2})
    assert reach(chain, "pages") == ({"pages": 0}, {"i": 1})
    assert reach(chain, "other").repos == {"a": 1, "w": 2, "b": 2, "i": 3}


def test_a_cycle_ends_and_reaches_the_provider() -> None:
    circle = [contract("there", "a", "b"), contract("back", "b", "a")]
    assert reach(circle, "there") == ({"there": 0, "back": 1}, {"b": 1, "a": 2})


def test_a_contract_of_one_party_reaches_nobody() -> None:
    assert reach([contract("own", "a", "")], "own") == ({"own": 0}, {})


def test_contracts_of_the_same_repos_are_one_pair() -> None:
    cells = [cell("web", "built"), cell("api", "verified"), cell("ios", "broken")]
    first = provided("c1", cells, "api")
    assert first.provider.repo_id == "api"
    second = ProvidedContract("c2", cell("api", "building"), (cell("web", "built"),))
    assert pairs([first, second]) == {
        RepoPair("api", "web"): {"c1": "built", "c2": "building"},
        RepoPair("api", "ios"): {"c1": "broken"},
    }


@given(graphs())
def test_what_is_reached_is_closed_and_no_more_than_that(contracts: list[ProvidedContract]) -> None:
    reached = reach(contracts, "c0")
    closed_contracts, closed_repos = {"c0"}, set[str]()
    for _ in range(2 * len(contracts) + 2):
        closed_repos |= {
            consumer.repo_id
            for item in contracts
            if item.contract_id in closed_contracts
            for consumer in item.consumers
        }
        closed_contracts |= {
            item.contract_id for item in contracts if item.provider.repo_id in closed_repos
        }
    assert set(reached.repos) == closed_repos
    assert set(reached.contracts) == closed_contracts


@given(graphs(), st.sets(st.sampled_from(REPOS)), st.sampled_from(REPOS))
def test_a_further_contract_never_makes_it_reach_less(
    contracts: list[ProvidedContract], consumers: set[str], provider: str
) -> None:
    before = reach(contracts, "c0")
    after = reach([*contracts, contract("new", provider, "".join(sorted(consumers)))], "c0")
    assert before.repos.keys() <= after.repos.keys()
    assert before.contracts.keys() <= after.contracts.keys()
    assert all(after.repos[repo_id] <= steps for repo_id, steps in before.repos.items())
