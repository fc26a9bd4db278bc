"""The graph as a page: what is drawn, and the same as a list."""

import html
import json
import re
from typing import Any

from server.page.views.graph import EDGES_MAX, NAMED_MAX, chosen_pairs, draw, levels
from tests.support.node import Node
from tests.support.team import FRONTEND, REPO, Team

Json = dict[str, Any]
BROWSER = {"accept": "text/html"}


def shown(node: Node, team: Team, query: str = "") -> tuple[Json, str]:
    """The twin and the text of the page."""
    path = f"/ui/projects/{team.project}/graph"
    page = node.http.get(f"{path}?{query}", headers=BROWSER)
    assert page.status_code == 200, page.text
    return node.http.get(f"{path}.json?{query}").json(), page.text


def pair(provider: str, consumer: str, **more: Any) -> Json:
    states = {"broken": 1, "verified": 1}
    return {
        "providerId": provider,
        "consumerId": consumer,
        "contracts": 2,
        "state": "broken",
        "states": states,
    } | more


def graph_of(pairs: list[Json], reach: Json | None = None) -> tuple[Json, dict[str, str]]:
    ids = dict.fromkeys(id for each in pairs for id in (each["providerId"], each["consumerId"]))
    repos = [{"repoId": id, "provides": 1, "consumes": 1} for id in ids]
    whole: Json = {"repos": repos, "pairs": pairs}
    return whole | ({"reach": reach} if reach else {}), {id: f"{id}-repo" for id in ids}


REACH = {
    "contractId": "k",
    "contracts": [{"contractId": "k", "providerId": "a", "consumerIds": ["b"], "steps": 0}],
    "repos": [{"repoId": "b", "steps": 1}],
}


def test_a_project_without_contracts_draws_nothing(node: Node, team: Team) -> None:
    twin, text = shown(node, team)
    assert twin["drawing"] == {"nodes": [], "edges": []}
    assert "data-graph" not in text
    assert "There is no contract yet" in text


def test_what_is_drawn_stands_in_the_list_too(node: Node, team: Team) -> None:
    name = """GET '/one' "two" <script>alert(1)</script>"""
    contract = team.agreed(name=name)
    twin, text = shown(node, team, f"contract={contract}")
    [attribute] = re.findall("data-graph='([^']*)'", text)
    assert json.loads(html.unescape(attribute)) == twin["drawing"]
    [edge] = twin["drawing"]["edges"]
    assert (edge["label"], edge["state"], edge["look"]) == (f"○ {name}", "agreed", "marked")
    assert {node["label"] for node in twin["drawing"]["nodes"]} == {REPO, FRONTEND}
    assert "<script>alert" not in text
    assert text.count(html.escape(name).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")) == 2
    assert "reaches 1 repo</h2>" in text
    assert "1 step: <a href=" in text
    unknown = node.http.get(f"/ui/projects/{team.project}/graph?contract=nope", headers=BROWSER)
    assert unknown.status_code == 404


def test_a_choice_of_repos_is_said_and_can_be_taken_back(node: Node, team: Team) -> None:
    team.agreed()
    twin, text = shown(node, team, f"provider={team.repo_id(REPO)}&consumer={FRONTEND}")
    assert twin["choice"] == {"provider": REPO, "consumer": FRONTEND}
    assert (twin["matching"], len(twin["drawing"]["edges"])) == (1, 1)
    assert "Show all" in text
    twin, _ = shown(node, team, f"provider={FRONTEND}")
    assert (twin["matching"], twin["drawing"]["edges"], twin["leftOut"]) == (0, [], 0)


def test_several_contracts_of_two_repos_are_one_line() -> None:
    drawing = draw("p", *graph_of([pair("a", "b"), pair("b", "c")]))
    [first, _] = drawing["edges"]
    assert (first["from"], first["to"], first["label"]) == ("a", "b", "! 2 contracts")
    assert first["title"] == "a-repo to b-repo: 1 broken, 1 verified"
    assert first["href"].endswith("?provider=a&consumer=b")
    assert {node["look"] for node in drawing["nodes"]} == {""}
    assert {node["state"] for node in drawing["nodes"]} == {"unknown"}


def test_what_a_change_reaches_is_marked_and_the_rest_is_faint() -> None:
    drawing = draw(
        "p", *graph_of([pair("a", "c"), pair("a", "b", contractId="k", contract="K")], REACH)
    )
    looks = {(edge["from"], edge["to"]): edge["look"] for edge in drawing["edges"]}
    assert looks == {("a", "b"): "marked", ("a", "c"): "faint"}
    assert drawing["edges"][0]["href"].endswith("?contract=k")
    assert {node["id"]: node["look"] for node in drawing["nodes"]} == {
        "a": "marked",
        "b": "marked",
        "c": "faint",
    }
    assert levels(REACH) == [{"steps": 1, "repos": REACH["repos"], "contracts": []}]


def test_a_large_graph_is_drawn_in_part() -> None:
    pairs = [pair("hub", f"r{n}") for n in range(EDGES_MAX + 5)] + [pair("a", "b")]
    drawing = draw("p", *graph_of(pairs, REACH))
    assert len(drawing["edges"]) <= EDGES_MAX
    assert drawing["edges"][0]["look"] == "marked", "what is reached comes first"
    assert drawing["edges"][0]["label"] == "! 2"
    few = draw("p", *graph_of(pairs[:NAMED_MAX]))
    assert few["edges"][0]["label"] == "! 2 contracts"


def test_pairs_are_chosen_by_id_or_name() -> None:
    whole, names = graph_of([pair("a", "b"), pair("b", "c")])
    chosen = [
        [each["providerId"] for each in chosen_pairs(whole["pairs"], names, query)]
        for query in (
            {},
            {"provider": "a-repo"},
            {"consumer": "c"},
            {"repo": "b"},
            {"repo": "a", "provider": "b"},
        )
    ]
    assert chosen == [["a", "b"], ["a"], ["b"], ["a", "b"], []]
