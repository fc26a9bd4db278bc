"""What the node knows of other nodes, on disk (design §6)."""

from server.store import keys, mesh
from server.store.connection import Connection
from server.store.mesh import NodeKey, Wanted

ALPHA = "aid://example.com/alpha@1.0.0"


def test_a_key_is_pinned_for_every_version_of_an_agent(db: Connection) -> None:
    mesh.pin(db, ALPHA, "introduced", introduced_by="beta")
    mesh.pin(db, ALPHA, "proved")
    mesh.put_home(db, "peer-7", ALPHA)
    assert mesh.node_key(db, ALPHA.replace("1.0.0", "2.0.0")) == NodeKey("proved", None)
    mesh.unpin(db, ALPHA)
    assert (mesh.node_key(db, ALPHA), mesh.home_of(db, "peer-7")) == (None, None)


def test_the_first_home_stays(db: Connection) -> None:
    mesh.put_home(db, "peer-7", ALPHA)
    mesh.put_home(db, "peer-7", "aid://example.com/beta@1.0.0")
    assert mesh.home_of(db, "peer-7") == "aid://example.com/alpha"


def test_an_invite_is_used_once_and_not_after_its_time(db: Connection) -> None:
    invite, code = mesh.invite(db, now=1, expires_at=10)
    assert code == f"{invite}.{mesh.invite_secret(db, invite, 9)}"
    assert mesh.invite_secret(db, invite, 10) is None
    assert mesh.use_invite(db, invite, ALPHA)
    assert not mesh.use_invite(db, invite, ALPHA)
    assert not mesh.revoke_invite(db, invite, now=3), "it is used already"
    assert mesh.invite_secret(db, invite, 9) is None
    [listed] = mesh.invites(db)
    assert (listed.used_by, listed.revoked_at) == (ALPHA, None)
    assert db.execute("SELECT secret FROM invites").fetchall() == [("",)]


def test_a_wanted_peer_keeps_its_invite_and_its_error(db: Connection) -> None:
    mesh.want(db, "http://a", "inv_1.x")
    mesh.want_failed(db, "http://a", "down")
    assert mesh.wanted(db) == [Wanted("http://a", "inv_1.x", "down")]
    mesh.want(db, "http://a")
    assert mesh.wanted(db) == [Wanted("http://a", "inv_1.x", None)]
    assert mesh.want_done(db, "http://a")
    assert mesh.wanted(db) == []


def test_an_agent_is_known_by_its_key_or_by_its_nodes(db: Connection) -> None:
    own = "aid://example.com/own@1.0.0"
    assert not mesh.is_known_by_key(db, ALPHA, own)
    mesh.pin(db, ALPHA, "its public key", introduced_by="beta")
    assert mesh.is_known_by_key(db, ALPHA.replace("1.0.0", "1.4.0"), own)
    keys.add(db, keys.new_key(), agent_id="b", repo="r", now=1)
    assert mesh.is_known_by_key(db, "b", own)
    for agent, home, known in (("c", own, False), ("d", ALPHA, True)):
        mesh.put_home(db, agent, home)
        assert mesh.is_known_by_key(db, agent, own) == known
