"""Where a message goes (acp-canonical §10)."""

import pytest

from server.domain.errors import NotFound
from server.methods.acp import route
from server.store import mail_outbox, mesh, peers
from server.store.mail_outbox import StoredDirectory
from tests.server.methods.acp.office import ANNA, BERT, START, Office

BETA, GAMMA = "aid://example.com/beta@1.0.0", "aid://example.com/gamma@1.0.0"
FOREIGN = "peer-7"


@pytest.fixture
def office(office: Office) -> Office:
    """Beta, where Zoe lives, takes mail; gamma, where Yan lives, is a peer that does not yet."""
    for node in (BETA, GAMMA):
        peers.put(office.db, node, "http://127.0.0.1:1", "r", "verified", START)
        peers.put_keys(office.db, node, "secret", "id")
        mesh.pin(office.db, node, "key")
    peers.put(office.db, FOREIGN, "http://127.0.0.1:2", "r", "unkeyed", START)
    mail_outbox.put_directory(office.db, BETA, StoredDirectory(1, "e", "{}"))
    for agent, node in (("zoe", BETA), ("yan", GAMMA)):
        mail_outbox.list_agent(office.db, agent, node)
        mesh.put_home(office.db, agent, node)
    return office


def test_everyone_is_who_is_here_and_at_peers_that_take_mail(office: Office) -> None:
    found = route.places(office.context(), ["*"], "aid://example.com/anna")
    assert found == {
        "aid://example.com/bert": None,
        "aid://example.com/beta": "aid://example.com/beta",
        "aid://example.com/carl": None,
        "aid://example.com/node": None,
        "zoe": "aid://example.com/beta",
    }


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("yan", "no_mailbox"),
        (GAMMA, "no_mailbox"),
        (FOREIGN, "no_mailbox"),
        ("nobody", "unknown_recipient"),
    ],
)
def test_who_can_not_be_reached_is_refused_at_once(office: Office, agent: str, reason: str) -> None:
    with pytest.raises(NotFound) as refused:
        route.places(office.context(), [BERT, agent], ANNA)
    assert (refused.value.data["reason"], refused.value.data.get("path", "to.1")) == (
        reason,
        "to.1",
    )
    assert office.rows("SELECT * FROM messages") == []


def test_who_has_a_key_has_a_box_whoever_registered_its_name(office: Office) -> None:
    """Nobody takes an agent's mail from it by registering first."""
    peers.put(office.db, BERT, "http://127.0.0.1:3", "r", "unkeyed", START)
    found = route.places(office.context(), [BERT], ANNA)
    assert found == {"aid://example.com/bert": None}
    everyone = route.places(office.context(), ["*"], "aid://example.com/anna")
    assert "aid://example.com/bert" in everyone


def test_a_message_is_owed_to_the_home_of_its_recipient(office: Office) -> None:
    message_id = office.post(to=[BERT, "zoe"])
    assert office.rows("SELECT node, kind, message_id FROM mail_out") == [
        ("aid://example.com/beta", "message", message_id)
    ]
    assert mail_outbox.waiting(office.db, message_id, "aid://example.com/beta") == ["zoe"]
    assert not route.is_out_of_hand(office.context(), message_id, "zoe")
    held = office.post(to=["zoe"], policy={"human_gate": "required"})
    assert office.rows("SELECT 1 FROM mail_out WHERE message_id = ?", held) == []
