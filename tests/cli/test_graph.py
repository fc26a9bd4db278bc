"""`cacp graph` against a node, and its lines."""

import doctest

from cli import graph
from cli.graph import dot_lines, reach_lines, tree_lines
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import FRONTEND, REPO, Team

SHOWN = {
    "repos": [{"repoId": "a", "name": "api"}, {"repoId": "w", "name": 'w"eb'}, {"repoId": "x"}],
    "pairs": [
        {"providerId": "a", "consumerId": "w", "contracts": 2, "states": {"broken": 1, "built": 1}},
        {
            "providerId": "w",
            "consumerId": "x",
            "contracts": 1,
            "states": {"agreed": 1},
            "contract": "page",
        },
    ],
    "contracts": [],
    "reach": {
        "contracts": [
            {"name": "users", "providerId": "a", "consumerIds": ["w"], "steps": 0},
            {"name": "page", "providerId": "w", "consumerIds": ["x"], "steps": 1},
        ],
        "repos": [{"repoId": "w", "steps": 1}, {"repoId": "x", "steps": 2}],
    },
}


def test_the_examples_hold() -> None:
    assert doctest.testmod(graph).failed == 0


def test_providers_and_what_they_provide(node: Node, team: Team) -> None:
    empty = cacp("graph", team.project, url=node.url)
    assert empty.stdout == "The project has no contract yet.\n"
    team.agreed(name="GET /one")
    shown = cacp("graph", team.project, url=node.url)
    assert shown.stdout.splitlines() == [
        REPO,
        "  ○ GET /one (agreed)",
        f"      → {FRONTEND}: agreed",
    ]
    reached = cacp("graph", team.project, "--contract", "get /one", url=node.url)
    assert reached.stdout.splitlines() == [
        f"GET /one, which {REPO} provides",
        f"  1 step: {FRONTEND}",
    ]
    unknown = cacp("graph", team.project, "--contract", "nope", url=node.url)
    assert unknown.exit_code == 1
    assert "no contract here is named nope" in unknown.stderr
    link = cacp("graph", team.project, "--web", url=node.url)
    assert link.stdout == f"{node.url}/ui/projects/{team.project}/graph\n"
    both = cacp("graph", team.project, "--dot", "--json", url=node.url)
    assert both.exit_code == 2


def test_what_a_change_reaches() -> None:
    assert list(reach_lines(SHOWN)) == [
        "users, which api provides",
        '  1 step: w"eb',
        '      w"eb provides page',
        "  2 steps: x",
    ]
    alone = {**SHOWN, "reach": {"contracts": SHOWN["reach"]["contracts"][:1], "repos": []}}  # type: ignore[index]
    assert list(reach_lines(alone))[1:] == ["  Nobody consumes it."]
    assert list(tree_lines(SHOWN)) == ["The project has no contract yet."]


def test_the_graph_for_graphviz() -> None:
    lines = list(dot_lines(SHOWN))
    assert (lines[0], lines[-1]) == ("digraph contracts {", "}")
    assert '  "w" [label="w\\"eb"];' in lines
    assert '  "a" -> "w" [label="2 contracts: 1 broken, 1 built", style=bold];' in lines
