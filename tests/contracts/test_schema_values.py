"""Whether a schema accepts a value, held against another library."""

import random
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from contracts.model import Located
from contracts.recognise import read
from contracts.schema_reader import SchemaReader
from contracts.schema_values import accepts
from contracts.work import Work
from tests.contracts.schema_pairs import SchemaMaker, ValueMaker


def test_it_agrees_with_a_validator_wherever_it_decides() -> None:
    decided = 0
    for seed in range(400):
        chance = random.Random(seed)
        schema = SchemaMaker(chance).schema()
        if not isinstance(schema, dict) or "$ref" in str(schema):
            continue
        interface = read(schema, "json-schema")
        reader = SchemaReader(interface, "response", Work(100_000))
        validator, values = Draft202012Validator(schema), ValueMaker(chance, schema)
        for _ in range(10):
            value = values.value(schema, schema)
            answer = accepts(reader, reader.view(Located(schema, ())), value)
            if answer is not None:
                decided += 1
                assert answer == validator.is_valid(value), (seed, schema, value)
    assert decided > 1_500


def test_formats_and_multiples() -> None:
    def fits(schema: dict[str, Any], value: Any) -> bool | None:
        reader = SchemaReader(read(schema, "json-schema"), "response", Work(1_000))
        return accepts(reader, reader.view(Located(schema, ())), value)

    assert fits({"type": "string", "format": "date"}, "2026-11-26") is True
    assert fits({"type": "string", "format": "date"}, "today") is False
    assert fits({"type": "string", "format": "order-number"}, "x") is None
    assert fits({"type": "number", "multipleOf": 0.1}, 0.3) is True
    assert fits({"type": "number", "multipleOf": 0.1}, 0.35) is False
