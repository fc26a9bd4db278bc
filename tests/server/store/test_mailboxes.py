"""Boxes and deliveries (acp-canonical §9, §12.5)."""

import orjson
import pytest

from server.store import keys, mail_outbox, mailboxes, messages
from server.store.connection import Connection
from server.store.mailboxes import Mailbox
from server.store.sql import SQL
from tests.server.store.test_messages import AT, LATER, MESSAGE

ANNA, BERT = "aid://x/a", "aid://x/b"


def fill(db: Connection, count: int) -> None:
    for number in range(1, count + 1):
        messages.insert(db, MESSAGE._replace(id=f"m{number:06d}"), 15, "t")
        mailboxes.put(db, f"m{number:06d}", BERT, AT)


def test_a_box_numbers_what_comes_in_without_gaps(db: Connection) -> None:
    fill(db, 3)
    letters = mailboxes.all_(db, BERT, 0, 10)
    assert [letter.seq for letter in letters] == [1, 2, 3]
    assert mailboxes.box(db, BERT) == Mailbox(3)
    assert mailboxes.box(db, ANNA) is None


def test_a_held_message_is_in_no_box(db: Connection) -> None:
    messages.insert(db, MESSAGE, 15, "t")
    mailboxes.hold(db, "m1", BERT)
    assert mailboxes.unread(db, BERT, 0, AT, 10) == []
    mailboxes.put_held(db, "m1", BERT, AT)
    assert [one.message.id for one in mailboxes.unread(db, BERT, 0, AT, 10)] == ["m1"]
    assert mailboxes.unread_heads(db, BERT, AT, 10) == {"m1": "normal"}
    assert mailboxes.unread_heads(db, BERT, AT, 0) == {}


def test_what_is_read_is_listed_no_more(db: Connection) -> None:
    fill(db, 2)
    mailboxes.put_delivery(db, "m000001", BERT, "delivered", AT)
    mailboxes.put_delivery(db, "m000001", BERT, "read", LATER)
    mailboxes.count(db, BERT, read=1)
    found = mailboxes.delivery(db, "m000001", BERT)
    assert found is not None
    assert (found.status, found.delivered_at, found.read_at) == ("read", AT, LATER)
    assert [one.seq for one in mailboxes.unread(db, BERT, 0, AT, 10)] == [2]
    assert Mailbox(2, read=1).counts()["unread"] == 1


def test_a_box_tells_who_vouches_for_each_message(db: Connection) -> None:
    fill(db, 2)
    mail_outbox.put_source(db, "m000002", "aid://far/node@1.0.0")
    for letters in (mailboxes.unread(db, BERT, 0, AT, 10), mailboxes.all_(db, BERT, 0, 10)):
        assert [letter.source for letter in letters] == [None, "aid://far/node"]
        assert letters[1].message == MESSAGE._replace(id="m000002")


@pytest.mark.sqlite
def test_a_page_of_a_large_box_is_found_by_its_index(db: Connection) -> None:
    """Issue: 50 of 100,000 as fast as of 100."""
    for query in (SQL.unread_box, SQL.whole_box):
        given = {"address": BERT, "after": 5, "now": AT, "urgent": False, "limit": 50}
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {query.sql}", given)]
        assert plan[0].startswith("SEARCH d USING INDEX delivery_"), plan
        assert "box_seq>?" in plan[0]
        assert not any("TEMP B-TREE" in step or "SCAN mail_sources" in step for step in plan)


def test_the_registry_of_what_was_processed(db: Connection) -> None:
    assert not mailboxes.is_processed(db, BERT, "m1")
    mailboxes.put_processed(db, BERT, "m1", AT)
    mailboxes.put_processed(db, BERT, "m1", LATER)
    assert mailboxes.is_processed(db, BERT, "m1")
    assert not mailboxes.is_processed(db, ANNA, "m1")


def test_everyone_is_who_holds_a_key(db: Connection) -> None:
    keys.add(db, keys.new_key(), agent_id="aid://x/a@1.0.0", repo="r", now=1)
    keys.add(db, keys.new_key(), agent_id="aid://x/a@2.0.0", repo="r", now=1)
    keys.add(db, keys.new_key(), agent_id="aid://x/p@1.0.0", repo="r", trust="known", now=1)
    gone = keys.add(db, keys.new_key(), agent_id="aid://x/gone@1.0.0", repo="r", now=1)
    assert gone is not None
    keys.revoke(db, gone, now=2)
    assert mailboxes.everyone(db) == [ANNA]
    assert mailboxes.is_known(db, ANNA)
    assert not mailboxes.is_known(db, "aid://x/gone")


def test_dead_letters_are_the_senders_business(db: Connection) -> None:
    fill(db, 2)
    mailboxes.put_delivery(db, "m000001", BERT, "expired", AT, "late")
    ((place, letter),) = mailboxes.dead(db, ANNA, human=False, after=0, limit=10)
    assert (letter["channel"], letter["message"]["id"]) == ("inbox", "m000001")
    assert (letter["receipt"]["status"], letter["receipt"]["error"]) == ("expired", "late")
    assert mailboxes.dead(db, ANNA, human=False, after=place, limit=10) == []
    assert mailboxes.dead(db, BERT, human=False, after=0, limit=10) == []
    assert mailboxes.dead(db, BERT, human=True, after=0, limit=10) == []
    db.execute("UPDATE messages SET priority = 'critical' WHERE id = 'm000001'")
    assert len(mailboxes.dead(db, BERT, human=True, after=0, limit=10)) == 1


def test_dead_letters_outlive_their_messages(db: Connection) -> None:
    fill(db, 3)
    mailboxes.put_delivery(db, "m000001", BERT, "expired", AT, "late")
    mailboxes.put_delivery(db, "m000003", BERT, "failed", AT, "gone")
    assert mailboxes.count_dead(db) == {"expired": 1, "failed": 1, "archived": 0}
    for number in (1, 2):
        # As releases wrote it that kept what is absent as null.
        absent = {"deliveredAt": None, "readAt": None, "error": None}
        known = mailboxes.deliveries(db, f"m00000{number}")
        told = [absent | mailboxes.receipt(one) for one in known]
        document = orjson.dumps({"message": {"id": f"m00000{number}"}, "receipts": told})
        messages.archive(db, f"m00000{number}", document, AT, sender=ANNA)
    assert messages.archived(db, "m000002") == {"message": {"id": "m000002"}, "receipts": told}
    assert messages.archived(db, "m000003") is None
    assert mailboxes.count_dead(db) == {"failed": 1, "archived": 1}
    found = mailboxes.dead(db, ANNA, human=False, after=0, limit=10)
    assert [letter["message"]["id"] for _, letter in found] == ["m000001", "m000003"]
    assert [letter["receipt"] for _, letter in found] == [
        {"recipient": BERT, "status": "expired", "error": "late"},
        {"recipient": BERT, "status": "failed", "error": "gone"},
    ]
    assert mailboxes.dead(db, ANNA, human=False, after=0, limit=1) == found[:1]
    assert mailboxes.dead(db, BERT, human=True, after=0, limit=10) == []
