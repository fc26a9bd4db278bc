"""What is written once has one order on every node."""

from server.domain.immutable import order


def test_the_earlier_stays_and_the_text_settles_what_is_equal() -> None:
    early, late = order(1, {"b": 1, "a": "z"}), order(2, {"a": "a"})
    assert min(late, early) == early
    assert order(1, {"a": "z", "b": 1}) == early, "the order of members is no difference"
    assert min(order(1, {"a": "y"}), order(1, {"a": "x"})) == order(1, {"a": "x"})
