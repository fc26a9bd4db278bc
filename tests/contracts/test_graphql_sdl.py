import sys
from subprocess import run
from typing import Any

import pytest
from graphql import GraphQLObjectType
from hypothesis import given
from hypothesis import strategies as st

from contracts.graphql_sdl import (
    PROBLEMS_MAX,
    SOURCE_MAX,
    TOKENS_MAX,
    Sdl,
    is_graphql,
    read_graphql,
    read_sdl,
)

USERS = "type Query { me: User }\n\ntype User { id: ID! }\n"


def sdl_of(text: str) -> Sdl:
    return read_sdl({"graphql": text})


def problems(text: str) -> list[str]:
    return [problem.why for problem in sdl_of(text).problems]


def warnings(text: str) -> list[str]:
    sdl = sdl_of(text)
    assert sdl.problems == ()
    return [warning.why for warning in sdl.warnings]


def test_a_schema() -> None:
    sdl = sdl_of(USERS)
    assert sdl.schema is not None
    user = sdl.schema.type_map["User"]
    assert isinstance(user, GraphQLObjectType)
    assert [str(field.type) for field in user.fields.values()] == ["ID!"]
    assert (sdl.path, sdl.problems, sdl.warnings) == (("graphql",), (), ())


@pytest.mark.parametrize(
    ("content", "member", "notes"),
    [
        ({"graphql": USERS}, "graphql", []),
        ({"sdl": USERS}, "sdl", ['The schema is read from "sdl".']),
        (
            {"typeDefs": ["type Query { me: User }", "type User { id: ID! }"]},
            "typeDefs",
            ['The schema is read from "typeDefs".'],
        ),
        ({"schema": USERS}, "schema", ['The schema is read from "schema".']),
        (
            {"graphql": "query { me }", "schema": USERS},
            "schema",
            ['The schema is read from "schema"; "graphql" is not judged.'],
        ),
    ],
)
def test_members_that_hold_a_schema(content: dict[str, Any], member: str, notes: list[str]) -> None:
    assert is_graphql(content)
    sdl = read_sdl(content)
    assert sdl.schema is not None
    assert sdl.path == (member,)
    assert [warning.why for warning in sdl.warnings] == notes


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"graphql": 1},
        {"graphql": []},
        {"graphql": ["type Query { a: Int }", 2]},
        {"graphql": "query { me }"},
        {"schema": "type of the payload, in words"},
        {"schema": "type Query {"},
        {"schema": {"type": "object"}},
    ],
)
def test_contents_that_are_something_else(content: dict[str, Any]) -> None:
    assert not is_graphql(content)


def test_what_is_broken_and_meant_to_be_a_schema_is_recognised() -> None:
    assert is_graphql({"graphql": "type Query { me: User "})


def test_a_content_without_a_schema() -> None:
    (problem,) = read_graphql({"a": 1}, None).problems
    assert 'expected in "graphql"' in problem.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("type Query {\n  me User\n}", "Line 2, column 6: Expected ':', found Name 'User'."),
        ("type Query {\n  me: Usr\n}", "Line 2, column 7: Unknown type 'Usr'."),
        ("type Query { a: Int a: Int }", "Field 'Query.a' can only be defined once."),
        ("input I { a: Int } type Query { a: I }", "must be Output Type but got: I."),
        ("type Query implements I { a: Int } interface I { b: Int }", "Interface field I.b"),
        ("type Query { a: Int @deprecated(why: 1) }", "Unknown argument 'why'"),
        ("scalar __Own", "must not begin with"),
        ("query { me }", "The text defines no type of a schema."),
        ("extend type Query { a: Int } scalar Query", "Cannot extend non-object type 'Query'."),
        ("schema { query: Int } type A { a: Int }", "must be Object type"),
    ],
)
def test_problems_have_line_and_column(text: str, why: str) -> None:
    first = problems(text)[0]
    assert why in first
    assert first.startswith("Line ") or "defines no type" in first
    assert sdl_of(text).schema is None


def test_a_part_of_a_schema() -> None:
    assert warnings("type User { id: ID! }") == []
    assert warnings("extend type Query { me: Int }\nextend type Query { you: Int }") == [
        "Query is extended but not defined here: only the extension is judged."
    ]
    extended = sdl_of("extend type Query { me: Int }\nextend type Query { you: Int }").schema
    assert extended is not None
    query = extended.query_type
    assert query is not None
    assert set(query.fields) == {"me", "you"}


def test_directives_that_are_not_defined_and_operations() -> None:
    text = 'type Query @key(fields: "id") { a: Int @auth b: Int @auth }\nquery { a }'
    assert warnings(text) == [
        "1 operations or fragments are no part of the schema: not judged.",
        "The directive @key is not defined here: what it means is not judged.",
        "The directive @auth is not defined here: what it means is not judged.",
    ]


def test_what_stands_beside_the_schema_is_unread() -> None:
    content = {"graphql": USERS, "rateLimit": 10, "title": "Users"}
    interface = read_graphql(content, None)
    assert [(place.path, place.schema) for place in interface.unread] == [(("rateLimit",), 10)]
    broken = read_graphql({"graphql": "type Query {"}, None)
    assert [place.path for place in broken.unread] == [("graphql",)]


def many(count: int, text: str) -> str:
    return "type Query { a: Int }\n" + "\n".join(text.format(n=n, m=n + 1) for n in range(count))


LARGE = [
    ("it has 2000001 characters", "type Query { a: B }\n".ljust(SOURCE_MAX + 1, "#")),
    ("tokens", many(TOKENS_MAX // 5, "type T{n} {{ a: Int }}")),
    (
        "too many interfaces",
        "\n".join(
            f"interface I{n} {'implements ' + ' & '.join(f'I{m}' for m in range(n)) if n else ''}"
            " { a: Int }"
            for n in range(200)
        ),
    ),
    (
        "default values",
        f"input I {{ {' '.join(f'a{n}: I' for n in range(3000))} }}\n"
        f"type Query {{ a(b: [I] = [{'{}' * 3000}]): Int }}",
    ),
]


@pytest.mark.parametrize(("why", "text"), LARGE)
def test_a_schema_that_is_too_large_is_said_to_be_unread(why: str, text: str) -> None:
    sdl = sdl_of(text)
    assert sdl.schema is None
    assert sdl.problems == ()
    assert why in sdl.warnings[0].why
    assert "not judged" in sdl.warnings[0].why


@pytest.mark.parametrize(
    "text",
    [
        many(2000, "type Tttttttttttttt{n} {{ a: Tttttttttttttu{n} }}"),
        many(2000, "type T {{ a: Int }}"),
        many(2000, "input I{n} {{ a: Query }}"),
        "type Query {" + "a: Int\n" * 9000 + "}",
    ],
)
def test_of_many_problems_the_first_are_told(text: str) -> None:
    """Each would look for similar names among all, or for its line from the start."""
    listed = problems(text)
    assert len(listed) == PROBLEMS_MAX + 1
    assert listed[-1] == "There may be more; they are not listed."


def test_many_unknown_directives_are_told_in_time() -> None:
    text = "type Query { a: Int }\nscalar S\n" + "\n".join(f"@d{n}" for n in range(20_000))
    assert len(warnings(text)) == PROBLEMS_MAX


@pytest.mark.parametrize(
    "text",
    [
        "type Query { a: " + "[" * 5000 + "Int" + "]" * 5000 + "}",
        "type Query { a(b: Int = " + "[" * 5000 + "1" + "]" * 5000 + "): Int }",
    ],
)
def test_deep_nesting_is_a_problem(text: str) -> None:
    assert "nested too deeply" in problems(text)[0]


def test_deep_defaults_are_a_problem() -> None:
    inputs = many(3000, "input I{n} {{ a: I{m} = {{}} }}") + "\ninput I3000 { a: Int }"
    assert problems(inputs) == ["The schema is nested too deeply to be read."]


PIECES = st.sampled_from(
    ["type", "Query", "{", "}", "a", ":", "Int", "!", "[", "]", "(", ")", "=", "1", "enum", "A",
     "union", "|", "input", "interface", "implements", "&", "schema", "query", "extend", "@b",
     "directive", "on", "FIELD", '"""', '"', "#", "\n", "scalar", "__x", "é", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=30))
def test_any_text_is_read(text: str) -> None:
    sdl = sdl_of(text)
    assert (sdl.schema is None) == bool(sdl.problems)


def test_graphql_is_imported_only_for_a_schema() -> None:
    code = (
        "import sys; from contracts.recognise import read; read({'schema': 'a'});"
        "print([m for m in ('graphql', 'antlr4', 'proto_schema_parser') if m in sys.modules])"
    )
    listed = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert listed.stdout.strip() == "[]"
