"""What time does to messages (acp-canonical §4.1, §12.7)."""

import json

from schemas.base import iso
from server.methods.acp import age
from tests.server.methods.acp.office import BERT, CARL, SECOND, START, Office

DAY = 24 * 3600


def statuses(office: Office) -> dict[str, str]:
    return dict(office.rows("SELECT id, status FROM messages"))


def test_what_is_over_expires_and_nothing_else(office: Office) -> None:
    soon = office.post(expires_at=iso(START + 10 * SECOND))
    later = office.post(expires_at=iso(START + 60 * SECOND))
    never = office.post()
    office.at = 30
    assert age.expire(office.context(), 100) == 1
    assert age.expire(office.context(), 100) == 0
    assert statuses(office) == {soon: "expired", later: "pending", never: "pending"}


def test_a_gated_message_expires_too_and_keeps_nobody_waiting(office: Office) -> None:
    office.post(
        thread_id="t",
        sequence=1,
        policy={"human_gate": "required"},
        expires_at=iso(START + 10 * SECOND),
    )
    second = office.post(thread_id="t", sequence=2)
    office.at = 30
    age.expire(office.context(), 100)
    boxed = office.rows("SELECT message_id FROM delivery_log WHERE box_seq IS NOT NULL")
    assert boxed == [(second,)]


def test_what_is_old_moves_to_the_archive_whole(office: Office) -> None:
    """§12.7: after 90 days exported to the archive, then purged."""
    old = office.post(to=[BERT, CARL])
    office.at = 89 * DAY
    assert age.retain(office.context(), 100) == 0
    new = office.post()
    office.at = 91 * DAY
    assert age.retain(office.context(), 100) == 1
    assert age.retain(office.context(), 100) == 0
    assert list(statuses(office)) == [new]
    assert office.rows("SELECT DISTINCT message_id FROM delivery_log") == [(new,)]
    ((message_id, document),) = office.rows("SELECT id, document FROM messages_archive")
    kept = json.loads(document)
    assert (message_id, kept["message"]["id"]) == (old, old)
    assert [one["status"] for one in kept["receipts"]] == ["expired", "expired"]
    assert office.rows("SELECT expired FROM mailboxes ORDER BY address") == [(1,), (1,)]


def test_the_audit_is_kept_for_ever(office: Office) -> None:
    office.post(priority="critical")
    office.at = 400 * DAY
    age.retain(office.context(), 100)
    assert office.rows("SELECT count(*) FROM acp_audit") == [(1,)]
