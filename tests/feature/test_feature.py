"""A whole feature, by agents that only follow what tools and hooks tell them.

The agents are the MCP SDK's client in this process; `test_real_agents.py` plays the same with
Claude Code and opencode.
"""

from contextlib import ExitStack
from pathlib import Path

from tests.feature.hosts import HookedAgent, SdkAgent
from tests.feature.story import play
from tests.support.mesh import Mesh

AGENTS = (HookedAgent, SdkAgent, SdkAgent)


def test_a_feature_at_one_node(tmp_path: Path) -> None:
    with ExitStack() as stack:
        node = Mesh(tmp_path, stack).add("ops")
        hooked, *others = play([node, node, node], AGENTS)
        assert hooked.shown
        assert not any(model.shown for model in others)


def test_a_feature_over_two_nodes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        mesh = Mesh(tmp_path, stack)
        here = mesh.add("here")
        there = mesh.add("there", here)
        play([here, there, there], AGENTS)
