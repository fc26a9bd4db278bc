"""Full-text search: what a query means, and what is shown of a hit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.errors import InvalidInput
from server.domain.search import (
    INDEXED_MAX,
    SearchTerm,
    camel_parts,
    forms,
    parse,
    snippet,
    text_of,
    words_of,
)


def test_a_query_is_words_phrases_prefixes_and_what_to_leave_out() -> None:
    query = parse('users "created at" pay* -draft -"old form"')

    assert query.wanted == (
        SearchTerm(("users",)),
        SearchTerm(("created", "at")),
        SearchTerm(("pay",), is_prefix=True),
    )
    assert query.unwanted == (SearchTerm(("draft",)), SearchTerm(("old", "form")))


def test_an_identifier_is_asked_for_in_each_of_its_forms() -> None:
    assert forms(SearchTerm(("createUser",))) == [("createUser",), ("create", "User")]
    (term,) = parse("src/user_api.py").wanted
    assert forms(term) == [("src", "user", "api", "py")]


@pytest.mark.parametrize("text", ["", " ", '"', "-", "***", "-draft", "()", 'AND"'[3:]])
def test_a_query_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="query: must contain a word"):
        parse(text)


def test_words_are_compared_without_case_and_accents() -> None:
    assert list(words_of("Émigré user_id, /users/3x Straße")) == [
        "emigre",
        "user",
        "id",
        "users",
        "3x",
        "straße",
    ]


def test_the_text_of_a_value_has_its_members_by_name() -> None:
    value = {"path": "/users", "fields": ["id", {"name": "email"}, 7], "none": None, "yes": True}
    assert text_of(value) == "path: /users\nfields: id\nname: email\n7"


def test_a_deep_or_long_value_is_cut() -> None:
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    assert text_of(deep) == "x"
    assert len(text_of({"line": "y" * 1_000_000})) == INDEXED_MAX


def test_invisible_characters_are_not_indexed() -> None:
    assert text_of({"a": "pay\u202eload"}) == "a: payload"


def test_words_are_indexed_by_their_parts_too() -> None:
    assert camel_parts("createUser, HTTPServer and userId2Name") == (
        "create User HTTP Server user Id 2 Name"
    )
    assert camel_parts("plain words 0a1b2c") == ""


def test_a_snippet_marks_the_words_of_the_query() -> None:
    shown = snippet("The field createdAt of\nUSERS", parse("created users"))
    assert shown.text == "The field createdAt of USERS"
    assert [shown.text[start:stop] for start, stop in shown.marks] == ["created", "USERS"]


def test_a_snippet_begins_near_the_first_mark() -> None:
    text = "filler " * 200 + "the needle is here " + "more " * 200
    shown = snippet(text, parse("needle"))
    assert shown.text.startswith("…")
    assert shown.text.endswith("…")
    assert [shown.text[start:stop] for start, stop in shown.marks] == ["needle"]
    assert len(shown.text) <= 202


def test_accents_and_prefixes_are_marked() -> None:
    shown = snippet("Le résumé des paiements", parse("resume pai*"))
    assert [shown.text[start:stop] for start, stop in shown.marks] == ["résumé", "paiements"]


@given(st.text(max_size=400), st.text(max_size=20))
def test_marks_are_within_the_snippet(text: str, asked: str) -> None:
    try:
        query = parse(asked)
    except InvalidInput:
        return
    shown = snippet(text, query, width=50)
    for start, stop in shown.marks:
        assert 0 <= start < stop <= len(shown.text)
