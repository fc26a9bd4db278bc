"""The view of the agents: is the mobile agent awake, and who sleeps over work?"""

from html import escape

from tests.support.node import Node
from tests.support.team import Team

BROWSER = {"accept": "text/html"}
HOSTILE = "aid://example.com/<img/src=x/onerror=alert(1)>"


def test_it_says_who_is_awake_and_what_waits(node: Node, team: Team) -> None:
    team.proposed()
    page = node.http.get("/ui/agents", params={"q": "frontend"}, headers=BROWSER)
    assert page.status_code == 200
    assert "awake</span>" in page.text
    assert "User Auth" in page.text
    twin = node.http.get("/ui/agents.json", params={"q": "frontend"}).json()
    assert twin["query"] == "frontend"
    [frontend] = [agent for agent in twin["agents"] if agent["agentId"].endswith("/frontend")]
    assert frontend["work"]["items"]
    assert frontend["isAwake"]


def test_a_hostile_id_is_text(node: Node) -> None:
    node.key(f"{HOSTILE}@1.0.0", "a\u202e<b>repo")
    page = node.http.get("/ui/agents", params={"q": "onerror"}, headers=BROWSER).text
    assert escape(HOSTILE) in page
    assert "<img/src" not in page
    assert "not seen since the node" in page


def test_nothing_matches(node: Node) -> None:
    page = node.http.get("/ui/agents", params={"q": '"><script>'}, headers=BROWSER).text
    assert "No agent matches" in page
    assert "<script>" not in page
