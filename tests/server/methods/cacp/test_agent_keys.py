"""cacp/agent/revokeKeys: who may end an agent's access, and what ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.domain.errors import Conflict, Forbidden, NotFound
from server.methods import METHODS
from server.store import keys
from tests.support.in_process_node import ANA, BEN, HUMAN, InProcessNode

REVOKE = "cacp/agent/revokeKeys"
GROUP = "aid://example.com/group"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[InProcessNode]:
    with InProcessNode(tmp_path) as node:
        yield node


def active(node: InProcessNode, agent: str) -> int:
    held = [key for key in keys.every(node.db) if key.agent_id.startswith(agent)]
    return sum(key.revoked_at is None for key in held)


def test_a_person_ends_all_keys_of_an_agent_in_any_version(node: InProcessNode) -> None:
    keys.add(node.db, keys.new_key(), agent_id=f"{BEN}@2.0.0", repo="r", now=1)
    result = node.call(REVOKE, HUMAN, human=True, agentId=BEN)
    assert (result["agentId"], result["status"], len(result["keyIds"])) == (BEN, "revoked", 2)
    assert (active(node, BEN), active(node, ANA)) == (0, 1)
    assert node.rows("SELECT actor, entity, entity_id, outcome FROM changes") == [
        (HUMAN, "agent", BEN, "keys_revoked")
    ]
    with pytest.raises(Conflict) as refusal:
        node.call(REVOKE, HUMAN, human=True, agentId=BEN)
    assert refusal.value.data["reason"] == "no_active_key"


def test_agents_revoke_nothing_not_even_their_own(node: InProcessNode) -> None:
    for agent in (ANA, BEN):
        with pytest.raises(Forbidden) as refusal:
            node.call(REVOKE, agent, agentId=ANA)
        assert refusal.value.data["reason"] == "not_human"
    assert active(node, ANA) == 1


def test_only_the_operator_revokes_people(node: InProcessNode) -> None:
    keys.add(node.db, keys.new_key(), agent_id=GROUP, repo="", human=True, now=1)
    with pytest.raises(Forbidden) as refusal:
        node.call(REVOKE, HUMAN, human=True, agentId=GROUP)
    assert refusal.value.data["reason"] == "operator_needed"
    assert len(node.call(REVOKE, ANA, operator=True, agentId=GROUP)["keyIds"]) == 1


def test_keys_of_peers_stay(node: InProcessNode) -> None:
    keys.add(node.db, keys.new_key(), agent_id=GROUP, repo="r", trust="peer", now=1)
    with pytest.raises(Conflict):
        node.call(REVOKE, HUMAN, human=True, agentId=GROUP)
    assert active(node, GROUP) == 1


def test_an_agent_without_keys_is_named(node: InProcessNode) -> None:
    with pytest.raises(NotFound, match="nobody has no key"):
        node.call(REVOKE, HUMAN, human=True, agentId="aid://example.com/nobody")


def test_a_key_that_is_limited_to_projects_is_refused_before() -> None:
    """`reach` is the node: `tests/server/methods/test_base_scope.py` calls it so."""
    assert METHODS[REVOKE].reach == "node"
