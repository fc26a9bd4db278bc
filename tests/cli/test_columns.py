"""Rows that fit a terminal: nothing is lost on a pipe, and no first cell is ever cut."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import columns
from cli.columns import laid_out, print_columns

HEADS = ("KEY", "AGENT", "REPO")
ROW = ("key_346583ac5f37", "aid://demo.example/frontend-app@1.0.0", "frontend-app")
CELL = st.text(st.characters(categories=["L", "N"]), max_size=40)


def test_the_examples_hold() -> None:
    assert doctest.testmod(columns).failed == 0


def test_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(("A", "LONG"), [["wide", "b"], ["c", ""]], none="none")
    assert capsys.readouterr() == ("A     LONG\nwide  b\nc\n", "")


def test_an_empty_list_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    print_columns(("A", "LONG"), [], none="none: `cacp a create` makes one")
    assert capsys.readouterr() == ("", "none: `cacp a create` makes one\n")


def test_the_longest_cells_give_way() -> None:
    assert laid_out(HEADS, [ROW], 60) == [
        "KEY               AGENT                         REPO",
        "key_346583ac5f37  ….example/frontend-app@1.0.0  frontend-app",
    ]


def test_what_other_commands_take_is_not_cut() -> None:
    assert laid_out(HEADS, [ROW], 67, ["AGENT"])[1] == (
        "key_346583ac5f37  aid://demo.example/frontend-app@1.0.0  frontend-…"
    )
    assert laid_out(HEADS, [ROW], 60, ["AGENT"])[0].split() == ["KEY", ROW[0]]


def test_what_fits_no_line_is_a_paragraph() -> None:
    assert laid_out(HEADS, [ROW, ("k" * 16, "-", "r")], 30) == [
        "KEY    key_346583ac5f37",
        "AGENT  aid://demo.example/frontend-app@1.0.0",
        "REPO   frontend-app",
        "",
        "KEY    kkkkkkkkkkkkkkkk",
        "REPO   r",
    ]


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5), st.integers(1, 200))
def test_lines_fit_and_first_cells_are_whole(rows: list[tuple[str, ...]], width: int) -> None:
    lines = laid_out(HEADS, rows, width)
    if lines and lines[0].split() == [*HEADS]:
        assert max(map(len, lines)) <= width
        assert len(lines) == len(rows) + 1
    for row, line in zip(rows, laid_out(HEADS, rows, None)[1:], strict=True):
        assert [*filter(None, row)] == line.split()
    for row in rows:
        assert not row[0] or any(row[0] in line for line in lines)
