"""Mail between nodes, as it is kept (acp-canonical §10)."""

from server.store import mail_outbox, mesh
from server.store.connection import Connection
from server.store.mail_outbox import OutboxEntry, StoredDirectory

BETA = "aid://example.com/beta@1.0.0"
GAMMA = "aid://example.com/gamma"


def message(db: Connection, message_id: str) -> None:
    db.execute(
        "INSERT INTO messages (id, from_agent, to_agents_json, type, payload_json, policy_json,"
        " payload_bytes, created_at) VALUES (?, 'a', '[]', 't', '{}', '{}', 2, '2026')",
        (message_id,),
    )


def test_of_the_nodes_that_list_an_agent_the_first_is_known(db: Connection) -> None:
    mail_outbox.put_directory(db, BETA, StoredDirectory(1, "e", "{}"))
    assert mail_outbox.directory(db, "aid://example.com/beta@2.0.0") == StoredDirectory(
        1, "e", "{}"
    )
    for node in (BETA, GAMMA, BETA):
        mail_outbox.list_agent(db, "zoe", node)
    assert mail_outbox.first_to_list(db, "zoe") == "aid://example.com/beta"
    mesh.put_home(db, "zoe", BETA)
    assert mail_outbox.elsewhere(db, GAMMA) == {
        "aid://example.com/beta": "aid://example.com/beta",
        "zoe": "aid://example.com/beta",
    }
    mail_outbox.unlist_agent(db, "zoe", BETA)
    assert mail_outbox.first_to_list(db, "zoe") == GAMMA
    mail_outbox.move_home(db, "zoe", GAMMA)
    assert mail_outbox.speaker(db, "zoe") == GAMMA
    mail_outbox.forget_node(db, BETA)
    assert mail_outbox.directory(db, BETA) is None


def test_a_node_speaks_for_itself_before_all_others(db: Connection) -> None:
    assert mail_outbox.speaker(db, GAMMA) is None
    mesh.put_home(db, GAMMA, BETA)
    mesh.pin(db, GAMMA, "key")
    assert mail_outbox.speaker(db, GAMMA) == GAMMA


def test_what_is_owed_is_said_in_order_and_once(db: Connection) -> None:
    for message_id in ("m1", "m2"):
        message(db, message_id)
        mail_outbox.enqueue(db, GAMMA, "message", message_id)
    first = mail_outbox.entries(db, GAMMA, 10)
    assert [one.message_id for one in first] == ["m1", "m2"]
    # What has changed while it was under way is owed anew, behind the others.
    mail_outbox.enqueue(db, GAMMA, "message", "m1")
    mail_outbox.confirm(db, first)
    assert mail_outbox.entries(db, GAMMA, 10) == [OutboxEntry(first[-1].seq + 1, "message", "m1")]
    assert (mail_outbox.count_entries(db, GAMMA), mail_outbox.count_entries(db, BETA)) == (1, 0)


def test_a_route_is_offered_until_it_is_taken_back(db: Connection) -> None:
    message(db, "m1")
    mail_outbox.put_route(db, "m1", "zoe", GAMMA)
    assert mail_outbox.offer(db, "m1", GAMMA)
    assert not mail_outbox.offer(db, "m1", GAMMA)
    assert mail_outbox.route(db, "m1", "zoe") == mail_outbox.Route(GAMMA, True)
    mail_outbox.withdraw(db, ["m1"], GAMMA)
    assert mail_outbox.route(db, "m1", "zoe") == mail_outbox.Route(GAMMA, False)
    mail_outbox.put_source(db, "m1", BETA)
    assert mail_outbox.source(db, "m1") == "aid://example.com/beta"
    db.execute("DELETE FROM messages")
    assert mail_outbox.route(db, "m1", "zoe") is None
    assert mail_outbox.source(db, "m1") is None
