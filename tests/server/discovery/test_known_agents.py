"""Trust level "known" (CACP 2.0, Trust Levels; design §6)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.discovery.known_agents import ASKED_PER_MINUTE, GRANT_SECONDS
from tests.support.node import AGENT, Node, RpcError, bearer
from tests.support.scripted_http import ScriptedHttp, answer

READER = "aid://example.com/reader@1.0.0"
NONCE = "n" * 40


def post(node: Node, path: str, body: Any, key: str | None = None) -> Any:
    headers = {"content-type": "application/json", **bearer(key)}
    return node.http.post(path, content=json.dumps(body), headers=headers)


def enter(exchange: Node, aid: str, endpoint: str) -> None:
    protocols = [{"type": "cacp", "endpoint": endpoint}]
    manifest = {"aid": aid, "name": "Agent", "invocation": {"protocols": protocols}}
    assert post(exchange, "/v1/register/", {"manifest": manifest}).status_code == 201


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Node]:
    """A node that takes known agents, those of its own exchange."""
    (tmp_path / "host").mkdir()
    with Node(tmp_path / "host", exchange=True, known_agents=True) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture
def reader(tmp_path: Path, host: Node) -> Iterator[Node]:
    """Another node, that is listed there and has no key."""
    (tmp_path / "reader").mkdir()
    with Node(tmp_path / "reader", agent_id=READER, repo="reader", adp_url=host.url) as node:
        assert post(node, "/adp/register", {}).status_code == 200
        yield node


def refusal(node: Node, agent_id: str, nonce: str = NONCE) -> tuple[int, str]:
    response = post(node, "/known", {"agentId": agent_id, "nonce": nonce})
    return response.status_code, response.json()["error"]["data"]["reason"]


def test_an_agent_that_adp_lists_may_read_and_nothing_else(host: Node, reader: Node) -> None:
    """CACP 2.0, Trust Levels: known is read-only."""
    host.call("cacp/project/create", name="Profiles", objective="Show them")
    granted = post(reader, "/adp/known", {"url": host.url}).json()
    assert {**granted, "key": ""} == {"key": "", "trust": "known", "expiresIn": GRANT_SECONDS}
    key = granted["key"]
    [project] = host.call("cacp/project/list", key=key)["projects"]
    assert project["name"] == "Profiles"
    for reason, (method, params) in {
        "insufficient_trust": ("cacp/project/create", {"name": "Mine", "objective": "o"}),
        "not_a_peer": ("cacp/peer/announce", {"agentId": READER, "endpoint": reader.url}),
    }.items():
        with pytest.raises(RpcError) as refused:
            host.call(method, key=key, **params)
        assert refused.value.reason == reason
    headers = {**bearer(key), "x-agent-id": READER}
    assert host.http.get("/peers", headers=headers).status_code == 200
    headers["x-agent-id"] = "aid://example.com/other@1.0.0"
    assert host.http.get("/peers", headers=headers).status_code == 403
    assert key not in host.log
    assert host.query("SELECT count(*) FROM keys") == [(0,)]


@pytest.mark.sqlite
def test_a_grant_ends_with_the_node(host: Node, reader: Node) -> None:
    key = post(reader, "/adp/known", {"url": host.url}).json()["key"]
    host.restart()
    assert host.get("/peers", key=key).status_code == 401


def test_nobody_becomes_known_by_a_name_alone(host: Node, reader: Node) -> None:
    """The endpoint that ADP lists answers for its own nonces only."""
    assert refusal(host, READER) == (401, "challenge_failed")
    assert reader.get(f"/.well-known/cacp-challenge/{NONCE}").status_code == 404


def test_whom_adp_does_not_list_is_unknown(host: Node) -> None:
    assert refusal(host, "aid://example.com/nobody@1.0.0") == (401, "unknown_agent")


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        ({"agentId": READER, "node": "http://127.0.0.1:1"}, 200),
        ({"agentId": READER, "node": "HOST/other"}, 200),
        ({"agentId": "aid://example.com/other@1.0.0", "node": "HOST"}, 200),
        ({"agentId": READER, "node": "HOST"}, 404),
        ({"agentId": READER, "node": "HOST"}, 302),
        ({"agentId": READER}, 200),
        ([READER, "HOST"], 200),
    ],
)
def test_a_challenge_answered_for_another_node_or_agent_is_none(
    host: Node, shown: Any, status: int
) -> None:
    """A node in the middle can't pass on a nonce that was meant for itself."""
    body = json.dumps(shown).replace("HOST", host.url).encode()
    with ScriptedHttp(answer(body, status, location=host.url)) as endpoint:
        enter(host, READER, f"{endpoint.url}/")
        assert refusal(host, READER) == (401, "challenge_failed")
        assert endpoint.asked == [f"/.well-known/cacp-challenge/{NONCE}"]
        endpoint.behaviour = answer({"agentId": READER, "node": f"{host.url}/"})
        granted = post(host, "/known", {"agentId": READER, "nonce": NONCE})
        assert granted.json()["trust"] == "known"


def test_an_endpoint_with_a_query_is_not_called(host: Node) -> None:
    """It would turn the challenge's path into a param of any other page."""
    with ScriptedHttp(answer({"agentId": READER, "node": host.url})) as endpoint:
        enter(host, READER, f"{endpoint.url}/delete?all=1&x=")
        assert refusal(host, READER) == (401, "challenge_failed")
        assert endpoint.asked == []


def test_who_has_a_key_must_use_it(host: Node) -> None:
    host.key(READER, "reader")
    assert refusal(host, READER) == (403, "key_needed")
    assert refusal(host, AGENT) == (403, "key_needed")


def test_it_is_off_by_default(node: Node) -> None:
    assert refusal(node, READER) == (403, "known_agents_off")


def test_a_refusal_is_told_to_who_asked(node: Node, reader: Node) -> None:
    response = post(reader, "/adp/known", {"url": node.url})
    assert response.status_code == 403
    assert "does not accept agents without a key" in response.json()["error"]["message"]


def test_asking_is_limited(host: Node) -> None:
    """Each question makes the node call out."""
    asked = [refusal(host, f"aid://example.com/{i}@1.0.0") for i in range(ASKED_PER_MINUTE + 1)]
    assert asked[-1] == (429, "rate_limited")
    assert asked[:-1] == [(401, "unknown_agent")] * ASKED_PER_MINUTE


@pytest.mark.parametrize(
    "body", [{}, {"agentId": READER, "nonce": "short"}, {"agentId": READER, "nonce": "/" * 40}]
)
def test_a_bad_question_is_refused(host: Node, body: Any) -> None:
    assert post(host, "/known", body).status_code == 400


def test_nobody_becomes_known_by_an_id_that_reads_as_anothers(host: Node, reader: Node) -> None:
    for odd in ("aid://Example.com/reader@1.0.0", "aid://example.com/reader\u200b@1.0.0"):
        assert refusal(host, odd) == (400, "agent_id_not_canonical")
    host.key("aid://Example.com/reader@1.0.0", "shop")
    assert refusal(host, READER) == (403, "looks_like_another")
