"""Whole contents compared: never an exception, always a bounded amount of work."""

from typing import Any

import pytest
from hypothesis import given

from contracts.compare import compare
from contracts.recognise import read
from tests.support.contents import CONTENTS

JsonObject = dict[str, Any]


def rules(before: JsonObject, after: JsonObject) -> list[tuple[str, str, str]]:
    found = compare(read(before), read(after))
    return [(change.path, change.rule, change.consumer) for change in found.changes]


@given(CONTENTS)
def test_the_same_content_has_no_change(content: JsonObject) -> None:
    found = compare(read(content), read(content))
    assert (found.verdict, found.changes, found.more) == ("same", [], 0)


@given(CONTENTS, CONTENTS)
def test_any_two_contents_are_compared(before: JsonObject, after: JsonObject) -> None:
    found = compare(read(before), read(after))
    effects = {change.consumer for change in found.changes}
    worst = [effect for effect in ("breaking", "unknown", "compatible") if effect in effects]
    assert found.verdict == found.consumer == (worst[0] if worst else "same")
    assert bool(found.changes) == (read(before).document != read(after).document)
    for change in found.changes:
        assert change.path.startswith("$")
        assert change.why
        assert (change.breaks == "both") == (change.provider == change.consumer == "breaking")


def test_a_chain_of_schemas_is_compared_to_its_end() -> None:
    def chain(kind: str, length: int = 2_000) -> JsonObject:
        links = {
            f"d{number}": {"properties": {"next": {"$ref": f"#/$defs/d{number + 1}"}}}
            for number in range(length)
        }
        return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{length}": {"type": kind}}}

    was, now = (read(chain(kind), "json-schema") for kind in ("string", "integer"))
    found = compare(was, now)
    assert [change.path for change in found.changes] == ['$["$defs"].d2000.type']
    assert found.verdict == "breaking"


def test_what_nobody_reads_is_unknown_by_its_path() -> None:
    before = {"kind": "config", "values": {"retries": 3, "hosts": ["a", "b"]}}
    after = {"kind": "config", "values": {"retries": 4, "hosts": ["a"]}, "more": None}
    assert rules(before, after) == [
        ("$.values.retries", "value_changed", "unknown"),
        ("$.values.hosts[1]", "value_removed", "unknown"),
        ("$.more", "value_added", "unknown"),
    ]


def test_another_dialect_is_not_compared() -> None:
    endpoint = {"method": "GET", "path": "/a", "response": {"a": "string"}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    assert rules(endpoint, document) == [("$", "dialect_changed", "unknown")]


def test_what_an_endpoint_says_besides_is_unknown() -> None:
    before = {"method": "GET", "path": "/a", "response": {"a": "string"}, "timeout": 5}
    assert rules(before, before | {"timeout": 9}) == [("$.timeout", "value_changed", "unknown")]


def test_words_for_readers_and_defaults() -> None:
    def content(**schema: Any) -> JsonObject:
        return {"method": "GET", "path": "/a", "response": {"type": "string", **schema}}

    assert rules(content(title="A"), content(title="B")) == [
        ("$.response.title", "annotation_changed", "compatible")
    ]
    assert rules(content(default="a"), content(default="b")) == [
        ("$.response.default", "default_changed", "unknown")
    ]


def deep(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def exponential(width: int, levels: int, leaf: str) -> JsonObject:
    """An `allOf` of references, each to an `allOf` of references."""
    definitions: JsonObject = {"d0": {"type": "object", "properties": {"a": {"type": leaf}}}}
    for level in range(1, levels):
        definitions[f"d{level}"] = {
            "allOf": [{"$ref": f"#/$defs/d{level - 1}"} for _ in range(width)]
        }
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": definitions}


def alternatives(count: int, kind: str) -> JsonObject:
    branches = [{"anyOf": [{"type": kind, "minLength": n} for n in range(count)]}] * 4
    return {"type": kind, "allOf": branches, "maxLength": count}


def cycle(leaf: str) -> JsonObject:
    return {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": leaf}]},
            "b": {"allOf": [{"$ref": "#/$defs/a"}]},
        },
    }


def listed(count: int) -> JsonObject:
    return {"type": "string", "enum": [f"v{number}" for number in range(count)]}


def tuples(count: int, kind: str) -> JsonObject:
    """Alternatives of as many elements each, of which none is told from the others."""
    branches = [
        {"type": "array", "prefixItems": [{"type": kind, "minLength": n + m} for n in range(count)]}
        for m in range(count)
    ]
    return {"anyOf": branches}


def chosen(levels: int, kind: str) -> JsonObject:
    """Alternatives of objects that hold the alternatives of the level below."""
    definitions: JsonObject = {"d0": {"type": kind}}
    for level in range(1, levels):
        below = {"$ref": f"#/$defs/d{level - 1}"}
        branches = [members_of(a=below, b={"type": "string", "minLength": n}) for n in range(10)]
        definitions[f"d{level}"] = {"oneOf": branches}
    return {"$ref": f"#/$defs/d{levels - 1}", "$defs": definitions}


def members_of(**properties: Any) -> JsonObject:
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def test_listed_values_are_looked_up_not_tried_one_by_one() -> None:
    was, now = (read(listed(count), "json-schema") for count in (5_000, 5_001))
    found = compare(was, now, 200_000)
    assert [change.rule for change in found.changes] == ["enum_value_added"]


def test_schemas_that_join_one_schema_twice_are_worked_out_once() -> None:
    was, now = (read(exponential(2, 40, kind), "json-schema") for kind in ("string", "integer"))
    found = compare(was, now, 20_000)
    assert [change.rule for change in found.changes] == ["type_changed"]


HUGE = 10**400


@pytest.mark.parametrize("after", [{"maximum": 5}, {"multipleOf": 0.5}, {"const": HUGE}, {}])
@pytest.mark.parametrize(
    "keyword",
    ["maximum", "minimum", "exclusiveMaximum", "multipleOf", "const", "minLength", "maxItems"],
)
def test_numbers_beyond_those_of_64_bits_are_compared(keyword: str, after: JsonObject) -> None:
    was, now = read({keyword: HUGE}, "json-schema"), read(after, "json-schema")
    for first, second in ((was, now), (now, was)):
        assert compare(first, second).changes or was.document == now.document


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (deep(90), deep(89)),
        (exponential(2, 90, "string"), exponential(2, 90, "integer")),
        (listed(5_000), listed(5_001)),
        (tuples(60, "string"), tuples(60, "number")),
        (chosen(20, "string"), chosen(20, "integer")),
        (exponential(10, 12, "string"), exponential(10, 12, "integer")),
        (alternatives(60, "string"), alternatives(61, "string")),
        (cycle("string"), cycle("integer")),
        ({"pattern": "(a+)+$", "type": "string"}, {"enum": ["a" * 40 + "!"]}),
        (
            {"$ref": "https://example.com/schema.json", "type": "string"},
            {"$ref": "https://example.com/other.json", "type": "string"},
        ),
    ],
)
def test_a_hostile_content_costs_a_bounded_amount_of_work(
    before: JsonObject, after: JsonObject
) -> None:
    """The bound counts steps: with few of them the verdict is unknown, and never fine."""
    was, now = read(before, "json-schema"), read(after, "json-schema")
    for steps in (0, 30, 300_000):
        for first, second in ((was, now), (now, was)):
            found = compare(first, second, steps)
            assert found.changes
            assert "unknown" in (found.verdict, found.provider) or "breaking" in (
                found.verdict,
                found.provider,
            )
    few = compare(was, now, 0)
    assert (few.verdict, few.provider) == ("unknown", "unknown")
