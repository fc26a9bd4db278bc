"""Project tokens on a real file (design §6)."""

from contextlib import closing

from server.domain.location import Location
from server.store import tokens
from server.store.connection import Connection
from server.store.opening import connect

AGENT = "aid://example.com/backend@1.0.0"


def test_a_token_is_active_until_it_is_revoked(db: Connection) -> None:
    token_id = tokens.add(db, project_id="p", agent_id=AGENT, now=1, expires_at=9)
    assert tokens.is_active(db, token_id)
    assert tokens.revoke(db, token_id, now=2)
    assert not tokens.is_active(db, token_id)
    assert not tokens.revoke(db, token_id, now=3)
    assert tokens.every(db) == [tokens.Token(token_id, "p", AGENT, 1, 9, 2)]


def test_an_unknown_token_is_not_active(db: Connection) -> None:
    assert not tokens.is_active(db, "tok_none")
    assert not tokens.revoke(db, "tok_none", now=1)


def test_the_secret_is_made_once(db: Connection, location: Location) -> None:
    secret = tokens.node_secret(db)
    assert len(secret) == 32
    with closing(connect(location)) as other:
        assert tokens.node_secret(other) == secret
