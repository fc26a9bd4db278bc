"""Schemas in normal form: what each draft means."""

from typing import Any

import pytest

from contracts.model import Located
from contracts.recognise import read
from contracts.schema_atoms import Atom
from contracts.schema_reader import SchemaReader
from contracts.work import TooMuchWork, Work


def atoms(schema: Any, direction: Any = "response", steps: int = 10_000) -> dict[str, Atom]:
    """The alternatives of a schema, by type."""
    interface = read(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"D": schema},
            "$ref": "#/$defs/D",
        },
        "json-schema",
    )
    reader = SchemaReader(interface, direction, Work(steps))
    found = reader.atoms(reader.view(Located(schema, ("$defs", "D"))))
    return {atom.type: atom for atom in found}


def test_a_schema_that_says_nothing_allows_each_type_and_false_none() -> None:
    assert set(atoms({})) == {"null", "boolean", "number", "string", "array", "object"}
    assert atoms(False) == {}


def test_listed_values_are_split_by_type() -> None:
    found = atoms({"enum": [1, "a", None, 2]})
    assert {kind: list((atom.values or {}).values()) for kind, atom in found.items()} == {
        "number": [1, 2],
        "string": ["a"],
        "null": [None],
    }
    assert atoms({"type": "integer", "enum": [1, 1.5, "a"]})["number"].values == {"1": 1}


def test_schemas_that_are_joined() -> None:
    assert set(atoms({"anyOf": [{"type": "string"}, {"type": "null"}]})) == {"string", "null"}
    joined = atoms({"allOf": [{"type": ["string", "null"]}, {"type": "string", "minLength": 1}]})
    assert set(joined) == {"string"}
    assert joined["string"].bounds == {"minLength": 1}
    # Two alternatives that may both fit are refused together.
    assert atoms({"oneOf": [{"minimum": 1}, {"maximum": 3}]})["number"].opaque
    assert not atoms({"oneOf": [{"type": "string"}, {"type": "number"}]})["number"].opaque


def test_what_belongs_to_the_other_direction_is_left_out() -> None:
    schema = {"properties": {"id": {"readOnly": True}, "n": {}}, "required": ["id", "n"]}
    sent = atoms(schema, "request")["object"]
    assert (set(sent.members), set(sent.required)) == ({"n"}, {"n"})
    assert atoms(schema, "response")["object"].required == {"id", "n"}


def test_unevaluated_members_are_those_that_no_joined_schema_names() -> None:
    schema = {
        "allOf": [{"properties": {"a": {}}}],
        "properties": {"b": {}},
        "unevaluatedProperties": False,
    }
    found = atoms(schema)["object"]
    assert set(found.members) == {"a", "b"}
    assert found.rest is not None


def test_a_schema_of_nothing_but_itself_is_not_worked_out() -> None:
    assert all(atom.opaque for atom in atoms({"anyOf": [{"$ref": "#/$defs/D"}]}).values())
    assert all(atom.opaque for atom in atoms({"$ref": "#/$defs/none"}).values())


def test_work_has_a_bound() -> None:
    with pytest.raises(TooMuchWork):
        atoms({"anyOf": [{"type": "string"}] * 50}, steps=10)


def test_a_pattern_that_takes_too_long_is_not_known_to_match() -> None:
    reader = SchemaReader(read({"type": "object"}, "json-schema"), "response", Work(100_000))
    assert reader.matches("^a", "ab") is True
    assert reader.matches("(", "ab") is None
    assert reader.matches("(x+x+)+y", "x" * 60) in (None, False)


def test_a_doubling_chain_of_schemas_is_worked_out_once() -> None:
    """Each joins the one before it with itself: without a memo that is 2^20 schemas."""
    links = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number - 1}"}] * 2} for number in range(1, 20)
    }
    interface = read({"$ref": "#/$defs/d19", "$defs": {"d0": {"type": "string"}, **links}})
    reader = SchemaReader(interface, "response", Work(1_000))
    view = reader.view(Located({"$ref": "#/$defs/d19"}, ()))
    assert [atom.type for atom in reader.atoms(view)] == ["string"]


def test_values_and_patterns_spend_work_by_what_they_cost() -> None:
    with pytest.raises(TooMuchWork):
        atoms({"enum": list(range(2_000))}, steps=2_000)
    reader = SchemaReader(read({"type": "object"}, "json-schema"), "response", Work(1_000))
    reader.matches("^a", "a" * 9)
    with pytest.raises(TooMuchWork):
        all(reader.matches("^a", f"a{number}") for number in range(20))
