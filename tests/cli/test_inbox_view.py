"""Mail for people: no fences, nothing that controls a terminal, the commands to go on."""

from typing import Any

from cli.inbox_view import inbox_text

ID = "01a200d3-c0e1-7539-b1a1-fddaebe9d751"
MESSAGE: dict[str, Any] = {
    "id": ID,
    "from": "aid://h/frontend@1.0.0",
    "type": "status.blocked",
    "priority": "high",
    "topic": "db\x1b[2J",
    "created_at": "2026-01-01T00:00:00Z",
    "payload": {"summary": "The users\ntable", "blocked_on": "no\u202e schema", "n": [1]},
}


def listing(*messages: dict[str, Any], more: bool = False) -> dict[str, Any]:
    counts = {"unread": len(messages)}
    return {"messages": [*messages], "counts": counts, "more": more, "cursor": "c1"}


def test_a_message_is_told_with_its_next_steps() -> None:
    lines = inbox_text(listing(MESSAGE)).plain.splitlines()
    assert lines[0] == "db  high"
    assert lines[1].startswith("  status.blocked of aid://h/frontend@1.0.0, ")
    assert lines[2:6] == ["  The users", "  table", "  blocked_on: no schema", "  n: [1]"]
    assert lines[6] == f"  answer   cacp send aid://h/frontend@1.0.0 --reply-to {ID} -m …"
    assert lines[7] == f"  done     cacp inbox --ack {ID}"


def test_without_a_topic_the_summary_is_the_head() -> None:
    plain = MESSAGE | {"topic": None, "priority": "normal", "payload": {"summary": "Hi [red]"}}
    lines = inbox_text(listing(plain, MESSAGE, more=True)).plain.splitlines()
    assert lines[0] == "Hi [red]"
    assert lines[-1] == "There are more: cacp inbox --cursor c1"
    assert "" in lines


def test_no_mail_is_a_sentence() -> None:
    assert inbox_text(listing()).plain == "No messages wait for you."
