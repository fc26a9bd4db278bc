"""Linting `.jsont` files (acpcomply, JSON Template Test Schema)."""

import json
from pathlib import Path

import pytest

from comply.lint import lint
from comply.source import Problem, read
from tests.comply.test_source import GOOD


def checked(text: str, folder: Path = Path()) -> list[Problem]:
    return lint(text, folder)


def test_a_good_test_has_no_problems() -> None:
    assert checked(GOOD) == []
    assert read(GOOD).steps[1].send == {
        "jsonrpc": "2.0",
        "id": 99,
        "method": "no",
        "params": {"s": "${sessionId}"},
    }


def test_a_foreign_precondition_is_reported_once() -> None:
    text = GOOD.replace('"steps"', '"preconditions": [{"os": "x"}], "steps"', 1)
    said = [problem.text for problem in checked(text) if problem.text.startswith("preconditions")]
    assert said == ["preconditions.0: only other runners know os: NA here"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('"required",', '"required"', 5, "not JSON: Expected ',' or '}'"),
        ('"required"', '"urgent"', 4, "severity: should be required or optional"),
        ('"newSession"', '"newSesion"', 7, "steps.0: a step has exactly one of newSession"),
        ("${sessionId}", "${session}", 8, "${session} is set by no step"),
        ("2000", '"2s"', 9, "steps.2.expect.timeoutMs: should be a number"),
        (
            "^-32601$",
            "(",
            10,
            "steps.2.expect.messages.0.response.error.code: ( is not an ECMAScript regex",
        ),
        ('"response"', '"respons"', 10, "steps.2.expect.messages.0: a message has exactly one of"),
        ('"title"', '"title": "x", "title"', 2, "'title' is here twice"),
        ('"timeoutMs"', '"timeout"', 9, "steps.2.expect.timeout: unknown, so ignored"),
        ('"description"', '"x"', 1, "description is missing"),
        ('"steps"', '"preconditions": [{"os": "x"}], "steps"', 6, "preconditions.0: only other"),
        ('"steps"', '"preconditions": [{}], "steps"', 6, "preconditions.0: a precondition has"),
    ],
)
def test_a_problem_has_its_line(old: str, new: str, line: int, said: str) -> None:
    found = checked(GOOD.replace(old, new, 1))
    assert any(problem.line == line and problem.text.startswith(said) for problem in found), found


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
    assert [problem.text for problem in checked(json.dumps(test)) if problem.text.startswith(said)]


def test_what_other_runners_take_is_taken() -> None:
    """`timeoutMs` and `delayMs` are numbers, and each has a default or may be left out."""
    steps = [{"expect": {"timeoutMs": 200.0, "messages": []}}, {"forbid": {"methods": ["x"]}}]
    test = json.loads(GOOD) | {"steps": [*steps, {"delayMs": 0.5}]}
    assert checked(json.dumps(test)) == []
    first, second, third = read(json.dumps(test)).steps
    assert first.expect is not None
    assert second.forbid is not None
    waits = (first.expect.timeout_ms, second.forbid.timeout_ms, third.delay_ms)
    assert waits == (200, 5000, 0.5)


def test_unknown_fields_are_ignored_safely() -> None:
    """acpcomply, Design constraints."""
    test = json.loads(GOOD) | {"later": {"more": 1}}
    assert read(json.dumps(test)) == read(GOOD)
    assert {problem.level for problem in checked(json.dumps(test))} == {"warning"}


@pytest.mark.parametrize("text", ["", "[" * 5000, '{"a": 1} x', '{"a" 1}', "{1: 2}", "nul", '"'])
def test_what_is_not_json_has_one_problem(text: str) -> None:
    (problem,) = checked(text)
    assert problem.text.startswith("not JSON")


SETUP = '{"steps": [{"newSession": {}}, {"expect": {"messages": [], "captures": [%s]}}]}'


def test_variables_that_a_set_up_sets_are_known(tmp_path: Path) -> None:
    captured = '{"path": "id", "var": "made"}'
    (tmp_path / "base.setup.json").write_text(SETUP % captured)
    text = GOOD.replace("${sessionId}", "${made}").replace('"steps"', '"setup": "base", "steps"')
    assert checked(text, tmp_path) == []
    (problem,) = checked(text.replace("${made}", "${gone}"), tmp_path)
    assert problem == Problem(8, "${gone} is set by no step")


def test_a_set_up_that_can_not_be_loaded_has_the_line_that_names_it(tmp_path: Path) -> None:
    text = GOOD.replace('"steps"', '"setup": "base", "steps"')
    wanted = Problem(6, "setup: base.setup.json is missing from the test's folder")
    assert checked(text, tmp_path) == [wanted]
