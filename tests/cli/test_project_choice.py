"""Names, ids and beginnings of ids: one meaning, or a sentence that says why not."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import project_choice
from cli.project_choice import NoSuchName, chosen

NAMES = {"01a206c5-0640": "Coupons", "01a206c5-05a7": "Login", "01b3": "login", "02c4": "01a2"}


def test_the_examples_hold() -> None:
    assert doctest.testmod(project_choice).failed == 0


@pytest.mark.parametrize(
    ("wanted", "id"),
    [
        ("01b3", "01b3"),
        ("Coupons", "01a206c5-0640"),
        ("COUPONS", "01a206c5-0640"),
        (" Login ", "01a206c5-05a7"),
        ("01a206c5-06", "01a206c5-0640"),
        ("01a2", "02c4"),
    ],
)
def test_one_is_meant(wanted: str, id: str) -> None:
    assert chosen(wanted, NAMES) == id


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("LOGIN", "2 projects are named LOGIN: 01a206c5-05a7, 01b3; give an id, or its beginning"),
        ("01a206c5", "2 ids begin with 01a206c5: .*; give more characters, or a name"),
        ("Cupons", "no project here is named Cupons, and no id .* did you mean Coupons?"),
        ("", "no project here is named"),
    ],
)
def test_none_or_several_is_a_sentence(wanted: str, message: str) -> None:
    with pytest.raises(NoSuchName, match=message):
        chosen(wanted, NAMES)


@given(st.dictionaries(st.uuids().map(str), st.text(min_size=1)), st.data())
def test_an_id_is_always_itself(names: dict[str, str], data: st.DataObject) -> None:
    if names:
        id = data.draw(st.sampled_from([*names]))
        assert chosen(id, names) == id
