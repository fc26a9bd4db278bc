"""The normal form: intersections and places."""

import pytest

from contracts.recognise import read
from contracts.schema_atoms import Atom, SchemaNode, below, is_integer, meet, value_type
from contracts.schema_reader import SchemaReader
from contracts.shorthand import ShorthandSchema
from contracts.work import Work

AT = SchemaNode({}, (), "")


def reader() -> SchemaReader:
    return SchemaReader(read({"type": "object"}, "json-schema"), "response", Work(1_000))


def test_what_fits_both_keeps_the_stricter_of_each_bound() -> None:
    one = Atom("string", AT, bounds={"minLength": 2, "maxLength": 9})
    two = Atom("string", AT, bounds={"minLength": 3, "maxLength": 10}, texts=frozenset({("a", 1)}))
    both = meet(one, two, reader().member)
    assert both is not None
    assert both.bounds == {"minLength": 3, "maxLength": 9}
    assert both.texts == {("a", 1)}


def test_listed_values_are_those_in_both_and_types_exclude_each_other() -> None:
    one, two = (
        Atom("number", AT, values={str(value): value for value in values})
        for values in ((1, 2), (2, 3))
    )
    both = meet(one, two, reader().member)
    assert both is not None
    assert both.values == {"2": 2}
    assert meet(one, Atom("string", AT), reader().member) is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_types_of_values(value: object, kind: str) -> None:
    assert value_type(value) == kind


def test_whole_numbers() -> None:
    assert is_integer(1.0)
    assert not is_integer(1.5)


def test_the_path_of_shorthand_is_what_the_content_writes() -> None:
    schema = ShorthandSchema(type="object")
    schema.written = {"a": "a?"}
    assert below(SchemaNode(schema, ("r",), ""), ("properties", "a")) == ("r", "a?")
    assert below(SchemaNode({}, ("r",), ""), ("properties", "a")) == ("r", "properties", "a")
