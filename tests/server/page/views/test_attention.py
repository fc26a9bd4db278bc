"""What needs a person, and what has waited too long, as a page."""

from typing import Any

import pytest

from tests.support.node import Node
from tests.support.team import FRONTEND, Team

BROWSER = {"accept": "text/html"}


def shown(node: Node, **query: str) -> str:
    response = node.http.get("/ui/attention", headers=BROWSER, params=query)
    assert response.status_code == 200, response.text
    return response.text


def test_the_twin_is_what_the_method_lists(node: Node, team: Team) -> None:
    team.proposed(name="GET /twin")
    twin = node.http.get("/ui/attention.json", params={"project": team.project}).json()
    listed = node.call("cacp/attention/overview", projectId=team.project, limit=50)
    # Who was last seen when differs from call to call.
    assert [item["id"] for item in twin["items"]] == [item["id"] for item in listed["items"]]
    assert (twin["groups"], twin["show"], twin["projectId"]) == (
        {"person": 0, "overdue": 0, "in_time": 1},
        None,
        team.project,
    )


def test_an_item_says_what_who_and_for_how_long(node: Node, team: Team) -> None:
    team.proposed(name="<b>GET</b> /item")
    text = shown(node, project=team.project)
    assert "Nothing needs a person, nothing waited too long, 1 in time" in text
    assert "&lt;b&gt;GET&lt;/b&gt; /item" in text
    assert "<b>GET</b>" not in text
    assert f">{FRONTEND}</bdi>" in text
    assert "<time datetime=" in text
    assert "You are only looking" in text
    assert '<form method="post"' not in text


@pytest.mark.parametrize("show", ["person", "overdue", "in_time"])
def test_it_narrows_to_a_group(node: Node, team: Team, show: str) -> None:
    team.proposed(name="GET /narrow")
    text = shown(node, project=team.project, show=show)
    assert ("GET /narrow" in text) == (show == "in_time")
    assert ("Nothing is open here" in text) == (show != "in_time")


@pytest.mark.parametrize("query", [{"show": "all"}, {"after": "x"}, {"project": "unknown"}])
def test_a_wrong_query_is_refused_as_a_page(node: Node, query: dict[str, Any]) -> None:
    response = node.http.get("/ui/attention", headers=BROWSER, params=query)
    assert response.status_code in (400, 404)
    assert response.headers["content-type"].startswith("text/html")


def test_a_long_list_is_paged(node: Node, team: Team) -> None:
    for number in range(51):
        team.proposed(name=f"GET /{number}")
    first = node.http.get("/ui/attention.json", params={"project": team.project}).json()
    assert len(first["items"]) == 50
    assert 'rel="next"' in shown(node, project=team.project)
    rest = {"project": team.project, "after": first["next"]}
    second = node.http.get("/ui/attention.json", params=rest).json()
    assert (len(second["items"]), second["next"]) == (1, None)
