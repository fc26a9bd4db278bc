"""The index of methods is that of this release, and its examples are calls that a node accepts."""

import doctest
import shlex

import pytest

from cli import method_index
from cli.call import OPEN, read_params
from cli.docs import method_index as made
from cli.method_help import INDEX, methods
from server.methods import METHODS


def test_the_examples_hold() -> None:
    assert doctest.testmod(method_index).failed == 0


def test_the_file_is_up_to_date() -> None:
    assert INDEX.read_text() == made(), "run `make docs`"
    assert [*methods()] == [*METHODS]


@pytest.mark.parametrize("name", [*METHODS])
def test_an_example_gives_each_required_param(name: str) -> None:
    command, word, method, *words = shlex.split(methods()[name]["example"].replace(OPEN, "x"))
    assert (command, word, method) == ("cacp", "call", name)
    required = {param["name"] for param in methods()[name]["params"] if param["required"]}
    assert set(read_params(words)) == required


@pytest.mark.parametrize("name", [name for name in METHODS if "/sync" not in name])
def test_what_an_agents_method_requires_has_a_meaning(name: str) -> None:
    unnamed = {"source_agent", "signature", "keys", "relay", "session_key", "call", "node", "known"}
    for param in methods()[name]["params"]:
        if param["name"] not in unnamed and param["required"]:
            assert param["about"], param["name"]
