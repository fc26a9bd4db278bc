"""A node as the ADP exchange of a private network (CACP 2.0, ADP Integration)."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from server.discovery.exchange import ENTRIES_MAX
from server.domain.agents import identity
from server.store import keys
from tests.support.located import connect
from tests.support.node import AGENT, Node, bearer


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("exchange"), exchange=True) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture
def manifest() -> dict[str, Any]:
    """An agent that is listed nowhere yet."""
    name = uuid4().hex
    return {
        "aid": f"aid://example.com/{name}@1.0.0",
        "name": f"Agent {name}",
        "description": "Builds the shop",
        "capabilities": ["react"],
        "invocation": {
            "protocols": [{"type": "cacp", "version": "2.0", "endpoint": "http://127.0.0.1:9"}]
        },
        "owner": {"org": "Shop"},
    }


def post(node: Node, path: str, body: Any, key: str | None = None) -> Any:
    headers = {"content-type": "application/json", **bearer(key)}
    return node.http.post(path, content=json.dumps(body), headers=headers)


def register(node: Node, manifest: Any, key: str | None = None) -> Any:
    return post(node, "/v1/register/", {"manifest": manifest}, key)


def search(node: Node, query: str, **params: Any) -> Any:
    return post(node, "/v1/search/", {"query": query, **params}).json()


def test_the_paths_answer_without_their_last_slash(
    exchange: Node, manifest: dict[str, Any]
) -> None:
    registered = post(exchange, "/v1/register", {"manifest": manifest})
    assert registered.status_code == 201
    found = post(exchange, "/v1/search", {"query": manifest["name"]})
    assert found.json() == search(exchange, manifest["name"])
    assert exchange.get("/v1/agents").json() == exchange.get("/v1/agents/").json()


def reason(response: Any) -> str:
    return str(response.json()["error"]["data"]["reason"])


def test_an_agent_registers_and_is_found(exchange: Node, manifest: dict[str, Any]) -> None:
    response = register(exchange, manifest)
    assert response.status_code == 201
    assert response.json() == {
        "success": True,
        "message": "Agent registered",
        "aid": manifest["aid"],
        "verified": False,
    }
    found = search(exchange, manifest["name"], filters={"protocols": ["cacp"]}, limit=1)
    [listing] = found["results"]
    assert (listing["aid"], listing["verified"]) == (manifest["aid"], False)
    assert listing["manifest"]["invocation"] == manifest["invocation"]
    assert "owner" not in listing["manifest"]
    assert {**found, "results": []} == {
        "results": [],
        "total": found["total"],
        "limit": 1,
        "offset": 0,
        "query": manifest["name"],
    }


def test_an_agent_is_read_by_its_id(exchange: Node, manifest: dict[str, Any]) -> None:
    register(exchange, manifest)
    for shown in (manifest["aid"], quote(manifest["aid"], safe="")):
        assert exchange.get(f"/v1/agents/{shown}").json()["name"] == manifest["name"]
    missing = exchange.get("/v1/agents/aid://example.com/nobody@1.0.0")
    assert missing.status_code == 404
    assert missing.json() == {"detail": "There is no agent aid://example.com/nobody@1.0.0"}


def test_all_agents_are_listed_by_pages(exchange: Node, manifest: dict[str, Any]) -> None:
    register(exchange, manifest)
    whole = exchange.get("/v1/agents/").json()
    pages = [
        exchange.get("/v1/agents/", limit="1", offset=str(i)).json()["results"]
        for i in range(whole["total"])
    ]
    assert [one for page in pages for one in page] == whole["results"]
    assert exchange.get("/v1/agents/", limit="101").status_code == 400


def test_the_exchange_lists_itself(exchange: Node, manifest: dict[str, Any]) -> None:
    [own] = search(exchange, AGENT, limit=1)["results"]
    assert (own["aid"], own["verified"]) == (AGENT, True)
    assert own["manifest"]["invocation"]["protocols"][0]["endpoint"] == exchange.url
    assert register(exchange, {**manifest, "aid": AGENT}).status_code == 403


def test_other_protocols_are_filtered_out(exchange: Node, manifest: dict[str, Any]) -> None:
    register(exchange, manifest)
    assert search(exchange, manifest["name"], filters={"protocols": ["mcp"]})["results"] == []


def test_an_agent_is_pinned_to_its_key(exchange: Node, manifest: dict[str, Any]) -> None:
    """Issue: an agent id is pinned to who registered it first; a key is the better proof."""
    register(exchange, manifest)
    key = exchange.key(manifest["aid"], "shop")
    assert reason(register(exchange, manifest)) == "key_needed"
    assert register(exchange, manifest, key).json()["verified"] is True
    other = exchange.key("aid://example.com/other@1.0.0", "other")
    assert reason(register(exchange, manifest, other)) == "other_agent"
    with_other_endpoint = json.loads(json.dumps(manifest).replace(":9", ":10"))
    assert register(exchange, with_other_endpoint, key).status_code == 201
    [listing] = search(exchange, manifest["aid"], limit=1)["results"]
    assert listing["manifest"]["invocation"] == with_other_endpoint["invocation"]


def test_an_agent_stays_pinned_without_its_key(exchange: Node, manifest: dict[str, Any]) -> None:
    key = exchange.key(manifest["aid"], "shop")
    register(exchange, manifest, key)
    for key_id, agent_id in exchange.query("SELECT key_id, agent_id FROM keys"):
        if agent_id == manifest["aid"]:
            revoke(exchange, key_id)
    assert reason(register(exchange, manifest)) == "pinned"


def revoke(node: Node, key_id: str) -> None:
    with closing(connect(node.db)) as db:
        assert keys.revoke(db, key_id, now=1)


def test_who_may_only_read_registers_nobody(exchange: Node, manifest: dict[str, Any]) -> None:
    key = exchange.key(manifest["aid"], "shop", trust="known")
    assert reason(register(exchange, manifest, key)) == "insufficient_trust"


@pytest.mark.parametrize("path", ["/v1/search/", "/v1/register/", "/v1/agents/"])
def test_strangers_are_refused(exchange: Node, path: str) -> None:
    method = "GET" if path == "/v1/agents/" else "POST"
    response = exchange.http.request(method, path, headers={"host": "elsewhere.example"})
    assert response.status_code == 401


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"invocation": {"protocols": []}}, 400),
        ({"invocation": {"protocols": [{"type": "cacp", "endpoint": "ftp://x"}]}}, 400),
        ({"invocation": {"protocols": [{"type": "cacp", "endpoint": "http://169.254.1.1"}]}}, 403),
        ({"name": ""}, 400),
        ({"aid": 5}, 400),
        ({"description": "x" * 70_000}, 413),
    ],
)
def test_a_bad_manifest_is_refused(
    exchange: Node, manifest: dict[str, Any], change: dict[str, Any], status: int
) -> None:
    response = register(exchange, {**manifest, **change})
    assert response.status_code == status
    assert response.json()["error"]["message"]
    assert exchange.get(f"/v1/agents/{manifest['aid']}").status_code == 404


def test_a_body_is_json(exchange: Node) -> None:
    assert exchange.http.post("/v1/search/", content=b"{}").status_code == 415


def test_a_node_is_no_exchange_unless_told_to(node: Node) -> None:
    assert post(node, "/v1/search/", {}).status_code == 404


def test_the_exchange_is_bounded(tmp_path: Path, manifest: dict[str, Any]) -> None:
    with Node(tmp_path, exchange=True) as node:
        register(node, manifest)
        with closing(connect(node.db)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany(
                "INSERT INTO directory SELECT ?, aid, manifest, words, protocols, registrar,"
                " verified, registered_at, renewed_at FROM directory WHERE agent = ?",
                [(f"aid://x/{i}", identity(manifest["aid"])) for i in range(ENTRIES_MAX - 1)],
            )
            db.execute("COMMIT")
        more = {**manifest, "aid": "aid://example.com/more@1.0.0"}
        assert register(node, more).status_code == 413
        assert register(node, manifest).status_code == 201
        found = search(node, "shop react", limit=100)
        assert (len(found["results"]), found["total"]) == (100, ENTRIES_MAX)


@pytest.mark.parametrize(
    ("change", "reason_given"),
    [
        (("aid://example.com/", "aid://EXAMPLE.com/"), "agent_id_not_canonical"),
        (("@1.0.0", "\u200b@1.0.0"), "agent_id_not_canonical"),
        (("@1.0.0", "\uff01@1.0.0"), "agent_id_not_canonical"),
    ],
)
def test_without_a_key_nobody_is_listed_by_an_id_that_reads_as_anothers(
    exchange: Node, manifest: dict[str, Any], change: tuple[str, str], reason_given: str
) -> None:
    register(exchange, manifest)
    twin = {**manifest, "aid": manifest["aid"].replace(*change)}
    assert reason(register(exchange, twin)) == reason_given
    listed = search(exchange, manifest["name"])["results"]
    assert twin["aid"] not in [one["aid"] for one in listed]


def test_without_a_key_nobody_is_listed_beside_one_who_reads_the_same(
    exchange: Node, manifest: dict[str, Any]
) -> None:
    """Who has a key may have any id; what reads as it, in canonical form, is taken by it."""
    odd = manifest["aid"].replace("aid://example", "aid://Example")
    exchange.key(odd, "shop")
    assert reason(register(exchange, manifest)) == "looks_like_another"
