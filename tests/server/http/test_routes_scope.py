"""Every route, and what a caller is shown whose token is for one project (CACP 2.0, Headers).

A route that is not in these tables fails the test: whoever adds one decides.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route

from server.app import make_app
from server.page.views import VIEWS
from server.serve import admission
from server.settings import Settings
from tests.cli.run import cacp
from tests.server.methods.refusals import refused
from tests.support.located import prepare
from tests.support.node import Node, bearer
from tests.support.team import Team

OPEN = {
    "/.well-known/agent.json",
    "/.well-known/agent-card.json",
    "/health",
    "/live",
    "/ready",
    "/methods",
    "/openrpc.json",
    "/peers/hello",
    "/peers/confirm",
    "/known",
    "/.well-known/cacp-challenge/{nonce}",
    "/ui/assets/{name}",
    "/ui/sign-in",
    "/ui/enter",
}
"""Shows nothing of a project, and asks nobody who calls."""
PAGE = {"/ui", "/ui/events", "/ui/links", "/ui/sign-out", "/ui/actions/{name}", "/ui/{rest:path}"}
PAGE |= {path for view in VIEWS.values() for path in (view.path, f"{view.path}.json")}
BY_PROJECT = {"/", "/mcp", "/events"} | PAGE
"""Shows each project by itself, and leaves out what is of no project or of another."""
WHOLE = {
    "GET": ["/mesh", "/peers", "/metrics", "/v1/agents/", "/v1/agents", "/v1/agents/{aid:path}"],
    "POST": [
        "/peers/register",
        "/adp/search",
        "/adp/register",
        "/adp/known",
        "/v1/search/",
        "/v1/search",
        "/v1/register/",
        "/v1/register",
    ],
}
"""Shows or changes the node as a whole: not for a token of one project."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with Node(tmp_path_factory.mktemp("exchange"), exchange=True) as node:
        yield Team.on(node, node.key("aid://example.com/frontend@1.0.0", "frontend-app"))


def test_every_route_is_decided_on(tmp_path: Path) -> None:
    settings = Settings(db=tmp_path / "cacp.db", exchange=True)
    app = make_app(settings, prepare(settings.db), b"secret" * 8, admission(settings))
    paths = {route.path for route in app.routes if isinstance(route, Route)}
    assert paths == OPEN | BY_PROJECT | {path for some in WHOLE.values() for path in some}


@pytest.mark.parametrize(
    ("method", "path"), [(method, path) for method, some in WHOLE.items() for path in some]
)
def test_a_token_of_one_project_is_shown_nothing_of_the_whole_node(
    team: Team, method: str, path: str
) -> None:
    address = path.replace("{aid:path}", "aid://example.com/frontend@1.0.0")
    for headers in ({"x-project-token": team.token()}, bearer(bound(team))):
        answer = team.node.http.request(method, address, json={}, headers=headers)
        assert answer.status_code == 403, answer.text
        assert answer.json()["error"]["data"]["reason"] in ("other_project", "not_a_peer")


def bound(team: Team, *others: str) -> str:
    """A key for the one project, and `others`."""
    words = ["keys", "create", "aid://example.com/bound@1.0.0", "--repo", "bound", "--json"]
    projects = [word for id in (team.project, *others) for word in ("--project", id)]
    done = cacp(*words, *projects, db=str(team.node.db))
    return str(json.loads(done.stdout)["key"])


def test_a_key_of_one_project_sees_nothing_of_another(team: Team) -> None:
    """No name, no id, no count (test_base_scope asks by every method)."""
    node, key = team.node, bound(team)
    other = Team.on(node, team.key)
    secret = other.proposed(name="what nobody of the first may see")
    listed = node.call("cacp/project/list", key=key)["projects"]
    assert [one["project_id"] for one in listed] == [team.project]
    assert node.call("cacp/project/get", key=key, projectId=team.project)["name"] == "User Auth"
    given: list[tuple[str, dict[str, str]]] = [
        ("cacp/project/get", {}),
        ("cacp/contract/list", {}),
        ("cacp/contract/get", {"contractId": secret}),
        ("cacp/context/list", {}),
        ("cacp/file/list", {}),
    ]
    for method, params in given:
        with refused(-32003, "other_project"):
            node.call(method, key=key, projectId=other.project, **params)
    for method in ("acp/inbox", "acp/query"):
        with refused(-32003, "other_project"):
            node.call(method, key=key)
    answer = node.http.get("/events", params={"project": other.project}, headers=bearer(key))
    assert answer.status_code == 403
    key = bound(team, other.project)
    listed = node.call("cacp/project/list", key=key)
    assert [one["project_id"] for one in listed["projects"]] == [other.project, team.project]
    assert listed["total"] == 2
    first = node.call("cacp/project/list", key=key, limit=1)
    assert [one["project_id"] for one in first["projects"]] == [other.project]
    rest = node.call("cacp/project/list", key=key, limit=1, cursor=first["nextCursor"])
    assert [one["project_id"] for one in rest["projects"]] == [team.project]
    assert node.call("cacp/contract/get", key=key, projectId=other.project, contractId=secret)
    third = Team.on(node, team.key)
    with refused(-32003, "other_project", projectIds=sorted([team.project, other.project])):
        node.call("cacp/project/get", key=key, projectId=third.project)
    wrong = cacp("keys", "create", "a", "--repo", "r", "--project", "no", db=str(node.db))
    assert (wrong.exit_code, "no project here is named no" in wrong.stderr) == (1, True)
