"""ACP messages as rows (acp-canonical §9)."""

from typing import Any

import orjson

from server.domain.acp.threads import Pending, Thread
from server.store import mail_outbox, mailboxes, messages
from server.store.connection import Connection
from server.store.messages import MessageRow

AT = "2026-02-21T09:30:00.000000+00:00"
LATER = "2026-02-22T09:30:00.000000+00:00"
MESSAGE = MessageRow(
    id="m1", version="1.0.0", from_agent="aid://x/a@1.0.0", to_agents_json='["aid://x/b@1.0.0"]',
    team=None, reply_to=None, thread_id="t", type="knowledge.push", topic=None, priority="normal",
    status="pending", payload_json='{"summary":"s"}', policy_json="{}", context_json=None,
    external_refs_json=None, sequence=None, expires_at=None, created_at=AT, updated_at=None, hop=0,
    held=None,
)  # fmt: skip


def test_the_tables_have_the_columns_of_the_specification(db: Connection) -> None:
    """§9; what is ours stands behind."""

    def columns(table: str) -> list[str]:
        return [column[0] for column in db.execute(f"SELECT * FROM {table}").description]

    assert columns("messages")[:21] == [
        "id", "protocol", "version", "from_agent", "to_agents_json", "team", "reply_to",
        "thread_id", "type", "topic", "priority", "status", "payload_json", "policy_json",
        "context_json", "external_refs_json", "sequence", "expires_at", "payload_bytes",
        "created_at", "updated_at",
    ]  # fmt: skip
    assert columns("delivery_log")[:8] == [
        "id", "message_id", "recipient", "channel", "status", "delivered_at", "read_at", "error"
    ]  # fmt: skip
    assert dict(db.execute("SELECT key, value FROM acp_meta")) == {
        "schema_version": "1",
        "protocol_version": "1.0.0",
    }


def test_a_message_reads_as_it_was_written(db: Connection) -> None:
    messages.insert(db, MESSAGE, 15, "t")
    assert messages.find(db, "m1") == MESSAGE
    assert messages.find(db, "m2") is None
    messages.put_status(db, "m1", "delivered", LATER)
    messages.put_held(db, "m1", "gate", LATER)
    found = messages.find(db, "m1")
    assert found == MESSAGE._replace(status="delivered", held="gate", updated_at=LATER)


def test_an_envelope_has_no_absent_members() -> None:
    def shown(**changed: Any) -> Any:
        return orjson.loads(orjson.dumps(messages.envelope(MESSAGE._replace(**changed))))

    least = {
        "id": "m1", "protocol": "acp", "version": "1.0.0", "from": "aid://x/a@1.0.0",
        "to": ["aid://x/b@1.0.0"], "type": "knowledge.push", "priority": "normal",
        "status": "pending", "payload": {"summary": "s"}, "policy": {}, "created_at": AT,
    }  # fmt: skip
    assert shown(thread_id=None) == least
    more = {
        "team": "t", "thread_id": "h", "reply_to": "m0", "topic": "", "sequence": 0,
        "expires_at": LATER, "updated_at": AT,
    }  # fmt: skip
    assert shown(**more) == least | more
    least["thread_id"] = "t"
    refs, context = [{"type": "x"}], {"project_id": "p"}
    references = orjson.dumps(refs).decode()
    described = orjson.dumps(context).decode()
    assert shown(context_json=described) == least | {"context": context}
    assert shown(context_json="{}") == least
    assert shown(external_refs_json=references) == least | {"context": {"external_refs": refs}}
    assert shown(context_json=described, external_refs_json=references) == least | {
        "context": context | {"external_refs": refs}
    }


def test_the_next_to_expire_is_found_by_its_time(db: Connection) -> None:
    assert messages.next_expiry(db) is None
    messages.insert(db, MESSAGE._replace(id="m2", expires_at=LATER), 15, "t")
    messages.insert(db, MESSAGE, 15, "t")
    mailboxes.hold(db, "m2", "aid://x/b")
    assert messages.next_expiry(db) == LATER
    assert messages.due(db, AT, 10) == []
    assert messages.due(db, LATER, 10) == ["m2"]
    # What was sent to another node is that node's to end.
    mail_outbox.put_route(db, "m2", "aid://x/b", "aid://x/node")
    mail_outbox.offer(db, "m2", "aid://x/node")
    assert messages.due(db, LATER, 10) == []
    mail_outbox.withdraw(db, ["m2"], "aid://x/node")
    assert messages.due(db, LATER, 10) == ["m2"]
    messages.put_status(db, "m2", "read", LATER)
    assert messages.due(db, LATER, 10) == []


def test_an_agents_address_finds_all_its_versions_and_no_other_agent(
    db: Connection,
) -> None:
    messages.insert(db, MESSAGE, 15, "t")
    assert messages.spoke(db, "t", "aid://x/a")
    assert not messages.spoke(db, "t", "aid://x/ab")
    assert not messages.spoke(db, "t", "aid://x/b")
    assert not messages.spoke(db, "t2", "aid://x/a")


def test_who_was_sent_a_message_of_a_thread(db: Connection) -> None:
    def sent(address: str) -> bool:
        return messages.was_sent(db, "t", address)

    messages.insert(db, MESSAGE, 15, "t")
    mailboxes.hold(db, "m1", "aid://x/b")
    assert not sent("aid://x/b"), "it is held yet"
    mailboxes.put_held(db, "m1", "aid://x/b", AT)
    assert sent("aid://x/b")
    mail_outbox.put_route(db, "m1", "aid://x/c", "aid://x/node")
    assert not sent("aid://x/c")
    mail_outbox.offer(db, "m1", "aid://x/node")
    assert sent("aid://x/c"), "at another node"
    assert not sent("aid://x/d")
    named = '["aid://x/d@1.0.0","aid://x/e"]'
    messages.insert(db, MESSAGE._replace(id="m2", to_agents_json=named), 15, "t")
    assert not sent("aid://x/d")
    mail_outbox.put_source(db, "m2", "aid://x/node")
    assert [sent(f"aid://x/{one}") for one in ("d", "e", "f")] == [True, True, False]
    messages.insert(db, MESSAGE._replace(id="m3", to_agents_json='["*"]'), 15, "t")
    mail_outbox.put_source(db, "m3", "aid://x/node")
    assert sent("aid://x/f")


def test_what_is_pending_in_a_thread(db: Connection) -> None:
    def insert(sequence: int, **more: Any) -> None:
        row = MESSAGE._replace(id=f"m{sequence}", sequence=sequence, **more)
        messages.insert(db, row, 15, "t")

    insert(1, status="failed")
    insert(2)
    insert(3, held="gate")
    insert(4, held="quarantine")
    insert(5, status="expired")
    assert messages.pending(db, "other", 0) == []
    assert messages.pending(db, "t", 2) == [
        Pending("m3", "aid://x/a", 3, "gate"),
        Pending("m4", "aid://x/a", 4, "quarantine"),
        Pending("m5", "aid://x/a", 5, None),
    ]


def test_threads_and_client_ids(db: Connection) -> None:
    assert messages.thread(db, "t") is None
    messages.put_thread(db, "t", "name", Thread(1))
    messages.put_thread(db, "t", "name", Thread(2))
    messages.put_thread(db, "u", "name", Thread(1))
    assert messages.thread(db, "t") == Thread(2)
    named = [("t", Thread(2)), ("u", Thread(1))]
    assert messages.threads_named(db, "name") == named
    messages.insert(db, MESSAGE, 15, "u")
    assert messages.thread_of(db, "m1") == "u"
    messages.put_client_id(db, "a", "c", "m1", "hash", AT)
    assert messages.sent_as(db, "a", "c") == ("m1", "hash")
    assert messages.sent_as(db, "b", "c") is None
    messages.forget(db, LATER)
    assert messages.sent_as(db, "a", "c") is None


def test_a_thread_ends_with_its_last_message(db: Connection) -> None:
    for id in ("m1", "m2"):
        messages.insert(db, MESSAGE._replace(id=id), 15, "m1")
    messages.put_thread(db, "m1", "t", Thread(2))
    messages.archive(db, "m1", b"{}", AT)
    assert messages.thread(db, "m1") == Thread(2)
    messages.archive(db, "m2", b"{}", AT)
    assert messages.threads_named(db, "t") == []
