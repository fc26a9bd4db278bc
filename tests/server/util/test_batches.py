"""Batches keep the order and lose nothing."""

from server.util.batches import batches


def test_every_item_is_in_one_batch_in_order() -> None:
    assert list(batches([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert list(batches([1, 2], 2)) == [[1, 2]]
    assert list(batches([], 2)) == []
