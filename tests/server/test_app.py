"""The composition root: one application, whole, on one database."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from starlette.routing import Route

from server.app import make_app
from server.serve import admission
from server.settings import Settings
from tests.support.located import connect, prepare
from tests.support.node import Node


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, set[str]]:
    """The methods that each path takes, but those of the page (`server.page.routes`)."""
    settings = Settings(db=tmp_path / "cacp.db")
    app = make_app(settings, prepare(settings.db), b"secret" * 8, admission(settings))
    routes = [route for route in app.routes if isinstance(route, Route)]
    taken: dict[str, set[str]] = {}
    for route in routes:
        if not route.path.startswith("/ui"):
            taken.setdefault(route.path, set()).update(set(route.methods or ()) - {"HEAD"})
    return taken


def test_it_serves_what_the_specification_names(paths: dict[str, set[str]]) -> None:
    """CACP 2.0, Endpoint and Discovery Endpoints; issue, Discovery."""
    assert paths == {
        "/": {"GET", "POST"},
        "/mcp": {"POST"},
        "/.well-known/agent.json": {"GET"},
        "/.well-known/agent-card.json": {"GET"},
        "/health": {"GET"},
        "/live": {"GET"},
        "/ready": {"GET"},
        "/methods": {"GET"},
        "/openrpc.json": {"GET"},
        "/peers": {"GET"},
        "/peers/register": {"POST"},
        "/peers/hello": {"POST"},
        "/peers/confirm": {"POST"},
        "/metrics": {"GET"},
        "/mesh": {"GET"},
        "/events": {"GET"},
        "/adp/search": {"POST"},
        "/adp/register": {"POST"},
        "/adp/known": {"POST"},
        "/.well-known/cacp-challenge/{nonce}": {"GET"},
        "/known": {"POST"},
    }


def test_a_node_answers_head_where_it_answers_get(node: Node) -> None:
    for path in ("/health", "/live", "/methods", "/events"):
        response = node.http.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_two_nodes_are_two(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Node(tmp_path / "a", repo="a") as a, Node(tmp_path / "b", repo="b") as b:
        a.call("cacp/project/create", name="n", objective="o")
        assert b.call("cacp/project/list") == {"projects": [], "total": 0}
        assert (a.get("/health").json()["repo"], b.get("/health").json()["repo"]) == ("a", "b")


@pytest.mark.sqlite
def test_what_the_first_caller_writes_counts_as_taken_by_nobody(tmp_path: Path) -> None:
    """It may be stamped anew once a node without peers has heard what time it is."""
    settings = Settings(db=tmp_path / "cacp.db")
    app = make_app(settings, prepare(settings.db), b"secret" * 8, admission(settings))

    async def start() -> None:
        async with app.router.lifespan_context(app):
            # No task of the node's has run yet: a call may come before any does.
            with closing(connect(settings.db)) as db:
                counted.extend(db.execute("SELECT value FROM meta WHERE name = 'given'"))

    counted: list[tuple[str]] = []
    asyncio.run(start())
    assert counted == [("0",)]
