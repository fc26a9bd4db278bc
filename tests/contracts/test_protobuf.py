from typing import Any

import pytest

from contracts.protobuf import SOURCE_MAX, is_protobuf, read_proto, read_protobuf

USER = 'syntax = "proto3"; message User { string id = 1; }'


@pytest.mark.parametrize(
    "content",
    [
        {"proto": USER},
        {"protobuf": "package a;\nmessage M {}"},
        {"proto": "// One.\nmessage M {"},
        {"proto": "edition = '2023';"},
        {"files": {"a.proto": "anything"}},
    ],
)
def test_contents_that_carry_files(content: dict[str, Any]) -> None:
    assert is_protobuf(content)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"proto": 1},
        {"proto": "https"},
        {"files": ["a.proto"]},
        {"files": {"a.proto": 1, "a.txt": USER}},
        {"x-files": {"a.proto": USER}},
    ],
)
def test_contents_that_are_something_else(content: dict[str, Any]) -> None:
    assert not is_protobuf(content)


def test_files_by_name() -> None:
    content = {
        "proto": 'syntax = "proto3"; import "b.proto"; import "c.proto"; message A { B b = 1; }',
        "files": {"b.proto": 'syntax = "proto3"; message B {}'},
        "x-files": {"c.proto": 'syntax = "proto3"; message C {}'},
    }
    proto = read_proto(content)
    assert proto.problems == proto.warnings == ()
    assert proto.schema is not None
    assert set(proto.schema.messages) == {"A", "B", "C"}


def test_a_problem_names_its_file() -> None:
    content = {"files": {"a.proto": USER, "b.proto": "message M { int32 a 1; }"}}
    (problem,) = read_protobuf(content, None).problems
    assert problem.path == ("files", "b.proto")
    assert problem.why == "Line 1, column 21: missing '=' at '1'."


def test_a_content_without_files() -> None:
    (problem,) = read_protobuf({"a": 1}, None).problems
    assert 'expected in "proto"' in problem.why


def test_files_that_are_too_large_are_said_to_be_unread() -> None:
    blank = f"{USER}{' ' * SOURCE_MAX}// {'x' * SOURCE_MAX}"
    assert read_protobuf({"proto": blank}, None).warnings == ()
    interface = read_protobuf({"proto": USER + ";" * SOURCE_MAX}, None)
    assert interface.problems == ()
    assert "not judged" in interface.warnings[0].why
    assert [place.path for place in interface.unread] == [("proto",)]


def test_what_stands_beside_the_files_is_unread() -> None:
    content = {
        "proto": USER,
        "title": "Users",
        "limit": 1,
        "files": {"a.proto": 'syntax = "proto3";', "b.txt": ""},
    }
    interface = read_protobuf(content, None)
    assert interface.problems == interface.warnings == ()
    assert [place.path for place in interface.unread] == [("limit",), ("files", "b.txt")]
