"""What the runner needs of a subject: each transport fulfils it."""

import pytest

from comply.agent import StdioTarget
from comply.command import CommandTarget
from comply.http import HttpTarget
from comply.settings import AgentServer
from comply.target import Target
from tests.comply.targets import Scripted

TARGETS: list[Target] = [
    HttpTarget("http://127.0.0.1:8080"),
    CommandTarget("parser"),
    StdioTarget("agent", AgentServer(command="agent")),
    Scripted(),
]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
def test_a_target_has_a_name_and_no_facts_before_it_has_learnt_any(target: Target) -> None:
    assert target.name
    assert target.facts == {}
