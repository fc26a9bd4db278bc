"""A member of the mesh says whatever a seed has it say, properly signed: the node stands."""

import pytest

from tests.byzantine.attack import Attack, memory
from tests.byzantine.mutation import KINDS, LEFT_OUT, Mutator
from tests.byzantine.seeds import SEEDS, peer_methods
from tests.support.mesh import Mesh, peers
from tests.support.waiting import eventually

MESSAGES = 130
"""Of each seed in `make test`: ten of each method."""
SOAK_SEEDS = range(10)
SOAK_MESSAGES = 2_600
GROWTH_MAX = 150_000_000
"""Bytes of memory that a node may have more after thousands of messages: none is kept."""


def attacked(mesh: Mesh) -> Attack:
    alpha = mesh.add("alpha", requests_per_minute=0)
    beta = mesh.add("beta", alpha)
    eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
    return Attack(alpha, beta)


def test_every_method_between_nodes_has_a_message_to_begin_from() -> None:
    assert sorted(SEEDS) == sorted(peer_methods())


def test_what_is_left_out_is_a_kind() -> None:
    assert LEFT_OUT.keys() <= KINDS.keys()


def test_every_message_to_begin_from_is_taken(mesh: Mesh) -> None:
    """Else the mutations of it would all be refused for the same reason. (Only foreign peers, which
    sign nothing, say what a repo is by itself.)"""
    attack = attacked(mesh)
    ground = attack.ground
    for method in SEEDS:
        problem = attack.plain(method, ground)
        assert (problem is None) == (method != "cacp/repo/sync"), (method, problem)
    attack.check()


def test_what_a_seed_decides_is_the_same_each_time() -> None:
    message = {"a": [1, {"content": {}, "stamp": 1}], "version": 1, "agent_id": "x"}
    made = [[Mutator(7).mutated(message) for _ in range(50)] for _ in range(2)]
    assert str(made[0]) == str(made[1])


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", range(1))
def test_a_member_that_says_anything_breaks_nothing(mesh: Mesh, seed: int) -> None:
    attack = attacked(mesh)
    attack.run(seed, MESSAGES)
    attack.check()


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_a_member_that_says_anything_for_long_breaks_nothing(mesh: Mesh, seed: int) -> None:
    attack = attacked(mesh)
    attack.run(f"{seed} first", SOAK_MESSAGES // 10)
    before = memory(attack.alpha)
    attack.run(seed, SOAK_MESSAGES)
    attack.check()
    grown = memory(attack.alpha) - before
    print(f"seed {seed}: {attack.outcomes}, {grown // 1_000_000} MB more")
    assert grown < GROWTH_MAX
