"""Text from agents is data: nothing in it moves, hides or colours what a terminal shows (§7)."""

import json

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal import dump, fail
from schemas.plain import clean


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists, max_leaves=5))
def test_json_says_the_same_and_steers_nothing(value: object) -> None:
    text = dump(value)
    assert json.loads(text) == value
    assert clean(text) == text


def test_fail_prints_one_line_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        fail(3, "two\nlines \x1b[1m")
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err == "cacp: two lines\n"
