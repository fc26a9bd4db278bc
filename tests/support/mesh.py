"""A mesh as scenarios see it: nodes by name, work on one project, and who knows what."""

import json
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

from tests.support.attention_check import check_attention_at
from tests.support.node import Node
from tests.support.skewed_clock import SkewedNode
from tests.support.waiting import eventually

TOKEN = "a mesh token that nobody guesses"
CONTENT: dict[str, Any] = {"method": "GET", "path": "/profile"}
REPOS = [
    {"name": name, "role": "service", "language": "python"} for name in ("alpha", "beta", "gamma")
]


class Queried(Protocol):
    """Whatever has a node's file."""

    def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]: ...


class Mesh:
    """The nodes of one mesh. Each is named after the repo that it speaks for."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.nodes: dict[str, Node] = {}

    def add(self, name: str, *known: Node, **settings: object) -> SkewedNode:
        """Start a node that registers with those it is told of. Its machine's clock is `ahead`
        seconds ahead."""
        ahead = int(str(settings.pop("ahead", 0)))
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        given: dict[str, object] = {
            "repo": name,
            "agent_id": agent_of(name),
            "mesh_token": TOKEN,
            "peers": ",".join(node.url for node in known),
            "sync_seconds": 0.5,
            "log_format": "json",
        }
        node = SkewedNode(folder, ahead=ahead, at_once=False, **given | settings)
        # Runs once the node has stopped: whatever merges it has seen.
        self._stack.callback(check_attention_at, node.db)
        self._stack.enter_context(node)
        self.nodes[name] = node
        return node

    def three(self) -> tuple[SkewedNode, SkewedNode, SkewedNode]:
        """Three nodes that all know each other."""
        alpha = self.add("alpha")
        beta = self.add("beta", alpha)
        gamma = self.add("gamma", alpha, beta)
        for node in (alpha, beta, gamma):
            eventually(lambda node=node: len(peers(node)) == 2)  # type: ignore[misc]
        return alpha, beta, gamma


def agent_of(name: str) -> str:
    return f"aid://example.com/{name}@1.0.0"


def peers(node: Node) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.get("/peers").json()["peers"]
    return found


def project(node: Node, **more: Any) -> str:
    """The id of a new project of the three repos."""
    made = node.call("cacp/project/create", name="Profiles", objective="o", repos=REPOS, **more)
    return str(made["projectId"])


def join(node: Node, project_id: str, repo: str) -> None:
    eventually(lambda: holds(node, project_id))
    node.call("cacp/project/join", projectId=project_id, repoName=repo)


def propose(node: Node, project_id: str, **more: Any) -> str:
    given: dict[str, Any] = {"type": "api_endpoint", "name": "Get", "content": CONTENT, **more}
    return str(node.call("cacp/contract/propose", projectId=project_id, **given)["contractId"])


def holds(node: Node, project_id: str) -> bool:
    listed = node.call("cacp/project/list", summary=True, limit=500)["projects"]
    return any(one["projectId"] == project_id for one in listed)


def status(node: Node, project_id: str, contract: str) -> str | None:
    """The status of a contract at a node; None while the node doesn't have it."""
    listed = node.call("cacp/contract/list", projectId=project_id)["contracts"]
    return next((one["status"] for one in listed if one["contractId"] == contract), None)


SYNCHRONISED = {
    "projects": "SELECT project_id, name, objective, status, agreement_policy, created_at,"
    " stamp FROM projects",
    "repos": "SELECT project_id, repo_id, name, role, language, relevant_paths, url, stamp,"
    " agent_id, agent_endpoint, claimed_at FROM repos",
    "lost": "SELECT project_id, repo_id, agent_id, claimed_at FROM claim_conflicts",
    "lifecycle": "SELECT project_id, state, name, by_agent, stamp FROM project_lifecycle",
    "stated": "SELECT project_id, repo_id, agent_id, node, by_agent, released_at"
    " FROM stated_releases",
    "released": "SELECT project_id, repo_id, agent_id, released_at FROM claim_releases",
    "facts": "SELECT contract_id, kind, key, stamp, body FROM facts",
    "contracts": "SELECT contract_id, version, status, document, history FROM contracts",
    "packets": "SELECT project_id, packet_id, document FROM packets",
    "files": "SELECT project_id, file_id, name, content_type, size, sha256, purpose,"
    " related_contracts, from_repo, from_agent, fulfils, stamp FROM files",
    "requests": "SELECT project_id, request_id, requested_by, from_agent, description,"
    " suggested_format, stamp FROM file_requests",
}
"""Queries for all that nodes synchronise."""


def state(node: Queried) -> str:
    """All that is synchronised, as text that is equal where the state is."""
    rows = {name: sorted(map(repr, node.query(sql))) for name, sql in SYNCHRONISED.items()}
    return json.dumps(rows, indent=1)


def equal(*nodes: Node) -> bool:
    """Whether the nodes' states are equal. It is asked again and again, so it ends at the first
    difference."""
    with ExitStack() as stack:
        readers = [stack.enter_context(closing(node.reader())) for node in nodes]
        return all(
            len({tuple(sorted(map(repr, reader.execute(sql)))) for reader in readers}) == 1
            for sql in SYNCHRONISED.values()
        )
