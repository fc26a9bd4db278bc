import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proof.agreed import AgreedContract, unsound_examples
from proof.messages import WireAnswer, WireRequest, header_of
from proof.mock import PROBLEM, Mock, preferences
from tests.contracts.hostile import spoilt_documents
from tests.proof.provider import CONTRACT

JSON = (("Content-Type", "application/json"),)
USERS = AgreedContract("Users", CONTRACT)


def mock_of(*contents: dict[str, Any], seed: int = 0) -> Mock:
    return Mock([AgreedContract(f"Contract {n}", c) for n, c in enumerate(contents)], seed)


def asked(mock: Mock, method: str, target: str, body: Any = None, **headers: str) -> Any:
    """The status and the JSON of an answer."""
    given_headers = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    path, _, query = target.partition("?")
    text = None if body is None else json.dumps(body).encode()
    request = WireRequest(method, path, query, (*(JSON if text else ()), *given_headers), text)
    answer = mock.answer(request).answer
    return answer.status, json.loads(answer.body) if answer.body else None


def test_answers_keep_the_contract() -> None:
    mock = Mock([USERS], 0)
    for check in USERS.operations:
        path = check.operation.route.replace("{id}", "7")
        for status in check.responses:
            body = b'{"email": "ana"}' if check.operation.method == "POST" else None
            headers = (*(JSON if body else ()), ("Prefer", f"code={status}"))
            request = WireRequest(check.operation.method, path, "", headers, body)
            mocked = mock.answer(request)
            assert mocked.breaches == ()
            assert mocked.answer.status == int(status)
            assert mocked.operation == check.key
            assert check.answer_breaches(mocked.answer, request.method) == []


def test_a_request_that_breaks_the_contract_is_refused_precisely() -> None:
    mocked = Mock([USERS], 0).answer(
        WireRequest("POST", "/users", "", JSON, b'{"email": 3, "more": 1}')
    )
    assert mocked.answer.status == 400
    assert header_of(mocked.answer.headers, "content-type") == PROBLEM
    problem = json.loads(mocked.answer.body)
    assert problem["operation"] == "POST /users"
    assert problem["contract"] == "Users"
    assert {(b["rule"], b["where"]) for b in problem["breaches"]} == {
        ("body_schema", "body/email"),
        ("body_schema", "body"),
    }
    assert 'body/email: 3 is not of type "string"' in problem["detail"]


@pytest.mark.parametrize(
    ("method", "target", "body", "headers", "status", "why"),
    [
        ("GET", "/nowhere", None, {}, 404, "No agreed contract has GET /nowhere."),
        ("PATCH", "/users", None, {}, 405, "right is GET or POST"),
        ("GET", "/users?limit=0", None, {}, 400, "query limit: 0 is less than the minimum of 1"),
        ("POST", "/users", None, {}, 400, "body: It is required, of application/json."),
        ("POST", "/users", {"email": "ana"}, {"Content_Type": "text/csv"}, 415, "Content-Type"),
        ("GET", "/users", None, {"Prefer": "code=418"}, 400, "The answer 418 is not declared"),
        ("GET", "/users", None, {"Prefer": "code=x"}, 400, "there are: 200, 400"),
        (
            "GET",
            "/users",
            None,
            {"Prefer": "example=x"},
            400,
            "no example x; there are: none",
        ),
        ("GET", "/users", None, {"Accept": "text/html"}, 400, "It is application/json."),
    ],
)
def test_refusals(method: str, target: str, body: Any, headers: Any, status: int, why: str) -> None:
    mock = Mock([USERS], 0)
    if "Content_Type" in headers:
        request = WireRequest(method, target, "", (("Content-Type", "text/csv"),), b"x")
        answer = mock.answer(request).answer
        given_status, problem = answer.status, json.loads(answer.body)
    else:
        given_status, problem = asked(mock, method, target, body, **headers)
    assert given_status == status
    assert why in problem["detail"]


def test_the_refusal_is_that_of_the_contract() -> None:
    content = {"method": "GET", "path": "/a", "query": {"q": "integer"},
               "responses": {"200": {"a": "int"}, "422": "Wrong"}}  # fmt: skip
    assert asked(mock_of(content), "GET", "/a")[0] == 422


def test_the_same_seed_gives_the_same_answers() -> None:
    content = {
        "method": "GET",
        "path": "/a",
        "response": {"type": "string", "pattern": "^[a-z]{9}$"},
    }
    first, again = (asked(mock_of(content, seed=5), "GET", "/a") for _ in range(2))
    assert first == again
    assert first[0] == 200


def test_examples_of_the_contract_come_first_if_they_fit() -> None:
    media = {
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "examples": {"bad": {"value": 1}, "one": {"value": {"n": 1}}, "two": {"value": {"n": 2}}},
    }
    response = {"description": "", "content": {"application/json": media}}
    content = {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": response}}}}}
    mock = mock_of(content)
    assert asked(mock, "GET", "/a") == (200, {"n": 1})
    assert asked(mock, "GET", "/a", Prefer="example=two") == (200, {"n": 2})


@pytest.mark.parametrize(
    ("responses", "status"),
    [
        ({"404": "No", "201": {"a": "int"}}, 201),
        ({"default": {"a": "int"}}, 200),
        ({"2XX": {"a": "int"}}, 200),
        ({"204": {}}, 204),
        ({"302": "There"}, 302),
        ({}, 501),
    ],
)
def test_success_is_answered_if_there_is_any(responses: Any, status: int) -> None:
    content = {"method": "GET", "path": "/a", "responses": responses}
    assert asked(mock_of(content), "GET", "/a")[0] == status


def test_the_media_type_is_one_that_the_request_takes() -> None:
    content = {
        "text/csv": {"schema": {"const": "a,b"}},
        "application/json": {"schema": {"const": 1}},
    }
    responses = {"200": {"description": "", "content": content}}
    mock = mock_of({"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": responses}}}})

    def taken(*accept: tuple[str, str]) -> WireAnswer:
        return mock.answer(WireRequest("GET", "/a", "", accept)).answer

    assert taken().body == b"1"
    assert taken(("Accept", "text/csv, */*;q=0.1")).body == b"1"
    assert taken(("Accept", "text/*")).body == b"a,b"


def test_servers_have_base_paths_and_head_is_a_get() -> None:
    content = CONTRACT | {"servers": [{"url": "https://x.example/v1"}, {"url": "/v2"}]}
    mock = mock_of(content)
    assert [asked(mock, "GET", f"{base}/users")[0] for base in ("/v1", "/v2", "")] == [
        200,
        200,
        404,
    ]
    assert asked(mock, "HEAD", "/v1/users")[0] == 200


def test_credentials_are_asked_for() -> None:
    content = CONTRACT | {
        "security": [{"key": []}],
        "components": CONTRACT["components"]
        | {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    }
    mock = mock_of(content)
    status, problem = asked(mock, "GET", "/users")
    assert (status, problem["detail"]) == (401, "It needs the header X-Key.")
    assert asked(mock, "GET", "/users", X_Key="any")[0] == 200


def test_of_contracts_with_one_endpoint_the_first_answers() -> None:
    one, two = (
        {"method": "GET", "path": path, "response": {"const": number}}
        for number, path in enumerate(("/a/{b}", "/a/{c}"))
    )
    mock = mock_of(one, two)
    assert asked(mock, "GET", "/a/7") == (200, 0)
    assert mock.doubled() == ["GET /a/{} is in Contract 0 and in Contract 1: the first answers"]


def test_a_response_that_cannot_be_made_says_so() -> None:
    content = {"method": "GET", "path": "/a", "response": {"type": "string", "not": {}}}
    status, problem = asked(mock_of(content), "GET", "/a")
    assert status == 501
    assert "No value fits the schema of the response 2XX." in problem["detail"]


def test_preferences() -> None:
    assert preferences((("Prefer", 'code=404, example="a b"'),)) == {
        "code": "404",
        "example": "a b",
    }
    assert preferences((("prefer", "wait=5; code=200"), ("Prefer", "x"))) == {
        "wait": "5",
        "code": "200",
        "x": "",
    }
    assert preferences(()) == {}


@given(spoilt_documents(), st.sampled_from(["/pets/1", "/v1/pets/1", "/a", "/%ff"]), st.binary())
def test_any_contract_answers_any_request(content: dict[str, Any], path: str, body: bytes) -> None:
    mock = mock_of(content)
    for method in ("GET", "PUT"):
        answer = mock.answer(WireRequest(method, path, "a=b&c", JSON, body or None)).answer
        assert 200 <= answer.status < 600


def test_an_operation_whose_schema_explodes_is_not_served() -> None:
    schemas: dict[str, Any] = {
        f"A{n}": {"allOf": [{"$ref": f"#/components/schemas/A{n + 1}"}] * 2} for n in range(40)
    }
    schemas["A40"] = {"type": "object"}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A0"}}}}
    content = {
        "openapi": "3.1.0",
        "info": {"title": "A", "version": "1"},
        "paths": {
            "/a": {"post": {"requestBody": body, "responses": {"200": {"description": ""}}}},
            "/b": {"get": {"responses": {"200": {"description": ""}}}},
        },
        "components": {"schemas": schemas},
    }
    mock = mock_of(content)
    (line,) = mock.unserved()
    assert line.startswith("Contract 0: POST /a is not served. Its schemas have so much")
    mocked = mock.answer(WireRequest("POST", "/a", "", JSON, b"{}"))
    assert (mocked.answer.status, mocked.breaches[0].rule) == (501, "unmockable")
    assert mock.answer(WireRequest("GET", "/b")).answer.status == 200
    assert unsound_examples(mock.contracts[0]) == []
