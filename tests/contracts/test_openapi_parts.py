from typing import Any

import pytest

from contracts.model import Located, Parameter, Part
from contracts.openapi_parts import (
    by_media,
    merged,
    parameters_of,
    placeholders,
    request_body,
    response,
    responses,
    security,
    status_name,
    unnamed,
    unread_members,
    with_path_parameters,
)
from contracts.reading import ContentReading


def reading_of(value: Any) -> tuple[ContentReading, Located]:
    return ContentReading({}), Located(value, ("x",))


def problems(reading: ContentReading) -> list[tuple[tuple[str | int, ...], str]]:
    return [(problem.path[1:], problem.why) for problem in reading.problems]


@pytest.mark.parametrize(
    ("given", "style"),
    [
        ({"in": "query"}, None),
        ({"in": "query", "style": "form", "explode": True}, None),
        ({"in": "query", "explode": False}, "form"),
        ({"in": "query", "style": "deepObject", "explode": True}, "deepObject+explode"),
        ({"in": "header"}, None),
        ({"in": "header", "explode": True}, "simple+explode"),
        ({"in": "query", "content": {"Application/JSON": {}}}, "content application/json"),
    ],
)
def test_a_style_is_named_if_it_is_unusual(given: dict[str, Any], style: str | None) -> None:
    reading, place = reading_of([{"name": "a", **given}])
    (parameter,) = parameters_of(reading, place)
    assert parameter.style == style


@pytest.mark.parametrize(
    ("given", "path", "why"),
    [
        ({}, (), '"parameters" is a list; this is an object.'),
        (["a"], (0,), 'A parameter is an object; this is "a".'),
        ([{"in": "query"}], (0,), 'A parameter has a "name".'),
        ([{"name": "a", "in": "body"}], (0,), '"in" is one of path, query, header, cookie; this'),
        ([{"$ref": "#/no"}], (0,), 'The reference "#/no" leads to nothing.'),
    ],
)
def test_a_parameter_that_cannot_be_read_is_noted(
    given: Any, path: tuple[str | int, ...], why: str
) -> None:
    reading, place = reading_of(given)
    assert parameters_of(reading, place) == []
    ((where, text),) = problems(reading)
    assert where == path
    assert text.startswith(why)


def test_headers_of_the_protocol_are_no_parameters() -> None:
    names = ("Accept", "content-type", "Authorization", "X-Mine")
    reading, place = reading_of([{"name": name, "in": "header"} for name in names])
    assert [parameter.name for parameter in parameters_of(reading, place)] == ["X-Mine"]


def parameter(name: str, where: Any, *, required: bool = False) -> Parameter:
    return Parameter(name, where, required, Located(True, ()), ())


def test_own_parameters_stand_for_shared_ones() -> None:
    shared = [parameter("a", "query"), parameter("X-A", "header"), parameter("b", "query")]
    own = [parameter("a", "query", required=True), parameter("x-a", "header", required=True)]
    assert [one.required for one in merged(shared, own)] == [True, True, False]


def test_each_placeholder_has_a_parameter() -> None:
    reading, place = reading_of({})
    given = [parameter("id", "path"), parameter("old", "path"), parameter("q", "query")]
    taken = with_path_parameters(reading, given, "/a/{id}/{other}", place)
    assert [(one.name, one.required) for one in taken] == [
        ("id", False),
        ("q", False),
        ("other", True),
    ]
    assert [note.why for note in reading.warnings] == [
        "/a/{id}/{other} has no {old}, so this parameter doesn't count.",
        "{other} has no parameter, so it may be any text.",
    ]


@pytest.mark.parametrize(
    ("route", "names", "bare"),
    [
        ("/a/{id}", ["id"], "/a/{}"),
        ("/{a}.{b}/c", ["a", "b"], "/{}.{}/c"),
        ("/{a", [], "/{a"),
        ("/{a/b}", [], "/{a/b}"),
        ("/a}", [], "/a}"),
        ("/{}", [""], "/{}"),
    ],
)
def test_placeholders(route: str, names: list[str], bare: str) -> None:
    assert placeholders(route) == names
    assert unnamed(route) == bare


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("200", "200"),
        ("4xx", "4XX"),
        ("Default", "default"),
        ("600", None),
        ("20", None),
        ("2X0", None),
        ("²00", None),
        ("ok", None),
    ],
)
def test_a_status_has_one_name(given: str, name: str | None) -> None:
    assert status_name(given) == name


def test_bodies_are_by_media_type() -> None:
    schema = {"type": "string"}
    reading, place = reading_of({"Text/Plain; charset=UTF-8": {"schema": schema}, "a/b": {}})
    where = ("x", "Text/Plain; charset=UTF-8", "schema")
    assert by_media(reading, place) == {
        "text/plain; charset=utf-8": Located(schema, where),
        "a/b": Located(True, ("x", "a/b")),
    }


def test_an_encoding_is_left_unread() -> None:
    reading, place = reading_of({"a/b": {"encoding": {"c": {}}, "example": 1, "x-d": 2}})
    by_media(reading, place)
    assert [left.path for left in reading.unread] == [("x", "a/b", "encoding")]


def test_a_request_body_is_required_if_it_says_so() -> None:
    reading, place = reading_of({"required": True, "content": {"a/b": {"schema": False}}})
    bodies, required = request_body(reading, place)
    assert required
    assert bodies == {"a/b": Located(False, ("x", "content", "a/b", "schema"))}
    assert request_body(*reading_of({})) == ({}, False)


def test_a_response_has_headers_and_bodies() -> None:
    reading, place = reading_of(
        {
            "description": "Fine",
            "headers": {"X-A": {"required": True, "schema": {}}, "Content-Type": {}, "X-B": 1},
            "content": {"a/b": {"schema": {}}},
        }
    )
    part = response(reading, place)
    assert part is not None
    assert [(one.name, one.required) for one in part.parameters] == [("X-A", True)]
    assert set(part.bodies) == {"a/b"}
    assert problems(reading) == [(("headers", "X-B"), "A header is an object; this is 1.")]


def test_responses_are_by_status() -> None:
    reading, place = reading_of({"200": {}, "4xx": {}, "x-a": 1, "ok": {}, "201": "made"})
    assert responses(reading, place) == {
        "200": Part(("x", "200")),
        "4XX": Part(("x", "4xx")),
    }
    assert [path for path, _ in problems(reading)] == [("ok",), ("201",)]


def test_security_lists_alternatives() -> None:
    reading, place = reading_of([{"a": ["read"], "b": []}, {}, {"c": []}, {"a": "read"}])
    assert security(reading, place, {"a": {}, "b": {}}) == (
        {"a": frozenset({"read"}), "b": frozenset()},
        {},
        {"c": frozenset()},
    )
    assert problems(reading) == [
        ((2,), 'components.securitySchemes defines no "c".'),
        ((3,), 'A security requirement is like {"oauth": ["read"], "key": []}.'),
    ]
    assert security(*reading_of({}), {}) is None


def test_other_members_are_left() -> None:
    _, place = reading_of({"a": 1, "b": 2, "x-c": 3})
    assert list(unread_members(place, frozenset({"a"}))) == [Located(2, ("x", "b"))]
