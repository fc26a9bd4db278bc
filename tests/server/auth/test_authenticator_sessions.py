"""Who calls in a session of the page: the holder of the key that began it."""

import pytest

from server.auth.authenticator import Authenticator
from server.domain.errors import Forbidden, Unauthenticated
from server.settings import Settings
from server.store import keys
from tests.server.auth.test_authenticator import HOST, Node, node, path

__all__ = ["node", "path"]


def test_a_session_is_the_key_that_began_it(node: Node) -> None:
    """It shows no key any more, but its hash."""
    key = node.key("aid://example.com/hash", human=True).removeprefix(b"Bearer ")
    hashed = keys.hash_of(key)
    authenticator = Authenticator(Settings(), node.secret)
    caller = authenticator.identify_by_hash(node.db, hashed, HOST, None)
    assert (caller.agent_id, caller.via, caller.human) == ("aid://example.com/hash", "key", True)
    assert authenticator.identify_by_hash(node.db, hashed, HOST, "127.0.0.1").on_this_machine
    narrow = Authenticator(Settings(allowed_hosts=("cacp.example",)), node.secret)
    with pytest.raises(Forbidden, match="not an allowed host"):
        narrow.identify_by_hash(node.db, hashed, {b"host": b"evil.example"}, None)
    (key_id,) = (entry.key_id for entry in keys.every(node.db) if entry.agent_id.endswith("/hash"))
    keys.revoke(node.db, key_id, now=2)
    with pytest.raises(Unauthenticated) as refusal:
        authenticator.identify_by_hash(node.db, hashed, HOST, None)
    assert refusal.value.data["reason"] == "revoked_key"
    with pytest.raises(Unauthenticated):
        authenticator.identify_by_hash(node.db, "0" * 64, HOST, None)


def test_the_operators_session_ends_with_its_key(node: Node) -> None:
    key = keys.new_operator_key()
    keys.put_operator(node.db, key)
    authenticator = Authenticator(Settings(), node.secret)
    hashed = keys.hash_of(key.encode())
    assert authenticator.identify_by_hash(node.db, hashed, HOST, None).operator
    keys.drop_operator(node.db)
    with pytest.raises(Unauthenticated):
        authenticator.identify_by_hash(node.db, hashed, HOST, None)
