from typing import Any

from proof.edges import edge_values
from proof.validators import SchemaValidator

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["grams"],
    "properties": {
        "grams": {"type": "integer", "minimum": 1, "maximum": 30000},
        "price": {"type": "number", "exclusiveMinimum": 0},
        "to": {"type": "string", "minLength": 2, "maxLength": 60},
        "code": {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 9},
        "tags": {"type": "array", "items": {"enum": ["x", "y", "z"]}, "maxItems": 3},
        "sizes": {
            "type": "array",
            "items": {"type": "integer"},
            "uniqueItems": True,
            "minItems": 2,
        },
        "note": {"type": ["string", "null"]},
        "size": {"enum": ["s", "m", "xxl"]},
        "gift": {"type": "boolean"},
        "at": {"type": "string", "format": "date-time"},
    },
}


def test_the_edges_of_what_is_valid_are_among_the_values() -> None:
    values = edge_values(SCHEMA, lambda value: [value])
    assert all(map(SchemaValidator(SCHEMA).accepts, values))
    of: dict[str, list[Any]] = {
        name: [value[name] for value in values if name in value] for name in SCHEMA["properties"]
    }
    assert {1, 2, 29999, 30000} <= {*of["grams"]}
    assert {0.5, 1} <= {*of["price"]}
    assert {2, 60} <= {len(text) for text in of["to"]}
    assert 9 in {len(text) for text in of["code"]}
    assert {0, 1, 3} <= {len(items) for items in of["tags"]}
    assert 2 in {len(items) for items in of["sizes"]}
    assert None in of["note"]
    assert {"s", "m", "xxl"} <= {*of["size"]}
    assert {True, False} <= {*of["gift"]}
    assert any(text.endswith("+02:00") for text in of["at"])
    # Only what is required, and all that there is.
    assert {"grams"} in [value.keys() for value in values]
    assert any(len(value) == len(SCHEMA["properties"]) for value in values)
    assert values == edge_values(SCHEMA, lambda value: [value])


def test_what_cannot_be_sent_is_no_edge() -> None:
    assert edge_values({"enum": ["a", "b"]}, lambda value: [value] if value == "b" else []) == ["b"]
