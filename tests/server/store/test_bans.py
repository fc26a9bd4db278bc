"""Bans on a real file."""

import pytest

from server.domain.bans import BanStatement, TrustedBans
from server.domain.errors import Forbidden
from server.store import bans, keys, mesh, peers
from server.store.connection import Connection

OWN, ANN = "aid://x/own", "aid://x/ann"
MAL = "aid://x/mal@1.0.0"
HEEDS = TrustedBans.of(OWN, [ANN])
BAN = BanStatement(OWN, "aid://x/mal", "their key", True, 5, "it lies")


def peer(db: Connection, agent_id: str, public_key: str) -> str:
    """A peer that has exchanged keys; the one that it calls with."""
    peers.put(db, agent_id, "http://127.0.0.1:9", "r", "verified", 1)
    mesh.pin(db, agent_id, public_key)
    key = keys.new_key()
    key_id = keys.add(db, key, agent_id=agent_id, repo="r", trust="peer", now=1)
    assert key_id is not None
    peers.put_keys(db, agent_id, "s", key_id)
    return key


def test_a_word_takes_the_place_of_the_one_before(db: Connection) -> None:
    bans.put(db, BAN)
    assert bans.every(db) == bans.statements_by(db, f"{OWN}@3.0.0") == [BAN]
    bans.put(db, BAN._replace(banned=False, stamp=6))
    assert bans.find(db, HEEDS, MAL) is None


@pytest.mark.parametrize(
    ("agent", "key", "banned"),
    [
        (MAL, None, True),
        ("aid://x/mal@9.0.0", "a new key", True),
        ("aid://x/new-name@1.0.0", "their key", True),
        ("aid://x/new-name@1.0.0", "a new key", False),
        ("aid://x/new-name@1.0.0", None, False),
    ],
)
def test_a_name_and_a_key_are_banned_each(
    db: Connection, agent: str, key: str | None, banned: bool
) -> None:
    bans.put(db, BAN)
    assert (bans.find(db, HEEDS, agent, key) is not None) == banned
    if not banned:
        return bans.check(db, HEEDS, agent, key)
    with pytest.raises(Forbidden, match="peers unban aid://x/mal") as refusal:
        bans.check(db, HEEDS, agent, key)
    assert refusal.value.data["reason"] == "banned"
    assert refusal.value.data["bannedBy"] == OWN
    return None


def test_enforcing_ends_all_that_is_exchanged_and_nothing_else(db: Connection) -> None:
    key, other = peer(db, MAL, "their key"), peer(db, "aid://x/other", "another")
    alias = peer(db, "aid://x/alias", "their key")
    made = keys.new_key()
    keys.add(db, made, agent_id="aid://x/mal@2.0.0", repo="r", trust="peer", now=1)
    mesh.put_home(db, "aid://x/agent", MAL)
    assert not bans.is_due(db, HEEDS)
    bans.put(db, BAN)
    assert bans.is_due(db, HEEDS)
    assert sorted(bans.enforce(db, HEEDS, 7)) == ["aid://x/alias", MAL]
    assert not bans.is_due(db, HEEDS)
    assert [one.agent_id for one in peers.every(db)] == ["aid://x/other"]
    for secret, revoked in ((key, 7), (alias, 7), (made, 7), (other, None)):
        holder = keys.holder(db, keys.hash_of(secret.encode()))
        assert holder is not None
        assert holder.revoked_at == revoked
    pinned = mesh.node_key(db, MAL)
    assert pinned is not None
    assert pinned.public_key == "their key", "what it wrote before can be checked"
    assert mesh.home_of(db, "aid://x/agent") is None


def test_a_heeded_node_that_is_banned_here_bans_nobody(db: Connection) -> None:
    bans.put(db, BAN._replace(by_node=ANN))
    assert bans.find(db, HEEDS, MAL) is not None
    bans.put(db, BAN._replace(agent=ANN, public_key=None))
    assert bans.find(db, HEEDS, MAL) is None
