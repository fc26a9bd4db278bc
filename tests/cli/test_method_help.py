"""What `cacp call` says of methods: help, completion, likely names."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli import method_help
from cli.method_help import beginning_with, help_text, methods, near, unknown_method, unknown_params


def test_the_examples_hold() -> None:
    assert doctest.testmod(method_help).failed == 0


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("cacp/contract/propse", "cacp/contract/propose"),
        ("contract/propose", "cacp/contract/propose"),
        ("CACP/Project/List", "cacp/project/list"),
        ("inbox", "acp/inbox"),
        ("acp/inbx", "acp/inbox"),
    ],
)
def test_the_most_similar_is_first(name: str, likely: str) -> None:
    assert near(name, methods())[0] == likely
    assert f"did you mean {likely}" in unknown_method(name)


@given(st.text())
def test_what_is_nothing_like_a_method_is_a_sentence(name: str) -> None:
    assert "is not a method" in unknown_method(name)


def test_names_are_completed() -> None:
    assert beginning_with("cacp/contract/pro") == ["cacp/contract/propose"]
    assert beginning_with("") == [*methods()]
    assert beginning_with("zzz") == []


def test_params_that_a_method_does_not_have() -> None:
    assert unknown_params("cacp/contract/get", ["projectId", "contract_id", "zzz"]) == [
        "cacp/contract/get has no param contract_id; did you mean contractId?",
        "cacp/contract/get has no param zzz; it has: projectId, contractId, includeHistory",
    ]
    assert unknown_params("no/method", ["a"]) == []


@pytest.mark.parametrize("name", [*methods()])
def test_help_has_every_param_and_an_example(name: str) -> None:
    text = help_text(name)
    for param in methods()[name]["params"]:
        assert f"\n  {param['name']} " in text
    assert methods()[name]["example"] in text
