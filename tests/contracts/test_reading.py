from typing import Any

import pytest

from contracts.model import DocumentProblem, Located
from contracts.reading import (
    NOTES_MAX,
    STEPS_MAX,
    ContentReading,
    at,
    cut,
    in_file,
    shown,
)
from contracts.work import TooMuchWork


def test_work_is_counted() -> None:
    reading = ContentReading({})
    place = Located({}, ())
    for _ in range(STEPS_MAX):
        reading.follow(place)
    with pytest.raises(TooMuchWork):
        reading.follow(place)


def test_what_is_wrong_was_left_out_and_a_misfit_was_not() -> None:
    reading = ContentReading({"a": 1})
    place = at(Located(reading.content, ()), "a")
    reading.misfit(place, "Not so.")
    assert (len(reading.problems), reading.unread) == (1, [])
    reading.wrong(place, "Left out.")
    assert (len(reading.problems), reading.unread) == (2, [place])
    interface = reading.interface("endpoint", "2020-12", [])
    assert [problem.why for problem in interface.problems] == ["Not so.", "Left out."]
    assert interface.unread == (place,)


def test_a_reference_to_nothing_is_noted() -> None:
    reading = ContentReading({})
    assert reading.follow(Located({"$ref": "#/a"}, ("x",))) is None
    assert reading.problems == [DocumentProblem(("x",), 'The reference "#/a" leads to nothing.')]


def test_members_of_no_object_are_noted() -> None:
    reading = ContentReading({})
    assert reading.members(Located([], ("x",)), "A parameter") is None
    assert reading.problems == [
        DocumentProblem(("x",), "A parameter is an object; this is a list.")
    ]


def test_notes_are_cut_and_counted() -> None:
    notes = [DocumentProblem((number,), "No.") for number in range(NOTES_MAX + 7)]
    listed = cut(notes)
    assert listed[:-1] == tuple(notes[:NOTES_MAX])
    assert listed[-1].why == "7 more like these are not listed."
    assert cut(notes[:3]) == tuple(notes[:3])


def test_a_note_names_the_file_and_controls_no_terminal() -> None:
    assert in_file(Located(1, (), "a\x1b[31m.json"), "No.") == "In a.json: No."
    assert in_file(Located(1, ()), "No\x1b[31m\u202e.") == "No."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ("a" * 99, f'"{"a" * 59}…"'),
        ({}, "an object"),
        ([], "a list"),
        (1.5, "1.5"),
        (10**400, "a number"),
    ],
)
def test_values_are_shown_short(value: Any, text: str) -> None:
    assert shown(value) == text
