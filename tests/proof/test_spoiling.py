from typing import Any

from contracts.recognise import read
from proof.cases import Requests
from proof.enumerated import MALFORMED
from proof.exchange import operation_checks
from proof.plain_values import drawn_values
from proof.probe_subject import Spoiled
from proof.spoiling import invalid


def spoiled(content: dict[str, Any], count: int = 120) -> list[Spoiled]:
    (check,) = operation_checks(read(content))
    strategy = invalid(Requests(check, "", {}, {}))
    return [] if strategy is None else drawn_values(strategy, 1, count)


CONTENT = {
    "method": "POST",
    "path": "/a/{id}",
    "pathParams": {"id": "integer"},
    "query": {"page": {"type": "integer", "minimum": 1, "maximum": 9}},
    "headers": {"X-Team": "string"},
    "request": {
        "type": "object",
        "properties": {
            "email": {"type": "string", "minLength": 3},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["email"],
        "additionalProperties": False,
    },
    "response": {},
}


def test_each_request_breaks_the_contract_in_one_place() -> None:
    (check,) = operation_checks(read(CONTENT))
    made = spoiled(CONTENT)
    assert len(made) > 60
    for request, wrong in made:
        breaches = check.request_breaches(request, request.path)
        assert breaches[0] == wrong
        assert len({breach.where.partition("/")[0] for breach in breaches}) == 1


def test_all_that_can_be_wrong_is_tried() -> None:
    wrong = {(spoilt.wrong.rule, spoilt.wrong.where) for spoilt in spoiled(CONTENT, 400)}
    assert wrong >= {
        ("path_schema", "path id"),
        ("query_schema", "query page"),
        ("missing", "query page"),
        ("missing", "header X-Team"),
        ("missing", "body"),
        ("malformed_body", "body"),
        ("body_schema", "body"),
        ("body_schema", "body/email"),
        ("body_schema", "body/tags"),
    }
    assert any(where.startswith("body/tags/") for _, where in wrong)
    requests = [spoilt.request for spoilt in spoiled(CONTENT, 400)]
    assert any(request.body == MALFORMED for request in requests)
    assert any(request.path == "/a/text" for request in requests)
    # A value just beyond a bound of its schema.
    assert "page=10" in {request.query for request in requests}
    assert any(b"not_agreed" in (request.body or b"") for request in requests)


def test_where_nothing_can_be_wrong_nothing_is_tried() -> None:
    assert spoiled({"method": "GET", "path": "/a", "query": {"q": "string?"}, "response": {}}) == []
    open_body = {"method": "GET", "path": "/a/{b}", "response": {}}
    assert spoiled(open_body) == []
