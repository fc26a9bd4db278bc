"""A board at a terminal."""

import doctest

from cli import project_board_view
from cli.project_board_view import _awaited


def test_the_examples_hold() -> None:
    assert doctest.testmod(project_board_view).failed == 0


def test_one_verification_is_enough() -> None:
    steps = [{"kind": "verify", "repoId": "1", "name": "web"}, {"kind": "verify", "repoId": "2"}]
    assert _awaited(steps) == "verify: web or 2"
    repair = [step | {"kind": "repair"} for step in steps]
    assert _awaited([*repair, *steps]) == "repair: web, 2; verify: web or 2"
