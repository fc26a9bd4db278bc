import time
from typing import Any

import pytest

from proof.effort import EFFORT_MAX, effort


def doubling(levels: int, keyword: str = "allOf") -> dict[str, Any]:
    schemas: dict[str, Any] = {
        f"A{n}": {keyword: [{"$ref": f"#/$defs/A{n + 1}"}] * 2} for n in range(levels)
    }
    schemas[f"A{levels}"] = {"type": "object"}
    return {"$ref": "#/$defs/A0", "$defs": schemas}


LOOP = {"$ref": "#/$defs/A", "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}]}}}
TREE = {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"next": {"$ref": "#/$defs/A"}}}}}


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        ({}, 1),
        ({"anyOf": [{}, True, {"not": {}}]}, 5),
        # Members are other values.
        ({"properties": {"a": {"oneOf": [{}, {}]}}}, 3),
        ({"if": {}, "then": {}, "else": {}, "dependentSchemas": {"a": {}}}, 5),
        ({"items": {"allOf": [{}] * 7}, "prefixItems": [{}]}, 8),
        (doubling(0), 2),
        (doubling(1), 6),
        (LOOP, 4),
        (TREE, 2),
    ],
)
def test_each_schema_that_holds_a_value_counts(schema: dict[str, Any], count: int) -> None:
    assert effort(schema) == count


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_what_explodes_is_known_without_trying(keyword: str) -> None:
    assert effort(doubling(40, keyword)) > 2**40 > EFFORT_MAX
    assert effort({"properties": {"a": {"items": doubling(40)["$defs"]["A39"]}}}) < EFFORT_MAX


def test_it_is_linear_in_the_schema() -> None:
    before = time.process_time()
    assert effort(doubling(10_000)) > EFFORT_MAX
    assert time.process_time() - before < 20
