"""What the header of every page says of the node."""

from types import SimpleNamespace
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.mesh_verdict import Equality
from server.http.health import Health
from server.methods.acp import route
from server.methods.base import Context
from server.page.header import FRESH_SECONDS, HeaderFacts
from server.store import peers
from tests.support.node import Node, bearer
from tests.support.team import Team

SAME = Equality("equal", "The mesh is equal", None, [])


class StateDouble:
    """The parts of a node from which a header is read."""

    def __init__(self) -> None:
        self.time = 0.0
        self.reads = 0
        self.health = Health("healthy")
        caller = Caller("aid://x/node", "r", "verified", "local")
        self.state: Any = SimpleNamespace(
            checkup=SimpleNamespace(seen=self._seen),
            mesh=SimpleNamespace(
                status=SimpleNamespace(equality=lambda db: SAME, behind=lambda db, seconds: 2)
            ),
            database=SimpleNamespace(now=lambda: 10**15),
            node=SimpleNamespace(caller=caller, last_calls={"aid://x/a": 10**15}),
        )

    def _seen(self, db: object) -> Health:
        self.reads += 1
        return self.health


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> StateDouble:
    everyone = {"aid://x/a": None, "aid://x/b": None, "aid://y/c": "aid://y/node"}
    monkeypatch.setattr(route, "everyone", lambda ctx: everyone)
    monkeypatch.setattr(peers, "every", lambda db: [None] * 4)
    return StateDouble()


def header(double: StateDouble) -> HeaderFacts:
    return HeaderFacts(double.state, clock=lambda: double.time)


def test_it_is_read_once_in_a_second(double: StateDouble) -> None:
    facts = header(double)
    db: Any = None
    assert facts.all(db)["health"] == "healthy"
    double.health = Health("degraded", "deferred", "detail")
    double.time = FRESH_SECONDS / 2
    assert facts.all(db)["health"] == "healthy"
    double.time = FRESH_SECONDS
    assert (facts.all(db)["health"], facts.all(db)["reason"]) == ("degraded", "deferred")
    assert double.reads == 2


def test_it_counts_the_agents_of_this_node_and_the_peers_behind(double: StateDouble) -> None:
    shown = header(double).all(None)  # type: ignore[arg-type]
    assert (shown["awake"], shown["agents"]) == (1, 2)
    assert (shown["behind"], shown["peers"]) == (2, 4)
    assert (shown["mesh"], shown["sentence"]) == ("equal", "The mesh is equal")


def test_a_key_that_is_limited_to_projects_learns_the_health_only(double: StateDouble) -> None:
    caller = Caller("aid://x/a", "r", "verified", "key", frozenset({"p"}))
    ctx = Context(None, caller, double.state.node, "page", 0)  # type: ignore[arg-type]
    assert header(double).of(ctx) == {"health": "healthy"}


def test_each_page_has_it(node: Node, team: Team) -> None:
    twin = node.http.get("/ui/attention.json", headers=bearer(team.key)).json()
    assert {"health", "agents", "awake", "mesh", "behind", "peers"} <= set(twin["header"])
    assert twin["header"]["awake"] >= 1
    text = node.http.get("/ui/attention", headers={"accept": "text/html"}).text
    assert f"of {twin['header']['agents']} agents awake" in text
