from typing import Any

import pytest

from contracts.model import Interface, Located, Operation
from contracts.openapi import is_openapi, read_openapi
from tests.contracts.hostile import SOUND


def document(paths: Any, **members: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "paths": paths, **members}


def interface_of(paths: Any, **members: Any) -> Interface:
    return read_openapi(document(paths, **members), None)


def only(interface: Interface) -> Operation:
    assert interface.problems == ()
    (operation,) = interface.operations
    return operation


def test_a_whole_document() -> None:
    interface = read_openapi(SOUND, None)
    get, put, callback, webhook = interface.operations
    assert (get.method, get.route, get.kind, get.caller) == (
        "GET",
        "/pets/{id}",
        "http",
        "consumer",
    )
    assert get.path == ("paths", "/pets/{id}", "get")
    (identifier,) = get.request.parameters
    assert identifier.path == ("paths", "/pets/{id}", "parameters", 0)
    assert identifier.schema == Located(
        {"type": "integer"}, ("components", "parameters", "id", "schema")
    )
    assert get.security == ()
    assert put.security == ({"key": frozenset()},)
    assert set(get.responses) == {"200", "4XX"}
    assert get.responses["200"].path == ("paths", "/pets/{id}", "get", "responses", "200")
    body = put.request.bodies["application/json"]
    assert put.request.body_required
    assert body.path[:3] == ("components", "requestBodies", "Pet")
    assert (callback.caller, webhook.caller) == ("provider", "provider")
    assert (callback.route, webhook.route) == ("", "")
    assert interface.servers == ("/v1",)
    assert set(interface.schemes) == {"key"}


@pytest.mark.parametrize(
    ("version", "draft", "sound"),
    [
        ("3.0.0", "openapi-3.0", True),
        ("3.1.1", "2020-12", True),
        ("3.2.0", "2020-12", True),
        ("2.0", "2020-12", False),
        (3.1, "2020-12", False),
    ],
)
def test_versions(version: Any, draft: str, sound: bool) -> None:
    interface = read_openapi({"openapi": version, "paths": {}}, None)
    assert interface.draft == draft
    assert [problem.path for problem in interface.problems] == ([] if sound else [("openapi",)])


def test_a_fragment_without_a_version_is_read_as_the_current_one() -> None:
    interface = read_openapi({"paths": {"/a": {"get": {"responses": {}}}}}, None)
    assert only(interface).key == "GET /a"
    assert '"openapi" is the version' in interface.warnings[0].why
    assert read_openapi({}, None).problems != ()


def test_paths_that_differ_only_in_names_of_placeholders_are_the_same() -> None:
    answer: dict[str, Any] = {"get": {"responses": {}}}
    interface = interface_of({"/a/{b}": answer, "/a/{c}": answer})
    assert [operation.route for operation in interface.operations] == ["/a/{b}"]
    (problem,) = interface.problems
    assert problem.path == ("paths", "/a/{c}", "get")
    assert problem.why.startswith("GET /a/{} is there twice")


def test_a_path_item_may_be_referred_to() -> None:
    item = {"post": {"responses": {"200": {"$ref": "#/components/responses/Fine"}}}}
    components = {"pathItems": {"Shared": item}, "responses": {"Fine": {"description": "Fine"}}}
    paths = {"/a": {"$ref": "#/components/pathItems/Shared"}}
    operation = only(interface_of(paths, components=components))
    assert (operation.key, operation.path) == ("POST /a", ("paths", "/a", "post"))
    beside = interface_of({"/a": {**paths["/a"], "get": {}}}, components=components)
    assert [problem.path for problem in beside.problems] == [("paths", "/a", "get")]


def test_parts_may_stand_in_files_given_along() -> None:
    files = {
        "a.json": {"get": {"responses": {"200": {"$ref": "b.json#/fine"}}}},
        "b.json": {"fine": {"content": {"a/b": {"schema": {"$ref": "#/word"}}}}, "word": True},
    }
    operation = only(interface_of({"/a": {"$ref": "a.json"}}, **{"x-files": files}))
    schema = operation.responses["200"].bodies["a/b"]
    assert (schema.file, schema.path) == ("b.json", ("fine", "content", "a/b", "schema"))


@pytest.mark.parametrize(
    ("servers", "paths"),
    [
        ([{"url": "https://a.example"}], ("",)),
        ([{"url": "/v1/"}, {"url": "https://a.example/v1"}, {"url": "/v2"}], ("/v1", "/v2")),
        ([{"url": "https://a/{x}", "variables": {"x": {"default": "z"}}}], ("/z",)),
        ([{"url": "http://["}], ("",)),
        ([], ()),
    ],
)
def test_servers_have_base_paths(servers: Any, paths: tuple[str, ...]) -> None:
    assert interface_of({}, servers=servers).servers == paths


def test_what_has_no_place_in_the_inner_form_is_unread() -> None:
    operation = {"responses": {}, "servers": [], "later": 1, "x-mine": 2, "summary": "Words"}
    interface = interface_of({"/a": {"get": operation, "link": 3}}, more=4)
    assert [place.path for place in interface.unread] == [
        ("paths", "/a", "link"),
        ("paths", "/a", "get", "servers"),
        ("paths", "/a", "get", "later"),
        ("more",),
    ]


def test_callbacks_of_callbacks_end() -> None:
    item = {"post": {"responses": {}, "callbacks": {"c": {"$ref": "#/components/callbacks/c"}}}}
    circle = interface_of({"/a": item}, components={"callbacks": {"c": {"{url}": item}}})
    assert [operation.key for operation in circle.operations] == [
        "POST /a",
        "POST callback c {url} of POST /a",
    ]
    deep: dict[str, Any] = {"post": {"responses": {}}}
    for _ in range(8):
        deep = {"post": {"responses": {}, "callbacks": {"c": {"{url}": deep}}}}
    interface = interface_of({"/a": deep})
    assert len(interface.operations) == 6
    assert [problem.why for problem in interface.problems] == [
        "Callbacks of callbacks are not read this deep."
    ]


def test_schemas_are_checked() -> None:
    bad = {"content": {"a/b": {"schema": {"properties": {"c": {"type": "text"}}}}}}
    interface = interface_of({"/a": {"post": {"requestBody": bad, "responses": {}}}})
    (problem,) = interface.problems
    assert problem.path[-3:] == ("properties", "c", "type")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"openapi": "3.0.0"}, True),
        ({"openapi": 3}, False),
        ({"paths": {"/a": {"get": {}}}}, True),
        ({"paths": {"/a": {"x": {}}}}, False),
        ({"paths": {"a": {"get": {}}}}, False),
        ({"paths": {}}, False),
    ],
)
def test_recognition(content: dict[str, Any], expected: bool) -> None:
    assert is_openapi(content) is expected
