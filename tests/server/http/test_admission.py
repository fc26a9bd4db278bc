"""Who may call: credentials, headers that may come once, rates (design §6)."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import pytest

from server.auth.authenticator import Authenticator, Caller
from server.domain.errors import Forbidden, RateLimited
from server.http.admission import PEER_RATE_FACTOR, Admission
from server.http.rate_limit import RateLimit
from server.settings import Settings
from server.store import keys
from server.store.connection import Read, ReadFunction
from server.util.log_once import RateLimitedLog
from tests.server.http.json_rpc import LIST, refusal
from tests.support.located import connect
from tests.support.node import Node, bearer

T = TypeVar("T")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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


def test_a_batch_counts_for_each_of_its_calls_and_a_peers_for_its_own_rate() -> None:
    """Design §6: requests per caller. A peer's batch carries what others were counted for."""
    limits = RateLimit(60)
    gate = Admission(cast(Authenticator, None), cast(Read, None), limits, RateLimitedLog())
    for agent_id, trust in (("agent", "verified"), ("peer", "peer")):
        limits.check(agent_id, 0.0)
        gate.charge(Caller(agent_id, "r", trust, "key"), 99)  # type: ignore[arg-type]
    limits.check("peer", 0.0)
    with pytest.raises(RateLimited):
        limits.check("agent", 0.0)


def test_a_peer_does_not_have_any_number_of_messages_taken() -> None:
    """Its batches counted as one request each, whatever was in them."""
    gate = Admission(cast(Authenticator, None), cast(Read, None), RateLimit(60), RateLimitedLog())
    peer, other = (Caller(name, "r", "peer", "key") for name in ("peer", "other"))
    gate.charge(peer, 99 * PEER_RATE_FACTOR)
    with pytest.raises(RateLimited) as refusal:
        gate.charge(peer, 99)
    assert refusal.value.data["retryAfter"] > 0
    gate.charge(other, 99)


@pytest.mark.anyio
async def test_a_key_that_is_given_elsewhere_counts_alone(node: Node, frontend_key: str) -> None:
    """The headers beside a form's key say nothing of who signs in."""
    with closing(connect(node.db)) as db:

        async def read(function: ReadFunction[T], /) -> T:
            return function(db)

        identity = Authenticator(Settings(), b"secret")
        gate = Admission(identity, read, RateLimit(0), RateLimitedLog())
        claimed = [(b"host", b"localhost"), (b"x-agent-id", b"aid://example.com/other")]
        scope = {"type": "http", "headers": claimed, "client": ("127.0.0.1", 1)}
        caller = await gate.enter_with_key(scope, frontend_key.encode())
        assert caller.via == "key"
        hashed = keys.hash_of(frontend_key.encode())
        scope["headers"] = claimed[:1]
        assert await gate.enter_by_hash(scope, hashed) == caller
        await gate.recheck_by_hash(scope, hashed, caller)
        with pytest.raises(Forbidden, match="changed"):
            await gate.recheck_by_hash(scope, hashed, replace(caller, human=True))
