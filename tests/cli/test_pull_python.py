import warnings
from typing import Any

from cli.pull_generated import NoTypes, check_python
from cli.pull_python import answer, types_of
from cli.pull_types import TypesInput, types_input
from proof.agreed import AgreedContract
from tests.cli.hostile_types import hostile_schema

SEEDS = range(120)


def input_of(content: dict[str, Any], name: str = "A") -> TypesInput:
    given = types_input(AgreedContract(name, content, None, "01", 1))
    assert isinstance(given, TypesInput)
    return given


def test_the_keys_of_a_type_are_those_of_its_schema() -> None:
    members = dict.fromkeys(("_id", "camelCase", "class", "1a", "@type", "copy"), "string")
    text = types_of(input_of(members, "User").document)
    namespace: dict[str, Any] = {"__name__": "types"}
    exec(text, namespace)
    assert {*namespace["User"].__annotations__} == {*members}


def test_hostile_contracts_make_types_and_nothing_else() -> None:
    """What isn't refused compiles, is imported, and has a type for each body."""
    refused = 0
    for seed in SEEDS:
        given = input_of(hostile_schema(seed), 'x"); import os; ("')
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = answer(given.document)
        if "why" in made:
            refused += 1
            continue
        try:
            check_python(f"# {given.header}\n{made['text']}")
        except NoTypes:
            refused += 1
            continue
        namespace: dict[str, Any] = {"__name__": "types"}
        exec(compile(made["text"], "types", "exec"), namespace)
        assert "XImportOs" in namespace
    assert refused <= len(SEEDS) // 20


def test_why_there_are_no_types_is_answered() -> None:
    assert answer({"openapi": "3.1.0", "paths": "none"})["why"]
