"""Which node an agent is at home at (design §6, Authorship)."""

from dataclasses import replace
from pathlib import Path

import pytest

from peers.signing import SigningKey
from schemas.acp_mesh import Directory, SignedDirectory
from schemas.mesh import Signature
from server.domain.authorship import statement
from server.domain.errors import Forbidden
from server.methods import homes
from server.store import keys, mesh, peers, posting
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
    assert homes.is_stale(ctx)
    homes.take(ctx, BETA, listing(BETA, 1, BERT))
    homes.publish(ctx)
    assert not homes.is_stale(ctx)
    own = homes.own_directory(ctx)
    assert own is not None
    assert BETA not in own.directory.agents
    assert NODE in own.directory.agents
    assert "aid://example.com/bert" in own.directory.agents, "whoever else names him: he lives here"
    for row in keys.every(office.db):
        if row.agent_id == ANNA:
            keys.revoke(office.db, row.key_id, now=1)
    assert homes.is_stale(ctx)
    homes.publish(ctx)
    assert "aid://example.com/anna" not in homes.own_directory(ctx).directory.agents  # type: ignore[union-attr]


def test_a_directory_counts_if_its_node_has_signed_it_and_it_is_newer(office: Office) -> None:
    ctx = office.context()
    with pytest.raises(Forbidden):
        homes.take(ctx, BETA, listing(BETA, 1, "zoe", by=GAMMA))
    with pytest.raises(Forbidden):
        homes.take(ctx, GAMMA, listing(BETA, 1, "zoe"))
    assert homes.take(ctx, BETA, listing(BETA, 2, "zoe"))
    assert not homes.take(ctx, BETA, listing(BETA, 2, "yan"))
    assert not homes.take(ctx, BETA, listing(BETA, 1))
    assert homes.home_of(ctx, "zoe") == BETA


def test_a_directory_is_newer_than_the_one_before_though_the_clock_went_back(
    office: Office,
) -> None:
    ctx = office.context()
    homes.publish(ctx)
    first = homes.own_directory(ctx)
    homes.publish(replace(ctx, stamp=ctx.stamp - 3_600_000_000))
    second = homes.own_directory(ctx)
    assert first is not None
    assert second is not None
    assert second.directory.stamp == first.directory.stamp + 1


def test_a_home_moves_only_when_it_is_given_up(office: Office) -> None:
    ctx = office.context()
    homes.take(ctx, BETA, listing(BETA, 1, "zoe", GAMMA, NODE))
    homes.take(ctx, GAMMA, listing(GAMMA, 1, "zoe"))
    assert homes.home_of(ctx, "zoe") == BETA
    assert homes.home_of(ctx, GAMMA) == GAMMA, "a node is nobody's agent"
    assert homes.home_of(ctx, NODE) == NODE
    homes.take(ctx, BETA, listing(BETA, 2))
    assert homes.home_of(ctx, "zoe") == GAMMA
    # Nobody else names her: what she said before is still vouched for by the same node.
    homes.take(ctx, GAMMA, listing(GAMMA, 2))
    assert homes.home_of(ctx, "zoe") == GAMMA


def test_a_node_that_came_back_from_a_backup_is_told_again(office: Office) -> None:
    """Design §4: its epoch is new, and what it had confirmed it may lack."""
    ctx = office.context()
    peers.put(office.db, BETA, "http://127.0.0.1:1", "r", "verified", 1)
    peers.put_keys(office.db, BETA, "secret", "id")
    homes.take(ctx, BETA, listing(BETA, 1, "zoe"))
    sent = office.post(to=["zoe"])
    posting.offer(office.db, sent, BETA)
    posting.said(office.db, posting.owed(office.db, BETA, 10))
    homes.take(ctx, BETA, listing(BETA, 2, "zoe"))
    assert posting.owed(office.db, BETA, 10) == []
    homes.take(ctx, BETA, listing(BETA, 3, "zoe", epoch="another"))
    (again,) = posting.owed(office.db, BETA, 10)
    assert (again.kind, again.message_id) == ("message", sent)
    homes.publish(ctx)
    assert not homes.is_stale(ctx)
    office.db.execute("UPDATE meta SET value = 'restored' WHERE name = 'epoch'")
    assert homes.is_stale(ctx)


def test_an_agent_moves_here_once_its_home_has_revoked_its_keys(office: Office) -> None:
    """Whether its key here was made before or after."""
    ctx = office.context()
    zoe, key = "aid://example.com/zoe", keys.new_key()
    homes.take(ctx, BETA, listing(BETA, 1, zoe))
    homes.publish(ctx)
    keys.add(office.db, key, agent_id=zoe, repo="mail", now=START)
    assert not homes.is_stale(ctx)
    assert homes.home_of(ctx, zoe) == BETA
    homes.take(ctx, BETA, listing(BETA, 2))
    assert homes.is_stale(ctx)
    homes.publish(ctx)
    assert homes.home_of(ctx, zoe) == NODE
    assert not homes.is_stale(ctx)
    homes.take(ctx, GAMMA, listing(GAMMA, 1, zoe))
    assert homes.home_of(ctx, zoe) == NODE, "who holds it keeps it"
