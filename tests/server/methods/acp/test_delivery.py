"""What happens to a message once it is written (acp-canonical §4.1)."""

from server.methods.acp import delivery
from server.store import mailboxes, messages
from server.store.messages import MessageRow
from tests.server.methods.acp.office import BERT, CARL, Office

BOX = "aid://example.com/bert"


def message(office: Office, message_id: str) -> MessageRow:
    found = messages.find(office.db, message_id)
    assert found is not None
    return found


def go(office: Office, message_id: str, recipient: str, to: str) -> bool:
    box = mailboxes.delivery(office.db, message_id, recipient)
    assert box is not None
    return delivery.advance(office.context(), message(office, message_id), box, to)  # type: ignore[arg-type]


def test_a_status_never_goes_back(office: Office) -> None:
    sent = office.post()
    assert go(office, sent, BOX, "read")
    for back in ("pending", "delivered", "expired", "failed", "read"):
        assert not go(office, sent, BOX, back)
    assert message(office, sent).status == "read"
    assert mailboxes.box(office.db, BOX) == mailboxes.Mailbox(1, read=1)


def test_what_is_delivered_fails_no_more(office: Office) -> None:
    sent = office.post()
    assert go(office, sent, BOX, "delivered")
    assert not go(office, sent, BOX, "failed")


def test_giving_up_leaves_alone_who_has_read(office: Office) -> None:
    sent = office.post(to=[BERT, CARL])
    go(office, sent, BOX, "read")
    delivery.give_up(office.context(), message(office, sent), "expired", "late")
    found = {
        one.recipient: (one.status, one.error) for one in mailboxes.deliveries(office.db, sent)
    }
    assert found == {BOX: ("read", None), "aid://example.com/carl": ("expired", "late")}
    assert message(office, sent).status == "read"


def test_each_step_of_the_whole_is_a_change(office: Office) -> None:
    """Design §3: every change is in the log."""
    sent = office.post()
    go(office, sent, BOX, "delivered")
    go(office, sent, BOX, "read")
    found = office.rows("SELECT outcome FROM changes WHERE entity_id = ? ORDER BY seq", sent)
    assert found == [("pending",), ("delivered",), ("read",)]
