"""Reading and linting `.jsont` files (acpcomply, JSON Template Test Schema)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.source import NotATest, Problem, id_of, parse, read

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
GOOD = """{
  "title": "Unknown method",
  "description": "An unknown method is refused.",
  "severity": "required",
  "docs": ["https://www.jsonrpc.org/specification#error_object"],
  "steps": [
    { "newSession": { "capture": "sessionId" } },
    { "send": { "jsonrpc": "2.0", "id": 99, "method": "no", "params": { "s": "${sessionId}" } } },
    { "expect": { "timeoutMs": 2000, "messages": [
      { "response": { "id": 99, "error": { "code": "^-32601$" } } } ] } }
  ]
}
"""


@given(JSON, st.sampled_from([None, 1, 3]))
def test_json_is_read_as_the_standard_library_reads_it(value: Any, indent: int | None) -> None:
    assert parse(json.dumps(value, indent=indent)).value == value


def test_each_value_has_its_line() -> None:
    source = parse('{\n "a": 1,\n "b": [\n 2,\n {"c": 3}\n]}')
    assert source.lines == {
        (): 1, ("a",): 2, ("b",): 3, ("b", 0): 4, ("b", 1): 5, ("b", 1, "c"): 5,
    }  # fmt: skip
    assert source.line(("b", 1, "nowhere")) == 5


def test_a_pattern_that_is_none_keeps_a_test_from_running() -> None:
    with pytest.raises(NotATest, match=r"line 10: .*error\.code: \( is not an ECMAScript regex"):
        read(GOOD.replace("^-32601$", "("))


def test_a_file_that_is_no_test_says_where_and_why() -> None:
    with pytest.raises(NotATest) as refused:
        read('{\n"title": 1}')
    assert refused.value.problem == Problem(2, "title: should be a string")


def test_the_id_is_the_name_of_the_file() -> None:
    assert id_of(Path("suites/acp/required.initialize.jsont")) == "required.initialize"
