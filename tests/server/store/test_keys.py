"""Keys on a real file (design §6)."""

import pytest

from server.store import keys
from server.store.connection import Connection
from tests.support.fresh_store import content_of

AGENT = "aid://example.com/backend@1.0.0"


def test_a_key_is_found_by_its_hash_and_kept_nowhere(db: Connection) -> None:
    key = keys.new_key()
    assert keys.PATTERN.fullmatch(key.encode())
    assert keys.add(db, key, agent_id=AGENT, repo="backend", now=1)
    found = keys.holder(db, keys.hash_of(key.encode()))
    assert found == keys.Holder(AGENT, "backend", "verified", None)
    assert key not in repr(content_of(db))


def test_a_key_may_be_for_some_projects(db: Connection) -> None:
    key = keys.new_key()
    keys.add(db, key, agent_id=AGENT, repo="b", projects=["p", "q", "p"], human=True, now=1)
    found = keys.holder(db, keys.hash_of(key.encode()))
    assert found is not None
    assert (found.projects, found.human) == (frozenset({"p", "q"}), True)
    assert [one.projects for one in keys.every(db)] == [frozenset({"p", "q"})]


def test_an_unknown_key_has_no_holder(db: Connection) -> None:
    assert keys.holder(db, keys.hash_of(b"cacp_sk_unknown")) is None


def test_keys_are_listed_in_the_order_they_were_made(db: Connection) -> None:
    late = keys.add(db, keys.new_key(), agent_id=AGENT, repo="b", trust="known", now=2)
    early = keys.add(db, keys.new_key(), agent_id=AGENT, repo="a", now=1)
    assert late
    assert early
    assert keys.every(db) == [
        keys.Key(early, AGENT, "a", "verified", 1, None),
        keys.Key(late, AGENT, "b", "known", 2, None),
    ]


def test_a_revoked_key_stays_revoked(db: Connection) -> None:
    key = keys.new_key()
    key_id = keys.add(db, key, agent_id=AGENT, repo="a", now=1)
    assert key_id
    assert keys.any_active(db)
    assert keys.revoke(db, key_id, now=5)
    assert not keys.revoke(db, key_id, now=6)
    assert keys.add(db, key, agent_id=AGENT, repo="a", now=7) is None
    found = keys.holder(db, keys.hash_of(key.encode()))
    assert found is not None
    assert found.revoked_at == 5
    assert not keys.any_active(db)


def test_an_unknown_id_revokes_nothing(db: Connection) -> None:
    assert not keys.revoke(db, "key_none", now=1)


@pytest.mark.parametrize(
    ("agent_id", "keyed"),
    [
        (AGENT, True),
        ("aid://example.com/backend@2.0.0", True),
        ("aid://example.com/back@1.0.0", False),
        ("aid://example.com/backend-two@1.0.0", False),
        ("aid://example.com/%@1.0.0", False),
        ("", False),
    ],
)
def test_an_agent_is_keyed_in_all_its_versions(db: Connection, agent_id: str, keyed: bool) -> None:
    key_id = keys.add(db, keys.new_key(), agent_id=AGENT, repo="a", now=1)
    assert key_id
    assert keys.is_keyed(db, agent_id) is keyed
    keys.revoke(db, key_id, now=2)
    assert not keys.is_keyed(db, agent_id)
