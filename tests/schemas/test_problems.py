"""What models find wrong, in words of JSON."""

import re
from typing import Annotated, Any, Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

from schemas import problems
from schemas.base import Commit
from schemas.problems import NOT_TEXT, problem_of, problem_text
from server.methods import METHODS

PYTHON = re.compile(
    r"instance of|dictionary|dataclass|tuple|\bdict\b|\bstr\b|\bint\b|\bbool\b|NoneType|"
    r"None\b|True\b|False\b|pydantic|[a-z]Params\b|Input should|unpack|attribute|'"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def found(type_: Any, value: Any) -> list[str]:
    with pytest.raises(ValidationError) as error:
        TypeAdapter(type_).validate_python(value, strict=True)
    return [problem_of(item) for item in error.value.errors(include_url=False)]


class Some(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (Some, [], "should be an object"),
        (dict[str, Any], "x", "should be an object"),
        (Some, {}, "required"),
        (list[int], {}, "should be a list"),
        (str, 1, "should be a string"),
        (int, "1", "should be a whole number"),
        (int, 1.5, "should be a whole number"),
        (float, "1", "should be a number"),
        (bool, 1, "should be true or false"),
        (Literal["a", "b", "c"], "d", "should be a, b or c"),
        (Literal[True], False, "should be true"),
        (Annotated[str, Field(min_length=1)], "", "should have at least 1 character"),
        (Annotated[str, Field(max_length=20)], "x" * 21, "should have at most 20 characters"),
        (Annotated[list[int], Field(min_length=1)], [], "should have at least 1 item"),
        (Annotated[list[int], Field(max_length=2)], [1, 2, 3], "should have at most 2 items"),
        (Annotated[int, Field(ge=1)], 0, "should be 1 or more"),
        (Annotated[int, Field(le=500)], 501, "should be 500 or less"),
        (Annotated[str, Field(pattern="^[a-z]+$")], "A", "should match ^[a-z]+$"),
    ],
)
def test_a_problem_says_what_would_be_right(type_: Any, value: Any, words: str) -> None:
    assert found(type_, value) == [words]


@pytest.mark.parametrize("kind", sorted(problems.FROM_PYDANTIC))
def test_no_error_of_pydantic_speaks_python(kind: Any) -> None:
    ctx: dict[str, Any] = {
        name: "'a' or None"
        for words in problems._WORDS.values()
        for name in re.findall(r"\{(\w+)\}", words)
    } | {"min_length": 1, "max_length": 2}
    said = problem_of({"type": kind, "loc": ("a",), "msg": "Python's own", "input": 1, "ctx": ctx})
    assert not PYTHON.search(said.replace("'a' or None", ""))
    assert "Python" not in said
    assert "1 characters" not in said


def test_a_problem_is_told_with_its_place() -> None:
    with pytest.raises(ValidationError) as error:
        TypeAdapter(list[dict[str, int]]).validate_python([{"a": "x"}], strict=True)
    assert problem_text(error.value.errors()[0], "all") == "0.a: should be a whole number"
    with pytest.raises(ValidationError) as error:
        TypeAdapter(int).validate_python("x", strict=True)
    assert problem_text(error.value.errors()[0], "all") == "all: should be a whole number"


def test_a_commit_is_asked_for_in_words() -> None:
    with pytest.raises(ValidationError) as raised:
        TypeAdapter(Commit).validate_python("HEAD")
    [item] = raised.value.errors(include_url=False)
    assert problem_of(item) == (
        "should be the whole hash of a commit, as `git rev-parse HEAD` prints it"
    )


def test_every_word_is_for_an_error_that_there_is() -> None:
    assert set(problems._WORDS) <= set(get_args(ErrorType))
    assert set(problems._WORDS.values()) >= NOT_TEXT


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].params.model_fields])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_whatever_is_sent_no_answer_speaks_python(method: str, data: st.DataObject) -> None:
    params = METHODS[method].params
    names = [field.alias or name for name, field in params.model_fields.items()]
    sent = data.draw(st.dictionaries(st.sampled_from(names), JSON) | JSON)
    try:
        params.model_validate(sent, by_alias=True)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False):
            # The names of agents' own members are theirs.
            said = problem_of(item)
            if item["type"] != "value_error":
                assert not PYTHON.search(said), said
