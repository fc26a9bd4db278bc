"""A bound on work."""

import pytest

from contracts.work import TooMuchWork, Work


def test_steps_are_counted_to_the_last() -> None:
    work = Work(3)
    work.spend()
    work.spend(2)
    with pytest.raises(TooMuchWork):
        work.spend()
