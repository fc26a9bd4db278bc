"""What is carried from one database into another, and how both are compared."""

import random

import pytest

from server.store.portable import TableSum, carried, check_usable, tables

ROWS: list[tuple[object, ...]] = [
    ("a", 1, None, b"\0"),
    ("a", 1, None, b"\0"),
    ("", -(2**63), "\ud800\0", b""),
]


def total(rows: list[tuple[object, ...]]) -> tuple[int, str]:
    table = TableSum()
    assert list(table.over(rows)) == rows
    return table.rows, table.digest


def test_a_checksum_does_not_depend_on_the_order() -> None:
    shuffled = ROWS.copy()
    random.shuffle(shuffled)
    assert total(shuffled) == total(ROWS)


@pytest.mark.parametrize(
    "other",
    [
        ROWS[:-1],
        [*ROWS, ROWS[0]],
        [("a", 1, None, b"\0"), ("a", 1, "", b"\0"), ROWS[2]],
        [("a", 1, None, b"\0"), ("a", "1", None, b"\0"), ROWS[2]],
        [ROWS[2], ROWS[2], ROWS[2]],
    ],
)
def test_other_rows_have_another_checksum(other: list[tuple[object, ...]]) -> None:
    assert total(other) != total(ROWS)


def test_two_equal_rows_do_not_cancel_out() -> None:
    assert total([ROWS[0]] * 2)[1] != total([])[1]


def test_what_is_derived_or_of_one_database_stays() -> None:
    assert {"messages", "facts", "changes", "meta", "sets"} & tables().keys() == {
        *("messages", "facts", "changes", "meta")
    }
    assert not {"search_docs", "search_queue", "search_index", "migrations"} & tables().keys()
    meta = [("epoch", "e"), ("secret", "s"), ("moved", "m"), ("schema_version", "38")]
    columns = ("name", "value")
    assert list(carried(meta, columns, keep_epoch=True)) == meta[:2]
    assert list(carried(meta, columns, keep_epoch=False)) == meta[1:2]


def test_a_moved_database_and_an_unfinished_one_are_refused() -> None:
    check_usable({"epoch": "e"})
    with pytest.raises(ValueError, match="was moved to there: start it there"):
        check_usable({"moved": "there"})
    with pytest.raises(ValueError, match="unfinished copy of here: run `cacp move` again"):
        check_usable({"moving": "here"})
