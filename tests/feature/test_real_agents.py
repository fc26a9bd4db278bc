"""The story of `test_feature.py` with the programs that people use: Claude Code and opencode from
npm, connected by `cacp connect`. Only the API of their models is a stand-in. `make comply` runs it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from comply.model.server import Reply
from tests.feature.binaries import ClaudeCode, Opencode, RealAgent
from tests.feature.sheet import Sheet
from tests.feature.stand_in import StandIn
from tests.feature.story import Hire, play
from tests.support.mesh import Mesh
from tests.support.node import Node
from tests.support.npm import agent_commands, needs_real_agents

pytestmark = needs_real_agents
AGENTS = (ClaudeCode, Opencode, ClaudeCode)


@pytest.fixture(scope="module")
def programs() -> Path:
    return agent_commands()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def hires(tmp_path: Path, programs: Path, stack: ExitStack) -> list[Hire]:
    def hire(agent: type[RealAgent]) -> Hire:
        def with_model(sheet: Sheet, node: Node, reply: Reply) -> RealAgent:
            api = stack.enter_context(StandIn(reply, tmp_path / f"{sheet.repo}.jsonl"))
            return agent(sheet, node, api.url, tmp_path, programs)

        return with_model

    return list(map(hire, AGENTS))


def test_a_feature_at_one_node(tmp_path: Path, stack: ExitStack, hires: list[Hire]) -> None:
    node = Mesh(tmp_path, stack).add("ops")
    models = play([node, node, node], hires)
    assert all(model.shown for model in models)


def test_a_feature_over_two_nodes(tmp_path: Path, stack: ExitStack, hires: list[Hire]) -> None:
    mesh = Mesh(tmp_path, stack)
    here = mesh.add("here")
    there = mesh.add("there", here)
    play([here, there, there], hires)
