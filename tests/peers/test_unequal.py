"""A difference that stays is told from one that takes a while."""

from peers.digest import Name
from peers.unequal import ROUNDS, Unequal

ONE, OTHER = Name("context", "p", "a"), Name("context", "p", "b")


def test_what_differs_in_the_same_way_for_several_comparisons_stays_different() -> None:
    unequal = Unequal()
    for _ in range(ROUNDS):
        assert unequal.note({ONE: ("1", "2")}) == []
    assert unequal.note({ONE: ("1", "2"), OTHER: ("3", "4")}) == [ONE]


def test_what_changes_or_became_equal_is_counted_anew() -> None:
    unequal = Unequal()
    for number in range(3 * ROUNDS):
        assert unequal.note({ONE: (str(number), "2")}) == [], "this side still takes in"
    for _ in range(ROUNDS):
        assert unequal.note({ONE: ("1", "2")}) == []
    assert unequal.note({}) == []
    assert unequal.note({ONE: ("1", "2")}) == []
