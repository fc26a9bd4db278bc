"""HTTP around JSON-RPC: status, content type, method and path (design §5)."""

import pytest

from server.domain.errors import InvalidInput
from server.http.rpc_endpoint import idempotency_key
from tests.server.http.json_rpc import LIST, refusal
from tests.support.node import Node

# --- content type -------------------------------------------------------------------------------


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/jsonx", ""])
def test_another_content_type_is_415(node: Node, content_type: str) -> None:
    error = refusal(node.raw(LIST, {"content-type": content_type}), 415)
    assert (error["code"], error["data"]["reason"]) == (-32600, "unsupported_media_type")
    assert "application/json" in error["message"]


# --- method and path ----------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["GET", "PUT", "PATCH", "DELETE"])
def test_only_post_is_taken_at_the_root(node: Node, verb: str) -> None:
    response = node.http.request(verb, "/")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert refusal(response, 405) == {
        "code": -32600,
        "message": f"/ accepts POST, not {verb}",
        "data": {"reason": "wrong_http_method"},
    }


def test_an_unknown_path_is_404(node: Node) -> None:
    error = refusal(node.get("/nothing"), 404)
    assert (error["code"], error["data"]["reason"]) == (-32600, "unknown_path")
    assert "/nothing does not exist; see GET /methods" in error["message"]
    refusal(node.http.post("/rpc", content=LIST), 404)


def test_no_path_leads_to_another_host(node: Node) -> None:
    for path in ("/live/", "/events/"):
        response = node.http.get(path, headers={"host": "evil.example"})
        refusal(response, 404)
        assert "location" not in response.headers


# --- limits (-32006) ----------------------------------------------------------------------------


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"", b"a" * 201, b"has space", b"\xc3\xa9", b"a\tb"])
def test_an_idempotency_key_is_printable_and_short(value: bytes) -> None:
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        idempotency_key(value)


def test_a_bad_idempotency_key_is_400(node: Node) -> None:
    error = refusal(node.raw(LIST, {"idempotency-key": "a" * 201}), 400)
    assert error["code"] == -32602
    assert error["message"].startswith("Idempotency-Key must be"), "it is not a param"


# --- who calls ----------------------------------------------------------------------------------


# --- the last resort ----------------------------------------------------------------------------


# --- a large body -------------------------------------------------------------------------------
