"""Which node an agent is at home at (design §7)."""

from dataclasses import replace
from pathlib import Path

import pytest

from peers.signing import SigningKey
from schemas.acp_mesh import Directory, SignedDirectory
from schemas.mesh import Signature
from server.domain.authorship import statement
from server.domain.errors import Forbidden
from server.methods.sync import agent_homes
from server.store import keys, mail_outbox, mesh, peers
from tests.server.methods.acp.office import ANNA, BERT, START, Office

BETA, GAMMA = "aid://example.com/beta", "aid://example.com/gamma"
NODE = "aid://example.com/node"
SIGNING = {BETA: SigningKey(b"b" * 32), GAMMA: SigningKey(b"g" * 32)}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = Office(tmp_path / "cacp.db")
    for node, key in SIGNING.items():
        mesh.pin(office.db, node, key.public)
    return office


def listing(
    node: str, stamp: int, *agents: str, by: str | None = None, epoch: str = "e"
) -> SignedDirectory:
    directory = Directory(agents=list(agents), stamp=stamp, epoch=epoch)
    said = statement("directory", node, directory.model_dump())
    value = SIGNING[by or node].sign(said)
    return SignedDirectory(directory=directory, signature=Signature(node=node, value=value))


def test_a_node_lists_itself_and_those_who_live_there(office: Office) -> None:
    ctx = office.context()
    assert agent_homes.is_stale(ctx)
    agent_homes.take(ctx, BETA, listing(BETA, 1, BERT))
    agent_homes.publish(ctx)
    assert not agent_homes.is_stale(ctx)
    own = agent_homes.own_directory(ctx)
    assert own is not None
    assert BETA not in own.directory.agents
    assert NODE in own.directory.agents
    assert "aid://example.com/bert" in own.directory.agents, "whoever else names him: he lives here"
    for row in keys.every(office.db):
        if row.agent_id == ANNA:
            keys.revoke(office.db, row.key_id, now=1)
    assert agent_homes.is_stale(ctx)
    agent_homes.publish(ctx)
    assert "aid://example.com/anna" not in agent_homes.own_directory(ctx).directory.agents  # type: ignore[union-attr]


def test_a_directory_counts_if_its_node_has_signed_it_and_it_is_newer(office: Office) -> None:
    ctx = office.context()
    with pytest.raises(Forbidden):
        agent_homes.take(ctx, BETA, listing(BETA, 1, "zoe", by=GAMMA))
    with pytest.raises(Forbidden):
        agent_homes.take(ctx, GAMMA, listing(BETA, 1, "zoe"))
    assert agent_homes.take(ctx, BETA, listing(BETA, 2, "zoe"))
    assert not agent_homes.take(ctx, BETA, listing(BETA, 2, "yan"))
    assert not agent_homes.take(ctx, BETA, listing(BETA, 1))
    assert agent_homes.home_of(ctx, "zoe") == BETA


def test_a_directory_is_newer_than_the_one_before_though_the_clock_went_back(
    office: Office,
) -> None:
    ctx = office.context()
    agent_homes.publish(ctx)
    first = agent_homes.own_directory(ctx)
    agent_homes.publish(replace(ctx, stamp=ctx.stamp - 3_600_000_000))
    second = agent_homes.own_directory(ctx)
    assert first is not None
    assert second is not None
    assert second.directory.stamp == first.directory.stamp + 1


def test_a_home_moves_only_when_it_is_given_up(office: Office) -> None:
    ctx = office.context()
    agent_homes.take(ctx, BETA, listing(BETA, 1, "zoe", GAMMA, NODE))
    agent_homes.take(ctx, GAMMA, listing(GAMMA, 1, "zoe"))
    assert agent_homes.home_of(ctx, "zoe") == BETA
    assert agent_homes.home_of(ctx, GAMMA) == GAMMA, "a node is nobody's agent"
    assert agent_homes.home_of(ctx, NODE) == NODE
    agent_homes.take(ctx, BETA, listing(BETA, 2))
    assert agent_homes.home_of(ctx, "zoe") == GAMMA
    # Nobody else names her: what she said before is still vouched for by the same node.
    agent_homes.take(ctx, GAMMA, listing(GAMMA, 2))
    assert agent_homes.home_of(ctx, "zoe") == GAMMA


def test_a_node_that_came_back_from_a_backup_is_told_again(office: Office) -> None:
    """Design §3: its epoch is new, and what it had confirmed it may lack."""
    ctx = office.context()
    peers.put(office.db, BETA, "http://127.0.0.1:1", "r", "verified", 1)
    peers.put_keys(office.db, BETA, "secret", "id")
    agent_homes.take(ctx, BETA, listing(BETA, 1, "zoe"))
    sent = office.post(to=["zoe"])
    mail_outbox.offer(office.db, sent, BETA)
    mail_outbox.confirm(office.db, mail_outbox.entries(office.db, BETA, 10))
    agent_homes.take(ctx, BETA, listing(BETA, 2, "zoe"))
    assert mail_outbox.entries(office.db, BETA, 10) == []
    agent_homes.take(ctx, BETA, listing(BETA, 3, "zoe", epoch="another"))
    (again,) = mail_outbox.entries(office.db, BETA, 10)
    assert (again.kind, again.message_id) == ("message", sent)
    agent_homes.publish(ctx)
    assert not agent_homes.is_stale(ctx)
    office.db.execute("UPDATE meta SET value = 'restored' WHERE name = 'epoch'")
    assert agent_homes.is_stale(ctx)


def test_an_agent_moves_here_once_its_home_has_revoked_its_keys(office: Office) -> None:
    """Whether its key here was made before or after."""
    ctx = office.context()
    zoe, key = "aid://example.com/zoe", keys.new_key()
    agent_homes.take(ctx, BETA, listing(BETA, 1, zoe))
    agent_homes.publish(ctx)
    keys.add(office.db, key, agent_id=zoe, repo="mail", now=START)
    assert not agent_homes.is_stale(ctx)
    assert agent_homes.home_of(ctx, zoe) == BETA
    agent_homes.take(ctx, BETA, listing(BETA, 2))
    assert agent_homes.is_stale(ctx)
    agent_homes.publish(ctx)
    assert agent_homes.home_of(ctx, zoe) == NODE
    assert not agent_homes.is_stale(ctx)
    agent_homes.take(ctx, GAMMA, listing(GAMMA, 1, zoe))
    assert agent_homes.home_of(ctx, zoe) == NODE, "who holds it keeps it"
