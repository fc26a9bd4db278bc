"""Nodes that find each other by an exchange (CACP 2.0, ADP Integration; issue, ADP)."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import AGENT, Node, bearer, free_port
from tests.support.scripted_http import (
    Behaviour,
    ScriptedHttp,
    answer,
    endless,
    garbage,
    huge,
    silent,
)
from tests.support.waiting import eventually


def made(folder: Path, name: str, **settings: object) -> Node:
    (folder / name).mkdir()
    agent_id = f"aid://example.com/{name}@1.0.0"
    return Node(folder / name, **{"agent_id": agent_id, "repo": name, **settings})


def post(node: Node, path: str, body: Any, key: str | None = None) -> Any:
    headers = {"content-type": "application/json", **bearer(key)}
    return node.http.post(path, content=json.dumps(body), headers=headers)


def listed(node: Node, query: str) -> list[str]:
    return [one["aid"] for one in post(node, "/adp/search", {"query": query}).json()["results"]]


def log_events(node: Node) -> list[str]:
    lines = [json.loads(line) for line in node.log.splitlines()]
    return [line["event"] for line in lines if line["event"].startswith("adp_")]


def test_one_node_serves_another_registers_a_third_finds_it(tmp_path: Path) -> None:
    """Issue: a closed mesh needs nobody else's server."""
    with made(tmp_path, "exchange", exchange=True) as exchange:
        using = {"adp_url": exchange.url}
        with (
            made(tmp_path, "b", adp_register=True, role="mobile", language="kotlin", **using) as b,
            made(tmp_path, "c", **using) as c,
        ):
            eventually(lambda: listed(c, "mobile kotlin") == ["aid://example.com/b@1.0.0"])
            [found] = post(c, "/adp/search", {"query": "mobile"}).json()["results"]
            protocols = found["manifest"]["invocation"]["protocols"]
            assert protocols == [{"type": "cacp", "version": "2.0", "endpoint": b.url}]
            assert "cacp_adp_registered 1.0" in b.get("/metrics").text
            assert "cacp_adp_registered 0.0" in c.get("/metrics").text
            assert listed(c, "aid://example.com/c@1.0.0")[0] != "aid://example.com/c@1.0.0"
            manifest = post(c, "/adp/register", {}).json()["manifest"]
            assert manifest["aid"] == "aid://example.com/c@1.0.0"
            assert listed(exchange, "aid://example.com/c@1.0.0")[0] == manifest["aid"]


def test_a_keyed_node_registers_with_its_key(tmp_path: Path) -> None:
    with made(tmp_path, "exchange", exchange=True) as exchange:
        key = exchange.key("aid://example.com/b@1.0.0", "b")
        with made(tmp_path, "b", adp_url=exchange.url, adp_key=key, adp_register=True) as b:
            eventually(lambda: log_events(b) == ["adp_registered"])
            assert key not in b.log
        [found] = post(exchange, "/v1/search/", {"query": "b", "limit": 1}).json()["results"]
        assert (found["aid"], found["verified"]) == ("aid://example.com/b@1.0.0", True)


def test_an_exchange_that_comes_up_late_is_registered_at_quietly(tmp_path: Path) -> None:
    exchange = made(tmp_path, "exchange", exchange=True)
    with made(tmp_path, "b", adp_url=exchange.url, adp_register=True) as b:
        eventually(lambda: log_events(b) == ["adp_not_registered"])
        time.sleep(1.5)
        assert b.get("/health").json()["status"] == "healthy"
        refused = post(b, "/adp/search", {})
        assert refused.status_code == 502
        assert refused.json()["error"]["message"] == "The exchange can't be reached"
        with exchange:
            eventually(lambda: log_events(b) == ["adp_not_registered", "adp_registered"])


@pytest.mark.parametrize(
    "behaviour",
    [
        answer({"success": True}, 302, location="http://169.254.169.254/"),
        answer([["x"]] * 1_000),
        answer({"success": False, "results": 5}),
        huge,
        endless,
        silent,
        garbage,
    ],
)
def test_a_hostile_exchange_harms_nobody(tmp_path: Path, behaviour: Behaviour) -> None:
    with (
        ScriptedHttp(behaviour) as hostile,
        made(tmp_path, "b", adp_url=hostile.url, adp_register=True) as b,
    ):
        eventually(lambda: "/v1/register/" in hostile.asked)
        assert b.call("cacp/project/list") == {"projects": [], "total": 0}
        assert b.stop() == 0
        assert len(log_events(b)) <= 1
        assert "Traceback" not in b.log


def test_only_the_nodes_own_agent_acts_in_its_name(node: Node, frontend_key: str) -> None:
    for path, body in (("/adp/register", {}), ("/adp/known", {"url": "http://127.0.0.1:1"})):
        refused = post(node, path, body, frontend_key)
        assert refused.status_code == 403
        assert refused.json()["error"]["data"]["reason"] == "other_agent"


def test_a_node_without_an_exchange_says_so(node: Node) -> None:
    for path in ("/adp/search", "/adp/register"):
        error = post(node, path, {}).json()["error"]
        assert error["data"]["reason"] == "no_exchange"
        assert "CACP_ADP_URL" in error["message"]


def test_a_node_calls_nobody_unless_told_to(tmp_path: Path) -> None:
    with (
        ScriptedHttp(answer({})) as exchange,
        made(tmp_path, "b", adp_url=exchange.url) as b,
    ):
        b.call("cacp/project/list")
        b.stop()
        assert exchange.asked == []


def test_where_the_node_must_not_call_it_does_not(node: Node) -> None:
    for url in ("http://169.254.169.254", "http://0.0.0.0:80"):
        refused = post(node, "/adp/known", {"url": url})
        assert refused.status_code == 403
        assert refused.json()["error"]["data"]["reason"] == "refused_address"
    assert post(node, "/adp/known", {"url": f"http://127.0.0.1:{free_port()}"}).status_code == 502


def test_the_own_exchange_is_searched_when_there_is_no_other(tmp_path: Path) -> None:
    with Node(tmp_path, exchange=True) as exchange:
        assert listed(exchange, "backend") == [AGENT]
