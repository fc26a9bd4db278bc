"""HTTP around JSON-RPC: status, content type, limits, headers (design §5, §6)."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from server.auth.authenticator import Authenticator, Caller
from server.domain.errors import InvalidInput, RateLimited
from server.http.rate_limit import RateLimit
from server.http.rpc_endpoint import (
    PEER_SHARE,
    PIECE,
    Admission,
    InPieces,
    LastResort,
    idempotency_key,
    is_json,
    respond,
)
from server.util.log_once import LogOnce
from tests.node import Node, bearer

LIST = json.dumps({"jsonrpc": "2.0", "method": "cacp/project/list", "params": {}, "id": 1})


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with tight limits: 2 KiB bodies, 4 KiB with a file, 60 requests a minute."""
    limits = {"body_limit": 2048, "file_body_limit": 4096, "rate_limit": 60}
    with Node(tmp_path_factory.mktemp("limited"), **limits) as node:
        yield node


def refusal(response: httpx.Response, status: int) -> Any:
    """A whole request refused: the status, and a JSON-RPC error with id null as the body."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body.keys() == {"jsonrpc", "error", "id"}
    assert body["id"] is None
    return body["error"]


# --- content type -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=UTF-8",
        "application/json-rpc",
        "application/json ;charset=utf-8",
    ],
)
def test_json_is_taken_under_all_its_names(node: Node, content_type: str) -> None:
    """CACP 2.0, Endpoint: Content-Type: application/json."""
    assert node.raw(LIST, {"content-type": content_type}).status_code == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/jsonx", ""])
def test_another_content_type_is_415(node: Node, content_type: str) -> None:
    error = refusal(node.raw(LIST, {"content-type": content_type}), 415)
    assert error["code"] == -32600
    assert "application/json" in error["message"]


def test_no_content_type_is_415() -> None:
    assert not is_json(None)
    assert is_json(b"application/json")


# --- method and path ----------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["GET", "PUT", "PATCH", "DELETE"])
def test_only_post_is_taken_at_the_root(node: Node, verb: str) -> None:
    response = node.http.request(verb, "/")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert refusal(response, 405) == {"code": -32600, "message": "This path takes POST"}


def test_an_unknown_path_is_404(node: Node) -> None:
    assert refusal(node.get("/nothing"), 404)["code"] == -32600
    refusal(node.http.post("/rpc", content=LIST), 404)


def test_no_path_leads_to_another_host(node: Node) -> None:
    for path in ("/live/", "/events/"):
        response = node.http.get(path, headers={"host": "evil.example"})
        refusal(response, 404)
        assert "location" not in response.headers


# --- limits (-32006) ----------------------------------------------------------------------------


def test_a_body_over_the_limit_is_413_before_it_is_read(limited: Node) -> None:
    error = refusal(limited.raw("x" * 5000), 413)
    assert (error["code"], error["data"]) == (-32006, {"reason": "too_large", "limit": 4096})


def test_a_body_without_a_length_is_counted_as_it_comes(limited: Node) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(10):
            yield b" " * 1000

    response = limited.http.post(
        "/", content=chunks(), headers={"content-type": "application/json"}
    )
    assert refusal(response, 413)["code"] == -32006


def test_a_body_in_pieces_is_put_together(node: Node) -> None:
    pieces = iter([LIST[:10].encode(), LIST[10:].encode()])
    response = node.http.post("/", content=pieces, headers={"content-type": "application/json"})
    assert "result" in response.json()


def test_a_caller_that_goes_away_does_no_harm(node: Node) -> None:
    with socket.create_connection(("127.0.0.1", node.port)) as half:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        half.sendall(head + b"Content-Length: 100\r\n\r\n{")
    assert node.get("/live").status_code == 200


# --- headers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["authorization", "x-agent-id", "x-project-token", "idempotency-key"]
)
def test_a_header_that_decides_may_not_come_twice(node: Node, name: str) -> None:
    headers = [("content-type", "application/json"), (name, "a"), (name, "b")]
    error = refusal(node.raw(LIST, headers), 400)
    assert (error["code"], error["data"]["reason"]) == (-32600, "invalid_request")
    assert name in error["message"]


def test_other_headers_may_come_twice(node: Node) -> None:
    headers = [("content-type", "application/json"), ("accept", "a/b"), ("accept", "c/d")]
    assert node.raw(LIST, headers).status_code == 200


@pytest.mark.parametrize("value", [b"", b"a" * 201, b"has space", b"\xc3\xa9", b"a\tb"])
def test_an_idempotency_key_is_printable_and_short(value: bytes) -> None:
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        idempotency_key(value)


def test_a_bad_idempotency_key_is_400(node: Node) -> None:
    error = refusal(node.raw(LIST, {"idempotency-key": "a" * 201}), 400)
    assert error["code"] == -32602


# --- who calls ----------------------------------------------------------------------------------


def test_an_unknown_key_is_401(node: Node) -> None:
    """CACP 2.0, Trust Levels: unknown is rejected."""
    response = node.raw(LIST, bearer("cacp_sk_" + "x" * 32))
    assert refusal(response, 401)["code"] == -32001
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_another_agents_id_beside_a_key_is_403(node: Node, frontend_key: str) -> None:
    headers = bearer(frontend_key) | {"x-agent-id": "aid://example.com/other@1.0.0"}
    error = refusal(node.raw(LIST, headers), 403)
    assert (error["code"], error["data"]["reason"]) == (-32003, "agent_mismatch")


def test_who_calls_too_often_is_429_and_told_when_to_come_back(tmp_path: Path) -> None:
    with Node(tmp_path, rate_limit=5) as node:
        for _ in range(5):
            assert node.raw(LIST).status_code == 200
        response = node.raw(LIST)
        error = refusal(response, 429)
        assert error["code"] == -32005
        assert response.headers["retry-after"] == str(error["data"]["retryAfter"])
        other = node.key("aid://example.com/other@1.0.0", "other")
        assert node.raw(LIST, bearer(other)).status_code == 200


def test_a_batch_counts_as_many_requests_as_it_holds(tmp_path: Path) -> None:
    batch = json.dumps([json.loads(LIST)] * 10)
    with Node(tmp_path, rate_limit=12) as node:
        assert len(node.raw(batch).json()) == 10
        for _ in range(2):
            assert node.raw(LIST).status_code == 200
        assert refusal(node.raw(LIST), 429)["data"]["retryAfter"] == 5


def test_failed_logins_are_limited_by_address_and_logged(tmp_path: Path) -> None:
    wrong = bearer("cacp_sk_" + "x" * 32)
    with Node(tmp_path, rate_limit=3) as node:
        for _ in range(3):
            refusal(node.raw(LIST, wrong), 401)
        response = node.raw(LIST, wrong)
        assert refusal(response, 429)["code"] == -32005
        assert response.headers["retry-after"]
        assert node.raw(LIST).status_code == 200
        logged = [json.loads(line) for line in node.log.splitlines()]
    failed = [line for line in logged if line["event"] == "unauthenticated"]
    assert [(one["reason"], one["address"]) for one in failed] == [("unknown_key", "127.0.0.1")]


# --- the last resort ----------------------------------------------------------------------------


async def receive() -> Message:
    return {"type": "http.request", "body": b""}


def answer_of(app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> list[Message]:
    """What LastResort sends around an application."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(LastResort(app)({"type": "http", "path": "/x"}, receive, send))
    return sent


def test_what_nobody_caught_becomes_an_id() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("secret detail")

    start, body = answer_of(broken)
    assert start["status"] == 500
    error = json.loads(body["body"])["error"]
    assert (error["code"], error["data"]["reason"]) == (-32000, "internal_error")
    assert error["data"]["id"] in error["message"]
    assert b"secret" not in body["body"]


def test_what_breaks_in_the_middle_of_an_answer_breaks_it_off() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    with pytest.raises(RuntimeError):
        answer_of(broken)


def test_a_batch_counts_for_each_of_its_calls_and_a_peers_for_its_own_rate() -> None:
    """Design §6: requests per caller. A peer's batch carries what others were counted for."""
    limits = RateLimit(60)
    gate = Admission(cast(Authenticator, None), limits, LogOnce())
    for agent_id, trust in (("agent", "verified"), ("peer", "peer")):
        limits.check(agent_id, 0.0)
        gate.charge(Caller(agent_id, "r", trust, "key"), 99)  # type: ignore[arg-type]
    limits.check("peer", 0.0)
    with pytest.raises(RateLimited):
        limits.check("agent", 0.0)


# --- a large body -------------------------------------------------------------------------------


def sent(answer: Callable[[Send], Awaitable[None]]) -> tuple[list[bytes], int]:
    """The body's pieces, and how often others had their turns meanwhile."""
    pieces: list[bytes] = []
    turns = 0

    async def run() -> None:
        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                pieces.append(bytes(message.get("body", b"")))
                assert message.get("more_body", False) or not pieces[-1] or len(pieces) == 1

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        await answer(send)
        beside.cancel()

    asyncio.run(run())
    return pieces, turns


def test_a_large_answer_is_sent_in_pieces_with_turns_for_others_in_between() -> None:
    parts = [b"[", b"x" * (3 * PIECE), b",", *[b"y" * 1000] * 200, b"]"]
    pieces, turns = sent(lambda send: respond(send, 200, parts))
    assert b"".join(pieces) == b"".join(parts)
    assert max(map(len, pieces)) <= PIECE
    assert turns >= 6


def test_a_public_document_is_sent_in_pieces_too() -> None:
    document = b"d" * (4 * PIECE + 1)

    async def answer(send: Send) -> None:
        scope = {"type": "http", "method": "GET"}
        await InPieces(document)(scope, cast(Receive, None), send)

    pieces, turns = sent(answer)
    assert b"".join(pieces) == document
    assert max(map(len, pieces)) <= PIECE
    assert turns >= 4


def test_a_small_answer_is_sent_at_once() -> None:
    pieces, turns = sent(lambda send: respond(send, 200, b"{}"))
    assert (pieces, turns) == ([b"{}"], 0)


def test_a_peer_does_not_have_any_number_of_messages_taken() -> None:
    """Its batches counted as one request each, whatever was in them."""
    gate = Admission(cast(Authenticator, None), RateLimit(60), LogOnce())
    peer, other = (Caller(name, "r", "peer", "key") for name in ("peer", "other"))
    gate.charge(peer, 99 * PEER_SHARE)
    with pytest.raises(RateLimited) as refusal:
        gate.charge(peer, 99)
    assert refusal.value.data["retryAfter"] > 0
    gate.charge(other, 99)
