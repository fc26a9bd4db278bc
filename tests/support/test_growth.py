"""The measure of growth tells linear from quadratic."""

from tests.support.growth import grows_linearly


def test_linear_is_told_from_quadratic() -> None:
    assert grows_linearly(lambda size: sum(range(size)), 200_000)
    assert not grows_linearly(lambda size: [sum(range(size)) for _ in range(size)], 300)
