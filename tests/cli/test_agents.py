"""`cacp agents`."""

import json
from typing import Any

import pytest

from cli import agents as command
from tests.cli.run import cacp
from tests.support.node import Node

AGENT: dict[str, Any] = {"agentId": "aid://x/web", "hasMail": True, "repos": [], "moreRepos": 0}


def test_it_lists_who_is_there(node: Node) -> None:
    name = "aid://example.com/agents-command"
    node.key(f"{name}@1.0.0", "web-shop")
    done = cacp("agents", "AGENTS-command", url=node.url)
    heads, row = done.stdout.splitlines()
    assert heads.split()[0] == "AGENT"
    assert row.split()[:2] == [name, "asleep"]
    assert "nothing" in row
    listed = json.loads(cacp("agents", "--json", url=node.url).stdout)
    assert name in {agent["agentId"] for agent in listed}
    linked = cacp("agents", "mobile", "--web", url=node.url).stdout.strip()
    assert linked == f"{node.url}/ui/agents?q=mobile"
    assert cacp("agents", "nobody-at-all", url=node.url).stderr.strip() == "No agent matches"


@pytest.mark.parametrize(
    ("more", "column", "shown"),
    [
        ({"node": "aid://x/beta"}, 1, "at aid://x/beta"),
        ({"isAwake": True}, 1, "awake"),
        ({}, 3, "-"),
        ({"work": {"items": 2, "urgent": 1, "handoffs": 0, "mail": 1}}, 3, "2 items, 1 message (1"),
        ({"repos": [{"repo": "a\nb"}, {"repo": "c"}], "moreRepos": 3}, 4, "a b, c, 3 more"),
        ({"channels": [{"channel": "wake", "pausedUntil": "x"}]}, 5, "wake (paused)"),
    ],
)
def test_a_row(more: dict[str, Any], column: int, shown: str) -> None:
    assert command._row(AGENT | more)[column].startswith(shown)
