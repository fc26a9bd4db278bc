"""What time does to messages (acp-canonical §4.1, §12.7)."""

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest

from schemas.acp import ACPContext
from schemas.acp_calls import DeadLettersParams, ReplayParams
from schemas.base import iso
from server.domain.agents import identity
from server.domain.errors import Refusal
from server.methods.acp import retention
from server.methods.acp.dead_letters import dead_letters, replay
from server.methods.acp.inbox import acknowledge
from server.methods.acp.retention import Ageing
from server.store import mailboxes
from tests.server.methods.acp.office import ANNA, BERT, CARL, SECOND, START, Office, aged

DAY = 24 * 3600
DORA = "aid://example.com/dora@1.0.0"


def statuses(office: Office) -> dict[str, str]:
    return dict(office.rows("SELECT id, status FROM messages"))


def test_what_is_over_expires_and_nothing_else(office: Office) -> None:
    soon = office.post(expires_at=iso(START + 10 * SECOND))
    later = office.post(expires_at=iso(START + 60 * SECOND))
    never = office.post()
    office.at = 30
    assert aged(office.context(), retention.EXPIRE) == (1, 1)
    assert aged(office.context(), retention.EXPIRE) == (0, 0)
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
    aged(office.context(), retention.EXPIRE)
    boxed = office.rows("SELECT message_id FROM delivery_log WHERE box_seq IS NOT NULL")
    assert boxed == [(second,)]


def test_what_is_old_moves_to_the_archive_whole(office: Office) -> None:
    """§12.7: after 90 days exported to the archive, then purged."""
    old = office.post(to=[BERT, CARL])
    office.at = 89 * DAY
    assert aged(office.context(), retention.RETAIN) == (0, 0)
    new = office.post()
    office.at = 91 * DAY
    assert aged(office.context(), retention.RETAIN) == (1, 2)
    assert aged(office.context(), retention.RETAIN) == (0, 0)
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
    aged(office.context(), retention.RETAIN)
    assert office.rows("SELECT outcome FROM acp_audit") == [("accepted",), ("expired",)]


def test_what_nobody_read_is_a_dead_letter_still_when_it_is_purged(office: Office) -> None:
    """§12.7: its sender learns of it, a day before and ever after, and can send it again."""
    office.post(CARL, to=[ANNA])
    read = office.post(to=[BERT], topic="read")
    acknowledge(office.context(BERT), [read])
    unread = office.post(to=[BERT, CARL], topic="unread", context=ACPContext(session_id="s"))
    critical = office.post(to=[BERT], priority="critical", expires_at=iso(START + DAY * SECOND))

    def dead(*, human: bool = False, **params: Any) -> list[tuple[str, str, str]]:
        ctx = office.context()
        ctx.caller = replace(ctx.caller, human=human, agent_id=DORA if human else ANNA)
        found = dead_letters(ctx, DeadLettersParams(**params))
        return [
            (one["message"]["id"], one["receipt"]["recipient"], one["receipt"]["status"])
            for one in orjson.loads(orjson.dumps(found))["letters"]
        ]

    assert dead() == []
    office.at = 2 * DAY
    aged(office.context(), retention.EXPIRE)
    gone = [(unread, BERT, "expired"), (unread, CARL, "expired"), (critical, BERT, "expired")]
    told = [(one, identity(recipient), status) for one, recipient, status in gone]
    assert dead() == told[2:]
    office.at = 89 * DAY + 1
    assert aged(office.context(), retention.LAPSE) == (2, 3)
    assert aged(office.context(), retention.LAPSE) == (0, 0)
    assert dead() == told
    office.at = 91 * DAY
    assert aged(office.context(), retention.RETAIN) == (4, 0)
    assert statuses(office) == {}
    assert dead() == told
    assert dead(cursor=3) == told[1:]
    assert dead(limit=1) == told[:1]
    assert dead(human=True) == told[2:]
    assert mailboxes.count_dead(office.db) == {"archived": 4}
    again = replay(office.context(), ReplayParams(message_id=unread))
    message = orjson.loads(orjson.dumps(again))["message"]
    assert (message["to"], message["topic"]) == ([identity(BERT), identity(CARL)], "unread")
    assert message["context"]["external_refs"][0]["value"] == unread
    for mine, reason in ((read, "illegal_transition"), ("none", "not_found")):
        with pytest.raises(Refusal) as refused:
            replay(office.context(), ReplayParams(message_id=mine))
        assert refused.value.data["reason"] == reason
    with pytest.raises(Refusal):
        replay(office.context(BERT), ReplayParams(message_id=unread))


def test_a_clock_a_year_ahead_ends_nothing_before_it_is_sure(office: Office) -> None:
    kept = office.post(expires_at=iso(START + 60 * SECOND))
    office.at = 365 * DAY
    ctx = office.context()
    ctx.sure = START + 30 * SECOND
    assert {aged(ctx, kind) for kind in (retention.EXPIRE, retention.LAPSE, retention.RETAIN)} == {
        (0, 0)
    }
    assert statuses(office) == {kept: "pending"}
    ctx.sure = ctx.stamp
    assert aged(ctx, retention.EXPIRE) == (1, 1)


@pytest.mark.parametrize("path", ["sent", "delivered", "gated", "waits its turn", "offered"])
@pytest.mark.parametrize(
    "kinds", [(retention.RETAIN,), (retention.EXPIRE, retention.LAPSE, retention.RETAIN)]
)
def test_no_way_to_the_archive_leaves_unread_mail_without_a_dead_letter(
    office: Office, path: str, kinds: tuple[Ageing, ...]
) -> None:
    draft: dict[str, Any] = {"expires_at": iso(START + DAY * SECOND)}
    if path == "gated":
        draft["policy"] = {"human_gate": "required"}
    if path == "waits its turn":
        draft |= {"thread_id": "t", "sequence": 2}
    sent = office.post(to=[BERT, CARL], **draft)
    if path == "delivered":
        office.db.execute("UPDATE delivery_log SET status = 'delivered' WHERE channel = 'inbox'")
    if path == "offered":
        office.db.execute(
            "INSERT INTO mail_routes (message_id, recipient, node, offered) VALUES (?, ?, 'n', 1)",
            (sent, identity(BERT)),
        )
    office.at = 91 * DAY
    for kind in kinds:
        aged(office.context(), kind)
    assert statuses(office) == {}
    dead = office.rows("SELECT message_id, recipient FROM archived_dead_letters ORDER BY recipient")
    assert dead == [(sent, identity(BERT)), (sent, identity(CARL))]
