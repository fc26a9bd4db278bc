"""graphql-core is the judge: what is compatible leaves every query of an old consumer valid."""

import pytest
from graphql import build_schema, parse, specified_scalar_types, validate
from graphql.utilities import BreakingChangeType, DangerousChangeType
from graphql.utilities.find_schema_changes import SafeChangeType, find_schema_changes
from hypothesis import given

from contracts.changes import WORDS_ONLY, ContractChange
from contracts.compare import compare
from contracts.graphql_changes import graphql_changes
from contracts.recognise import read
from tests.contracts.graphql_schemas import query_of, schema_pairs


def changes(before: str, after: str) -> list[ContractChange]:
    return graphql_changes(read({"graphql": before}), read({"graphql": after}))


def one(before: str, after: str) -> ContractChange:
    (change,) = changes(before, after)
    return change


QUERY = "type Query { a(b: Int): Int }\n"
CASES = [
    # rule, place, before, after, consumer, provider, side
    ("field_removed", "T.b", "type T { a: Int b: Int }", "type T { a: Int }", "bc", "response"),
    ("field_added", "T.b", "type T { a: Int }", "type T { a: Int b: Int }", "cb", "response"),
    ("field_changed_kind", "T.a", "type T { a: Int }", "type T { a: ID }", "bb", "response"),
    ("field_changed_kind", "T.a", "type T { a: Int! }", "type T { a: Int }", "bc", "response"),
    ("field_changed_kind_safe", "T.a", "type T { a: Int }", "type T { a: Int! }", "cb", "response"),
    ("field_changed_kind", "T.a", "type T { a: [Int] }", "type T { a: Int }", "bb", "response"),
    ("arg_removed", "T.a(b:)", "type T { a(b: Int): Int }", "type T { a: Int }", "bc", "request"),
    (
        "optional_arg_added", "T.a(b:)",
        "type T { a: Int }", "type T { a(b: Int): Int }", "cb", "request",
    ),
    (
        "required_arg_added", "T.a(b:)",
        "type T { a: Int }", "type T { a(b: Int!): Int }", "bb", "request",
    ),
    (
        "optional_arg_added", "T.a(b:)",
        "type T { a: Int }", "type T { a(b: Int! = 1): Int }", "cb", "request",
    ),
    (
        "arg_changed_kind", "T.a(b:)",
        "type T { a(b: Int): Int }", "type T { a(b: Int!): Int }", "bc", "request",
    ),
    (
        "arg_changed_kind_safe", "T.a(b:)",
        "type T { a(b: Int!): Int }", "type T { a(b: Int): Int }", "cb", "request",
    ),
    (
        "arg_changed_kind", "T.a(b:)",
        "type T { a(b: Int! = 1): Int }", "type T { a(b: Int = 1): Int }", "cb", "request",
    ),
    (
        "arg_default_value_added", "T.a(b:)",
        "type T { a(b: Int): Int }", "type T { a(b: Int = 1): Int }", "cu", "request",
    ),
    (
        "arg_default_value_added", "T.a(b:)",
        "type T { a(b: Int!): Int }", "type T { a(b: Int! = 1): Int }", "cb", "request",
    ),
    (
        "arg_default_value_change", "T.a(b:)",
        "type T { a(b: Int = 1): Int }", "type T { a(b: Int = 2): Int }", "uu", "request",
    ),
    (
        "arg_default_value_change", "T.a(b:)",
        "type T { a(b: Int = 1): Int }", "type T { a(b: Int): Int }", "uc", "request",
    ),
    (
        "arg_default_value_change", "T.a(b:)",
        "type T { a(b: Int! = 1): Int }", "type T { a(b: Int!): Int }", "bc", "request",
    ),
    ("optional_input_field_added", "T.b", "input T { a: Int }", "input T { a: Int b: Int }", "cb",
     "request"),
    ("required_input_field_added", "T.b", "input T { a: Int }", "input T { a: Int b: Int! }", "bb",
     "request"),
    ("field_removed", "T.b", "input T { a: Int b: Int }", "input T { a: Int }", "bc", "request"),
    ("field_changed_kind", "T.a", "input T { a: Int }", "input T { a: Int! }", "bc", "request"),
    ("field_changed_kind_safe", "T.a", "input T { a: Int! }", "input T { a: Int }", "cb",
     "request"),
    ("input_field_default_value_added", "T.a", "input T { a: Int }", "input T { a: Int = 1 }", "cu",
     "request"),
    ("input_field_default_value_change", "T.a", "input T { a: Int! = 1 }", "input T { a: Int! }",
     "bc", "request"),
    ("one_of_changed", "T", "input T { a: Int }", "input T @oneOf { a: Int }", "bc", "request"),
    ("one_of_changed", "T", "input T @oneOf { a: Int }", "input T { a: Int }", "cb", "request"),
    ("type_removed", "T", "scalar T", "", "bc", None),
    ("type_added", "T", "", "scalar T", "cb", None),
    ("type_changed_kind", "T", "scalar T", "enum T { A }", "bb", None),
    ("description_changed", "T", "scalar T", '"a" scalar T', "cc", None),
    ("description_changed", "T.a", "enum T { A a }", 'enum T { A "b" a }', "cc", None),
    ("value_added_to_enum", "T.B", "enum T { A }", "enum T { A B }", "cb", None),
    (
        "value_added_to_enum", "T.B",
        "type A { a: T } enum T { A }", "type A { a: T } enum T { A B }", "bb", None,
    ),
    (
        "value_added_to_enum", "T.B",
        "input A { a: T } enum T { A }", "input A { a: T } enum T { A B }", "cb", None,
    ),
    ("value_removed_from_enum", "T.B", "enum T { A B }", "enum T { A }", "bc", None),
    (
        "type_added_to_union", "T",
        "type A { a: Int } type B { a: Int } union T = A",
        "type A { a: Int } type B { a: Int } union T = A | B", "bb", None,
    ),
    (
        "type_removed_from_union", "T",
        "type A { a: Int } type B { a: Int } union T = A | B",
        "type A { a: Int } type B { a: Int } union T = A", "bb", None,
    ),
    (
        "implemented_interface_added", "T",
        "interface A { a: Int } type T { a: Int }",
        "interface A { a: Int } type T implements A { a: Int }", "cb", None,
    ),
    (
        "implemented_interface_removed", "T",
        "interface A { a: Int } type T implements A { a: Int }",
        "interface A { a: Int } type T { a: Int }", "bc", None,
    ),
    ("directive_removed", "@d", "directive @d on FIELD", "", "bc", "request"),
    ("directive_added", "@d", "", "directive @d on FIELD", "cb", "request"),
    ("directive_removed", "@d", "directive @d on OBJECT", "", "cc", "request"),
    ("directive_added", "@d", "", "directive @d on OBJECT", "cc", "request"),
    ("directive_location_removed", "@d", "directive @d on FIELD | QUERY", "directive @d on FIELD",
     "bc", "request"),
    ("directive_location_added", "@d", "directive @d on FIELD", "directive @d on FIELD | QUERY",
     "cb", "request"),
    ("directive_location_removed", "@d", "directive @d on FIELD | ENUM", "directive @d on FIELD",
     "cc", "request"),
    ("directive_repeatable_removed", "@d", "directive @d repeatable on FIELD",
     "directive @d on FIELD", "bc", "request"),
    ("directive_repeatable_added", "@d", "directive @d on FIELD",
     "directive @d repeatable on FIELD", "cb", "request"),
    ("directive_arg_removed", "@d(a:)", "directive @d(a: Int) on FIELD", "directive @d on FIELD",
     "bc", "request"),
    ("optional_directive_arg_added", "@d(a:)", "directive @d on FIELD",
     "directive @d(a: Int) on FIELD", "cb", "request"),
    ("required_directive_arg_added", "@d(a:)", "directive @d on FIELD",
     "directive @d(a: Int!) on FIELD", "bb", "request"),
    ("arg_changed_kind", "@d(a:)", "directive @d(a: Int) on FIELD",
     "directive @d(a: Int!) on FIELD", "bc", "request"),
    ("description_changed", "@d", "directive @d(a: Int) on FIELD",
     'directive @d("b" a: Int) on FIELD', "cc", None),
    (
        "specified_by_changed", "T",
        'scalar T @specifiedBy(url: "a:1")', 'scalar T @specifiedBy(url: "a:2")', "uu", None,
    ),
    (
        "root_type_changed", "schema.mutation",
        "type T { a: Int } schema { query: Query }",
        "type T { a: Int } schema { query: Query mutation: T }", "cb", None,
    ),
    (
        "root_type_changed", "schema.mutation",
        "type T { a: Int } schema { query: Query mutation: T }",
        "type T { a: Int } schema { query: Query }", "bc", None,
    ),
    (
        "root_type_changed", "schema.query",
        "type T { a: Int } type U { a: Int } schema { query: T }",
        "type T { a: Int } type U { a: Int } schema { query: U }", "bb", None,
    ),
]  # fmt: skip
EFFECTS = {"b": "breaking", "c": "compatible", "u": "unknown"}


@pytest.mark.parametrize(("rule", "path", "before", "after", "effects", "side"), CASES)
def test_rules(
    rule: str, path: str, before: str, after: str, effects: str, side: str | None
) -> None:
    change = one(QUERY + before, QUERY + after)
    assert (change.rule, change.path, change.side) == (rule, path, side)
    assert (change.consumer, change.provider) == (EFFECTS[effects[0]], EFFECTS[effects[1]])
    assert change.why


def test_every_kind_of_graphql_core_has_a_case() -> None:
    kinds = {
        kind.lower()
        for kinds in (BreakingChangeType, DangerousChangeType, SafeChangeType)
        for kind in kinds.__members__
    }
    assert kinds - {rule for rule, *_ in CASES} == set()


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        ("type T { a: Int }", "type T { a: [ID!] }", ('"Int"', '"[ID!]"')),
        ("type T { a: Int }", "type T { a: Int b: ID }", (None, '"ID"')),
        ("type T { a(b: Int = 1): Int }", "type T { a: Int }", ('"Int = 1"', None)),
        ("scalar T", "enum T { A }", ('"scalar"', '"enum"')),
        ("enum T { A B }", "enum T { A }", ('"B"', None)),
        ("directive @d repeatable on FIELD", "", ('"repeatable on FIELD"', None)),
        ("directive @d on FIELD | QUERY", "directive @d on FIELD", ('"QUERY"', None)),
        ("scalar T", '"words" scalar T', (None, None)),
    ],
)
def test_values_are_as_the_schema_writes_them(
    before: str, after: str, values: tuple[str | None, str | None]
) -> None:
    change = one(QUERY + before, QUERY + after)
    assert (change.before, change.after) == values


def test_a_change_says_whom_it_breaks_and_why() -> None:
    added = one(QUERY + "type T { a: Int }", QUERY + "type T { a: Int b: Int }")
    assert added.why == "Field T.b was added. A provider at the old schema doesn't have it."
    required = one(QUERY + "type T { a(b: Int! = 1): Int }", QUERY + "type T { a(b: Int!): Int }")
    assert required.why.endswith("It must be given where it could be left out.")
    sent = one(QUERY + "type A { a: T } enum T { A }", QUERY + "type A { a: T } enum T { A B }")
    assert "Consumers may be sent a value that they don't know." in sent.why
    described = one(QUERY + "scalar T", QUERY + f'"{"long " * 500}" scalar T')
    assert described.why == WORDS_ONLY


def test_a_standard_scalar_is_part_of_every_schema() -> None:
    before, after = QUERY + "type T { a: Int b: Float }", QUERY + "type T { a: Int }"
    assert one(before, after).path == one(after, before).path == "T.b"


def test_another_text_of_the_same_schema() -> None:
    before, after = {"graphql": "type Query { a: Int }"}, {"graphql": "type Query {\n  a: Int\n}"}
    assert graphql_changes(read(before), read(after)) == []
    assert compare(read(before), read(after)).verdict == "compatible"


@pytest.mark.parametrize("broken", ["type Query {", "type Query { a: B }"])
def test_a_schema_that_can_not_be_read_is_unknown(broken: str) -> None:
    before, after = {"graphql": QUERY}, {"graphql": broken}
    for pair in ((before, after), (after, before)):
        was, now = (read(side, "graphql") for side in pair)
        comparison = compare(was, now)
        assert comparison.verdict == comparison.provider == "unknown"
        assert "It is not valid graphql" in "".join(change.why for change in comparison.changes)


def test_what_stands_beside_a_schema_is_compared_by_place() -> None:
    before, after = {"graphql": QUERY, "limit": 1}, {"graphql": QUERY, "limit": 2}
    comparison = compare(read(before), read(after))
    assert comparison.verdict == "unknown"
    assert [change.path for change in comparison.changes] == ["$.limit"]
    titled = compare(read({"graphql": QUERY}), read({"graphql": QUERY, "title": "Users"}))
    assert titled.verdict == "compatible"


@given(schema_pairs())
def test_compatible_schemas_answer_the_queries_of_consumers(pair: tuple[str, str]) -> None:
    before, after = pair
    old, new = build_schema(before), build_schema(after)
    comparison = compare(read({"graphql": before}), read({"graphql": after}))
    if comparison.consumer in ("same", "compatible"):
        assert validate(new, parse(query_of(old))) == []
    if comparison.provider in ("same", "compatible"):
        assert validate(old, parse(query_of(new))) == []


@given(schema_pairs())
def test_the_effect_on_providers_is_that_on_consumers_exchanged(pair: tuple[str, str]) -> None:
    before, after = pair
    forward, backward = changes(before, after), changes(after, before)
    assert {(change.path, change.consumer, change.provider) for change in forward} == {
        (change.path, change.provider, change.consumer) for change in backward
    }


@given(schema_pairs())
def test_every_change_of_graphql_core_is_listed_with_its_place(pair: tuple[str, str]) -> None:
    before, after = pair
    old, new = build_schema(before), build_schema(after)
    listed = changes(before, after)
    assert all(len(change.path) < 20 for change in listed)
    breaking = {change.why for change in listed if change.consumer == "breaking"}
    for change in find_schema_changes(old, new):
        if isinstance(change.type, BreakingChangeType) and "@d" not in change.description:
            standard = change.description.startswith("Standard scalar ") or (
                change.description.split()[0] in specified_scalar_types
            )
            assert standard or any(change.description in why for why in breaking)
