"""The agent card (CACP 2.0, GET /.well-known/agent.json)."""

from importlib.metadata import version
from typing import get_args

import pytest

from schemas.adp import to_wire
from schemas.context import ContextType
from schemas.contract import ContractType
from schemas.mesh import MESH_VERSION
from server.http.agent_card import card, manifest
from server.settings import Settings
from tests.support.node import AGENT, REPO, Node


@pytest.mark.parametrize("path", ["/.well-known/agent.json", "/.well-known/agent-card.json"])
def test_the_card_is_as_specified(node: Node, path: str) -> None:
    found = node.get(path).json()
    assert found == {
        "name": f"CACP Agent ({REPO})",
        "description": f"Coding agent for {REPO} repository",
        "version": "2.0.0",
        "url": node.url,
        "protocols": {"cacp": "2.0"},
        "capabilities": ["python", "backend"],
        "extensions": {
            "cacp": {
                "repo": REPO,
                "role": "backend",
                "language": "python",
                "agentId": AGENT,
                "mesh": MESH_VERSION,
                "software": f"cacp-server {version('cacp-server')}",
                "supportedContractTypes": list(get_args(ContractType)),
                "supportedContextTypes": list(get_args(ContextType)),
            }
        },
    }


def test_the_card_names_the_url_at_which_others_reach_the_node() -> None:
    settings = Settings(host="0.0.0.0", public_url="https://agents.example.com/backend/")
    assert card(settings)["url"] == "https://agents.example.com/backend"


def test_what_nobody_has_said_of_the_repo_is_no_capability() -> None:
    assert card(Settings(repo="web"))["capabilities"] == []
    assert card(Settings(repo="web", role="shared"))["capabilities"] == ["shared"]
    about = to_wire(manifest(Settings(repo="web")))["metadata"]["cacp"]
    assert about["languages"] == []
    assert "role" not in about


def test_the_manifest_says_what_the_card_says() -> None:
    """CACP 2.0, Register Agent."""
    settings = Settings(repo="web", role="frontend", language="typescript", port=9000)
    own, shown = card(settings), to_wire(manifest(settings))
    assert (shown["aid"], shown["name"]) == (settings.agent, own["name"])
    assert shown["invocation"]["protocols"] == [
        {"type": "cacp", "version": own["protocols"]["cacp"], "endpoint": own["url"]}
    ]
    about = shown["metadata"]["cacp"]
    assert (about["repo"], about["role"], about["languages"]) == ("web", "frontend", ["typescript"])
