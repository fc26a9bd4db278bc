"""Which peers can be worked with (CACP 2.0, Versioning)."""

from typing import Any

import pytest

from peers.versions import version_problem


@pytest.mark.parametrize("spoken", ["2.0", "2", "2.7", "2.0.1", 2.0])
def test_the_same_major_version_is_worked_with(spoken: Any) -> None:
    assert version_problem({"protocols": {"cacp": spoken}}) is None


@pytest.mark.parametrize("card", [None, [], {}, {"protocols": []}, {"protocols": {"a2a": "0.3"}}])
def test_a_card_that_does_not_say_is_no_problem(card: Any) -> None:
    assert version_problem(card) is None


@pytest.mark.parametrize("spoken", ["3.0", "1.0", "20", "two", "2.0-beta", ["2.0"], "9" * 1_000])
def test_another_is_named(spoken: Any) -> None:
    said = version_problem({"protocols": {"cacp": spoken}})
    assert said is not None
    assert "and this node 2.0: a peer must speak the same major version" in said
    assert len(said) < 200


def test_what_a_card_says_is_told_as_it_stands_there() -> None:
    said = version_problem({"protocols": {"cacp": {"a": 1}}})
    assert said is not None
    assert said.startswith('speaks CACP {"a":1}, and')
