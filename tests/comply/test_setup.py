"""Set-ups that the tests of a folder share."""

import json
from pathlib import Path

import pytest

from comply.files import SUITES, BadTest, find, load
from comply.setup import SETUP_SUFFIX, BadSetup, setup_steps
from comply.source import SUFFIX

TEST = '{"title": "t", "severity": "required", "setup": "far", "steps": [{"delayMs": 1}]}'


def write(folder: Path, name: str, delay: float, base: str | None = None) -> None:
    text = json.dumps({"setup": base, "steps": [{"delayMs": delay}]})
    (folder / f"{name}{SETUP_SUFFIX}").write_text(text)


def test_a_set_up_runs_after_those_it_builds_on_and_before_the_test(tmp_path: Path) -> None:
    write(tmp_path, "near", 3)
    write(tmp_path, "far", 2, base="near")
    (tmp_path / "a.jsont").write_text(TEST)
    (path,) = find([str(tmp_path)])
    case = load(path)
    assert [step.delay_ms for step in case.test.steps] == [3, 2, 1]
    assert case.setup_count == 2


def test_a_test_without_a_set_up_has_its_own_steps_alone(tmp_path: Path) -> None:
    assert setup_steps(None, tmp_path) == []


def test_a_set_up_that_builds_on_itself_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "near", 1, base="far")
    write(tmp_path, "far", 1, base="near")
    with pytest.raises(BadSetup, match=r"far\.setup\.json builds on itself"):
        setup_steps("far", tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "far.setup.json is missing from the test's folder"),
        (b'{\n"steps": [{}]}', "far.setup.json:2: steps.0: a step has exactly one of"),
        (b"\xff", "far.setup.json can't be read: not UTF-8"),
    ],
)
def test_a_set_up_that_can_not_be_loaded_is_named(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / f"far{SETUP_SUFFIX}").write_bytes(content)
    (tmp_path / "a.jsont").write_text(TEST)
    with pytest.raises(BadTest) as refused:
        load(tmp_path / "a.jsont")
    assert str(refused.value).startswith(f"{tmp_path / 'a.jsont'}: setup: {problem}")


def test_a_set_up_lies_in_the_folder_of_its_test(tmp_path: Path) -> None:
    (tmp_path / "a.jsont").write_text(TEST.replace("far", "../far"))
    with pytest.raises(BadTest, match="setup: should match"):
        load(tmp_path / "a.jsont")


def test_suites_that_other_runners_read_share_no_set_up() -> None:
    """They would ignore the field, and run the steps without it."""
    cases = [load(path) for path in SUITES.glob(f"*/*{SUFFIX}")]
    assert {case.test.transport for case in cases if case.setup_count} == {"http"}


def test_every_shipped_set_up_is_used() -> None:
    used = {load(path).test.setup for path in SUITES.glob(f"*/*{SUFFIX}")}
    based = {json.loads(path.read_text()).get("setup") for path in SUITES.glob("*/*.setup.json")}
    names = {path.name.removesuffix(SETUP_SUFFIX) for path in SUITES.glob("*/*.setup.json")}
    assert names <= used | based
