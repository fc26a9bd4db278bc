"""Every state has a sign and a meaning of its own."""

import doctest
from typing import get_args

from schemas.matrix import AwaitedKind, CellState
from server.domain import matrix_text
from server.domain.matrix_text import DUTIES, MEANINGS, SIGNS, sentence, verdict


def test_the_examples_hold() -> None:
    assert doctest.testmod(matrix_text).failed == 0


def test_no_state_is_like_another() -> None:
    states = set(get_args(CellState))
    assert states == set(SIGNS) == set(MEANINGS)
    assert len(set(SIGNS.values())) == len(set(MEANINGS.values())) == len(states)
    assert set(DUTIES) == set(get_args(AwaitedKind))


def test_a_cell_says_by_whose_word() -> None:
    cell = {"state": "broken", "side": "consumer", "version": 1, "evidence": "word", "by": "w"}
    text = "consumer, a verification failed: must repair it: version 1, by word of web"
    assert sentence(cell, {"w": "web"}) == text
    awaited = {"state": "awaited", "side": "provider", "version": 1, "awaited": "respond"}
    assert sentence(awaited, {}) == f"provider, {MEANINGS['awaited']}"


def test_whether_it_can_land() -> None:
    assert verdict({"contracts": 0}).startswith("Not yet")
    done = {"contracts": 2, "complete": True, "proven": 0}
    assert verdict(done) == "Yes: all 2 contracts are verified, by the word of agents."
    proven = "Yes: all 2 contracts are verified, by runners' receipts."
    assert verdict(done | {"proven": 2}) == proven
    waiting = {"contracts": 2, "complete": False, "verified": 1, "awaited": {}}
    assert verdict(waiting) == "Not yet: 1 of 2 contracts verified."
