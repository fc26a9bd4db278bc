from typing import Any

from contracts.recognise import read
from proof.cases import Requests
from proof.enumerated import EDGES_MAX, MALFORMED, VIOLATIONS_MAX, Enumerated
from proof.exchange import operation_checks

CONTENT: dict[str, Any] = {
    "method": "POST",
    "path": "/a/{id}",
    "pathParams": {"id": {"type": "integer", "minimum": 1}},
    "query": {
        "page": {"type": "integer", "minimum": 1, "maximum": 9},
        "sort": {"enum": ["up", "down"]},
    },
    "headers": {"X-Team": {"type": "string", "maxLength": 8}},
    "request": {
        "type": "object",
        "properties": {"email": {"type": "string", "format": "email"}, "age": {"type": "integer"}},
        "required": ["email"],
        "additionalProperties": False,
    },
    "response": {},
}


def enumerated(content: dict[str, Any]) -> tuple[Enumerated, Requests]:
    (check,) = operation_checks(read(content))
    requests = Requests(check, "", {}, {})
    return Enumerated(requests), requests


def of_form(media: str, schema: dict[str, Any]) -> dict[str, Any]:
    body = {"required": True, "content": {media: {"schema": schema}}}
    operation = {"requestBody": body, "responses": {"200": {"description": ""}}}
    return {"openapi": "3.1.0", "paths": {"/a": {"post": operation}}}


MEMBERS = {
    "kind": {"enum": ["cup", "pot"]},
    "count": {"type": "integer", "maximum": 9},
    "file": {"type": "string"},
    "more": {"type": "object", "properties": {"deep": {"type": "integer"}}},
}
FORM_SCHEMA = {"type": "object", "properties": MEMBERS, "required": ["kind", "file"]}


def test_each_edge_is_sent_in_a_valid_request() -> None:
    made, requests = enumerated(CONTENT)
    edges = made.edges()
    assert 0 < len(edges) <= EDGES_MAX
    assert all(requests.breaches(request) == [] for request in edges)
    assert {"page=1&sort=up", "page=9&sort=up", "page=1&sort=down"} <= {r.query for r in edges}
    assert edges == enumerated(CONTENT)[0].edges()


def test_each_constraint_is_broken_once() -> None:
    made, requests = enumerated(CONTENT)
    broken = made.broken()
    assert 0 < len(broken) <= VIOLATIONS_MAX
    for request, wrong in broken:
        assert requests.breaches(request)[0] == wrong
    wheres = {(wrong.rule, wrong.where) for _, wrong in broken}
    assert wheres >= {
        ("path_schema", "path id"),
        ("query_schema", "query page"),
        ("query_schema", "query sort"),
        ("header_schema", "header X-Team"),
        ("missing", "query page"),
        ("missing", "header X-Team"),
        ("missing", "body"),
        ("malformed_body", "body"),
        ("body_schema", "body"),
        ("body_schema", "body/email"),
        ("body_schema", "body/age"),
    }
    requests_sent = [request for request, _ in broken]
    assert any(request.body == MALFORMED for request in requests_sent)
    assert {"page=10&sort=up", "page=0&sort=up"} <= {r.query for r in requests_sent}
    assert "/a/0" in {request.path for request in requests_sent}
    assert made.unbroken == []


def test_parts_of_a_multipart_body_are_broken() -> None:
    made, _ = enumerated(of_form("multipart/form-data", FORM_SCHEMA))
    broken = [(wrong.where, request.body or b"") for request, wrong in made.broken()]
    assert any(where == "body/kind" and b"cupx" in body for where, body in broken)
    assert any(where == "body" and b'name="file"' not in body for where, body in broken)
    assert any(where == "body/count" and b"\r\n10\r\n" in body for where, body in broken)
    assert any(where == "body/more" for where, _ in broken)
    # Any text is right for a text.
    assert not any(where == "body/file" for where, _ in broken)
    assert {b"pot", b"\r\n9\r\n"} <= {
        text for text in (b"pot", b"\r\n9\r\n") for r in made.edges() if text in (r.body or b"")
    }


def test_members_of_a_form_are_broken() -> None:
    members = {name: part for name, part in MEMBERS.items() if name != "more"}
    schema = FORM_SCHEMA | {"properties": members}
    made, requests = enumerated(of_form("application/x-www-form-urlencoded", schema))
    broken = made.broken()
    bodies = [request.body for request, _ in broken]
    assert b"kind=cupx&file=text" in bodies
    assert b"kind=cup" in bodies
    assert b"kind=cup&file=text&count=10" in bodies
    assert all(requests.breaches(request) for request, _ in broken)


def test_what_has_no_valid_request_has_no_others() -> None:
    pattern = {"type": "string", "pattern": "^(?=a)b"}
    made, _ = enumerated({"method": "GET", "path": "/a", "query": {"q": pattern}, "response": {}})
    assert (made.edges(), made.broken()) == ([], [])
