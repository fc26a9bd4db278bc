from typing import Any

import pytest

from contracts.endpoint import is_endpoint, read_endpoint
from contracts.model import Interface, Located, Operation

EMAIL = {"type": "object", "properties": {"email": {"type": "string"}}, "required": ["email"]}

REFERENCE = {"$ref": "#/$defs/E"}


def interface_of(**content: Any) -> Interface:
    return read_endpoint({"method": "GET", "path": "/a", **content}, None)


def only(interface: Interface) -> Operation:
    assert interface.problems == ()
    (operation,) = interface.operations
    return operation


def wrong(interface: Interface) -> list[tuple[tuple[str | int, ...], str]]:
    return [(problem.path, problem.why) for problem in interface.problems]


def bodies(interface: Interface) -> dict[str, Any]:
    """The schema of each response's JSON; None where it has no body."""
    operation = only(interface)
    found_bodies = {}
    for status, part in operation.responses.items():
        body = part.bodies.get("application/json")
        found_bodies[status] = body.schema if body else None
    return found_bodies


def test_the_specification_s_example() -> None:
    content = {
        "method": "GET",
        "path": "/api/v1/users/profile",
        "headers": {"Authorization": "Bearer {token}"},
        "responseBody": {"type": "object", "properties": {"id": {"type": "integer"}}},
    }
    interface = read_endpoint(content, "api_endpoint")
    operation = only(interface)
    assert operation.key == "GET /api/v1/users/profile"
    (header,) = operation.request.parameters
    assert (header.name, header.place, header.required) == ("Authorization", "header", True)
    assert header.schema.schema == {"type": "string", "pattern": "^Bearer\\ .+$"}
    body = operation.responses["2XX"].bodies["application/json"]
    assert body == Located(content["responseBody"], ("responseBody",))
    assert (interface.warnings, interface.unread) == ((), ())


@pytest.mark.parametrize("name", ["request", "requestBody", "request_body", "body"])
def test_a_request_body_has_four_names(name: str) -> None:
    operation = only(interface_of(**{name: {"email": "string"}}))
    assert operation.request.body_required
    assert operation.request.bodies["application/json"] == Located(EMAIL, (name,))


@pytest.mark.parametrize("name", ["query", "queryParams", "query_params", "queryParameters"])
@pytest.mark.parametrize(
    "given",
    [
        {"page": "integer?", "q": "string"},
        {"page": {"type": "integer", "required": False}, "q": {"type": "string"}},
        {"page?": "integer", "q": "string"},
        {
            "type": "object",
            "properties": {"page": {"type": "integer"}, "q": {"type": "string"}},
            "required": ["q"],
        },
    ],
)
def test_parameters_are_described_by_name(name: str, given: Any) -> None:
    operation = only(interface_of(**{name: given}))
    assert [
        (one.name, one.place, one.required, one.schema.schema)
        for one in operation.request.parameters
    ] == [
        ("page", "query", False, {"type": "integer"}),
        ("q", "query", True, {"type": "string"}),
    ]


def test_parameters_may_be_a_list() -> None:
    operation = only(interface_of(query=["page?", "q"]))
    assert [(one.name, one.required) for one in operation.request.parameters] == [
        ("page", False),
        ("q", True),
    ]
    listed = [{"name": "q", "in": "query", "schema": {"type": "string"}}]
    (parameter,) = only(interface_of(parameters=listed)).request.parameters
    assert parameter.schema == Located({"type": "string"}, ("parameters", 0, "schema"))


def test_a_path_has_placeholders() -> None:
    interface = interface_of(path="/a/:b/{c}", pathParams={"b": "integer"})
    operation = only(interface)
    assert (operation.route, operation.key) == ("/a/{b}/{c}", "GET /a/{}/{}")
    assert [(one.name, one.schema.schema) for one in operation.request.parameters] == [
        ("b", {"type": "integer"}),
        ("c", True),
    ]
    assert [note.why for note in interface.warnings] == [
        "{c} has no parameter, so it may be any text."
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"response": {"email": "string"}}, {"2XX": EMAIL}),
        ({"response": {"email": "string"}, "status": 201}, {"201": EMAIL}),
        ({"response": {"status": 202, "body": {"email": "string"}}}, {"202": EMAIL}),
        ({"response": {"200": {"email": "string"}, "404": "No."}}, {"200": EMAIL, "404": None}),
        ({"responses": {"200": {"body": {"email": "string"}}}}, {"200": EMAIL}),
        ({"responses": {"204": {}, "4xx": {"description": "No."}}}, {"204": None, "4XX": None}),
        (
            {"responses": {"200": {"content": {"application/json": {"schema": EMAIL}}}}},
            {"200": EMAIL},
        ),
        ({"response": EMAIL, "errors": {"422": "expired"}}, {"422": None, "2XX": EMAIL}),
        ({"responses": {"200": REFERENCE}, "$defs": {"E": EMAIL}}, {"200": REFERENCE}),
        ({"response": ["string"]}, {"2XX": {"type": "array", "items": {"type": "string"}}}),
        ({"response": "string"}, {"2XX": {"type": "string"}}),
        ({"response": None, "responses": {}}, {}),
    ],
)  # fmt: skip
def test_responses(content: dict[str, Any], expected: dict[str, Any]) -> None:
    assert bodies(interface_of(**content)) == expected


def test_members_named_like_parts_are_members() -> None:
    interface = interface_of(response={"body": "string", "status": "integer"})
    assert set(bodies(interface)["2XX"]["properties"]) == {"body", "status"}
    described = interface_of(response={"description": "string"})
    assert set(bodies(described)["2XX"]["properties"]) == {"description"}


def test_a_request_may_be_described_by_its_parts() -> None:
    interface = interface_of(request={"query": {"q": "string"}, "body": {"email": "string"}})
    operation = only(interface)
    assert [one.name for one in operation.request.parameters] == ["q"]
    assert operation.request.bodies["application/json"] == Located(EMAIL, ("request", "body"))
    assert interface.warnings == ()
    alone = interface_of(request={"body": {"email": "string"}})
    assert only(alone).request.bodies["application/json"].schema == EMAIL
    assert "was taken for the whole body" in alone.warnings[0].why


def test_the_content_type_is_that_of_the_request() -> None:
    interface = interface_of(
        headers={"Content-Type": "application/merge-patch+json", "Accept": "a/b"},
        requestBody={"email": "string"},
    )
    operation = only(interface)
    assert set(operation.request.bodies) == {"application/merge-patch+json"}
    assert operation.request.parameters == ()
    assert [place.path for place in interface.unread] == [("headers", "Accept")]


def test_without_a_method_it_is_an_exchange() -> None:
    content = {"request": {"email": "string"}, "response": {"ok": "boolean"}}
    operation = only(read_endpoint(content, None))
    assert (operation.key, operation.method, operation.route) == ("exchange", "", "")
    assert only(read_endpoint({"path": "/a", "response": {}}, None)).key == "/a"


@pytest.mark.parametrize(
    ("content", "path", "why"),
    [
        ({"method": "FETCH"}, ("method",), '"method" is one of GET, PUT'),
        ({"method": 1}, ("method",), "this is 1."),
        ({"path": "a"}, ("path",), '"path" is like "/users/{id}"; this is "a".'),
        ({"path": "/a?b=1"}, ("path",), 'Parameters behind "?" are described in "query".'),
        ({"query": "page"}, ("query",), "Parameters are described by name"),
        ({"query": [1]}, ("query",), "A list of parameters is one of their names."),
        ({"query": {"page": "the page"}}, ("query", "page"), '"the page" names no type'),
        ({"request": {"a": "int"}, "body": {"b": "int"}}, ("body",), "described twice"),
        ({"response": {"a": "int", "b": 1}}, ("response", "b"), "1 names no type"),
        ({"responses": {"fine": {}}}, ("responses", "fine"), '"fine" is no status'),
        ({"responses": []}, ("responses",), '"responses" is an object; this is a list.'),
        (
            {"response": {"a": "int"}, "responses": {"2XX": {}}},
            ("response",),
            "The response 2XX is described twice.",
        ),
        ({"response": {"type": "text"}}, ("response",), None),
        ({"response": {"type": "array", "items": 1}}, ("response", "items"), "A schema is an"),
        ({"response": {"a": {"$ref": "#/no"}}}, ("response", "a"), "leads to nothing"),
    ],
)
def test_what_is_wrong_is_said(
    content: dict[str, Any], path: tuple[str | int, ...], why: str | None
) -> None:
    notes = wrong(interface_of(**content))
    if why is None:
        assert [where[:1] for where, _ in notes] == [path]
        return
    assert [where for where, _ in notes] == [path]
    assert why in notes[0][1]


def test_what_is_unknown_is_unread() -> None:
    interface = interface_of(
        auth="bearer", errors=["expired"], status=201, description="Words", **{"x-mine": 1}
    )
    assert [place.path for place in interface.unread] == [("errors",), ("status",), ("auth",)]


def test_the_draft_is_what_a_body_names() -> None:
    body = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    assert interface_of(response=body).draft == "draft-07"
    assert interface_of(response={"a": "int"}).draft == "2020-12"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"method": "x", "path": "y"}, True),
        ({"method": "GET"}, False),
        ({"responseBody": {}}, True),
        ({"responses": {}}, True),
        ({"body": {}}, False),
    ],
)
def test_recognition(content: dict[str, Any], expected: bool) -> None:
    assert is_endpoint(content) is expected
