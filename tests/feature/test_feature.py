"""A whole feature, by agents that only follow what tools tell them: the MCP SDK's client in this
process."""

from contextlib import ExitStack
from pathlib import Path

from tests.feature.hosts import SdkAgent
from tests.feature.story import play
from tests.support.mesh import Mesh

AGENTS = (SdkAgent, SdkAgent, SdkAgent)


def test_a_feature_at_one_node(tmp_path: Path) -> None:
    with ExitStack() as stack:
        node = Mesh(tmp_path, stack).add("ops")
        play([node, node, node], AGENTS)


def test_a_feature_over_two_nodes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        mesh = Mesh(tmp_path, stack)
        here = mesh.add("here")
        there = mesh.add("there", here)
        play([here, there, there], AGENTS)
