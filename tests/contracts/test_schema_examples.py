"""Examples fit the schema that they are examples of."""

import random

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from contracts.model import Located
from contracts.recognise import read
from contracts.schema_examples import examples
from contracts.schema_reader import SchemaReader
from contracts.work import Work
from tests.contracts.schema_pairs import SchemaMaker


def test_each_example_is_valid() -> None:
    count = 0
    for seed in range(300):
        schema = SchemaMaker(random.Random(seed)).schema()
        if not isinstance(schema, dict) or "$ref" in str(schema):
            continue
        reader = SchemaReader(read(schema, "json-schema"), "response", Work(1_000_000))
        validator = Draft202012Validator(schema)
        for atom in reader.atoms(reader.view(Located(schema, ()))):
            for value in examples(reader, atom):
                count += 1
                assert validator.is_valid(value), (seed, schema, value)
    assert count > 500
