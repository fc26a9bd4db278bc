"""Methods on a database of their own, for what needs many calls or a clock that is moved."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.in_process_node import InProcessNode
from tests.support.mail_agent import MailAgent, agent
from tests.support.mesh_member import ALPHA, GUS, TOKEN, MeshMember
from tests.support.node import Node


@pytest.fixture(scope="module")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that strangers who know the mesh token register with, as often as they like."""
    folder = tmp_path_factory.mktemp("alpha")
    settings = {"repo": "alpha", "agent_id": ALPHA, "mesh_token": TOKEN, "requests_per_minute": 0}
    with Node(folder, **settings) as node:
        yield node
        assert "Traceback" not in node.log


@pytest.fixture(scope="module")
def gamma(alpha: Node) -> MeshMember:
    """A peer at which Gus is at home."""
    gamma = MeshMember(alpha, "gamma").register()
    gamma.lists(gamma.agent, GUS)
    return gamma


@pytest.fixture(scope="module")
def beta(alpha: Node) -> MeshMember:
    """A peer that says what a test has it say."""
    return MeshMember(alpha, "beta").register()


@pytest.fixture
def shared(alpha: Node, beta: MeshMember) -> str:
    """A project that beta told of, and that alpha has joined."""
    project_id = str(uuid4())
    beta.project(project_id)
    repo = {"name": "alpha", "role": "service", "language": "python"}
    alpha.call("cacp/project/addRepo", key=alpha.operator, projectId=project_id, repo=repo)
    alpha.call("cacp/project/join", projectId=project_id, repoName="alpha")
    return project_id


@pytest.fixture
def ann(alpha: Node) -> MailAgent:
    return agent(alpha, "ann")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[InProcessNode]:
    with InProcessNode(tmp_path) as desk:
        yield desk
