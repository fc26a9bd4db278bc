"""Reading and linting `.jsont` files (acpcomply, JSON Template Test Schema)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comply.source import NotATest, Problem, id_of, lint, parse, read

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


def test_a_good_test_has_no_problems() -> None:
    assert lint(GOOD) == []
    assert read(GOOD).steps[1].send == {
        "jsonrpc": "2.0",
        "id": 99,
        "method": "no",
        "params": {"s": "${sessionId}"},
    }


def test_a_foreign_precondition_is_said_once() -> None:
    text = GOOD.replace('"steps"', '"preconditions": [{"os": "x"}], "steps"', 1)
    said = [one.text for one in lint(text) if one.text.startswith("preconditions")]
    assert said == ["preconditions.0: only other runners know os: NA here"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('"required",', '"required"', 5, "not JSON: Expected ',' or '}'"),
        ('"required"', '"urgent"', 4, "severity: should be required or optional"),
        ('"newSession"', '"newSesion"', 7, "steps.0: a step has exactly one of newSession"),
        ("${sessionId}", "${session}", 8, "${session} is set by no step"),
        ("2000", '"2s"', 9, "steps.2.expect.timeoutMs: should be a number"),
        ("^-32601$", "(", 10, "steps.2.expect.messages.0.response.error.code: ( is no regex"),
        ('"response"', '"respons"', 10, "steps.2.expect.messages.0: a message has exactly one of"),
        ('"title"', '"title": "x", "title"', 2, "'title' is here twice"),
        ('"timeoutMs"', '"timeout"', 9, "steps.2.expect.timeout: unknown, so ignored"),
        ('"description"', '"x"', 1, "description: says in plain words"),
        ('"steps"', '"preconditions": [{"os": "x"}], "steps"', 6, "preconditions.0: only other"),
        ('"steps"', '"preconditions": [{}], "steps"', 6, "preconditions.0: a precondition has"),
    ],
)
def test_a_problem_has_its_line(old: str, new: str, line: int, said: str) -> None:
    found = lint(GOOD.replace(old, new, 1))
    assert any(one.line == line and one.text.startswith(said) for one in found), found


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ({"path": "../x", "text": ""}, "sandbox.files.0.path: must lie in the sandbox"),
        ({"path": "/etc/x", "text": ""}, "sandbox.files.0.path: must lie in the sandbox"),
        ({"path": "x", "base64": "é"}, "sandbox.files.0"),
        ({"path": "x", "base64": "a"}, "sandbox.files.0.base64"),
        ({"path": "x", "text": "a", "base64": ""}, "sandbox.files.0: a file has text or base64"),
    ],
)
def test_sandbox_files_are_checked(file: dict[str, str], said: str) -> None:
    test = json.loads(GOOD) | {"sandbox": {"files": [file]}}
    assert [one.text for one in lint(json.dumps(test)) if one.text.startswith(said)]


def test_what_other_runners_take_is_taken() -> None:
    """`timeoutMs` and `delayMs` are numbers, and each has a default or may be left out."""
    steps = [{"expect": {"timeoutMs": 200.0, "messages": []}}, {"forbid": {"methods": ["x"]}}]
    test = json.loads(GOOD) | {"steps": [*steps, {"delayMs": 0.5}]}
    assert lint(json.dumps(test)) == []
    first, second, third = read(json.dumps(test)).steps
    assert first.expect is not None
    assert second.forbid is not None
    waits = (first.expect.timeout_ms, second.forbid.timeout_ms, third.delay_ms)
    assert waits == (200, 5000, 0.5)


def test_a_pattern_that_is_none_keeps_a_test_from_running() -> None:
    with pytest.raises(NotATest, match=r"line 10: .*error\.code: \( is no regex of ECMAScript"):
        read(GOOD.replace("^-32601$", "("))


def test_unknown_fields_are_ignored_safely() -> None:
    """acpcomply, Design constraints."""
    test = json.loads(GOOD) | {"later": {"more": 1}}
    assert read(json.dumps(test)) == read(GOOD)
    assert {one.level for one in lint(json.dumps(test))} == {"warning"}


def test_a_file_that_is_no_test_says_where_and_why() -> None:
    with pytest.raises(NotATest) as refused:
        read('{\n"title": 1}')
    assert refused.value.problem == Problem(2, "title: should be a string")


@pytest.mark.parametrize("text", ["", "[" * 5000, '{"a": 1} x', '{"a" 1}', "{1: 2}", "nul", '"'])
def test_what_is_not_json_has_one_problem(text: str) -> None:
    (problem,) = lint(text)
    assert problem.text.startswith("not JSON")


def test_the_id_is_the_name_of_the_file() -> None:
    assert id_of(Path("suites/acp/required.initialize.jsont")) == "required.initialize"
