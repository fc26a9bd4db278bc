"""Results of acp/* as models see them."""

from typing import Any

from server.mcp_tools import render_acp
from tests.server.domain.injections import ATTEMPTS

CAPABILITIES = {"inbox": "available", "session": "disabled"}
MESSAGE: dict[str, Any] = {
    "id": "m-1",
    "from": "aid://example.com/ana",
    "type": "status.update",
    "priority": "normal",
    "status": "pending",
    "thread_id": "t-1",
    "created_at": "2026-02-21T09:30:00.000000+00:00",
    "payload": {"summary": "Done"},
}
HANDOFF: dict[str, Any] = {
    "handoffId": "h-1",
    "status": "accepted",
    "taskId": "k-1",
    "fromAgent": "aid://example.com/ana",
    "toAgent": "aid://example.com/ben",
    "title": "Write it",
    "packageHash": "00ff",
    "dueAt": "2026-02-22T09:30:00.000000+00:00",
}
EVERY_ATTEMPT = "\n".join(ATTEMPTS.values())


def margin(text: str) -> list[str]:
    """The lines of an answer that are the node's own."""
    return [line for line in text.split("\n") if not line.startswith("| ")]


def test_what_became_of_a_message() -> None:
    receipts = [
        {"recipient": "aid://example.com/ben", "status": "delivered"},
        {"recipient": "aid://example.com/cleo", "status": "failed", "error": "no such\nagent"},
    ]
    result = {
        "message": MESSAGE,
        "receipts": receipts,
        "duplicate": True,
        "held": "gate",
        "capabilities": CAPABILITIES,
    }
    assert render_acp.sent({}, result).splitlines() == [
        "- messageId: `m-1`",
        "- thread_id: `t-1`",
        "- status: pending",
        "- duplicate: this client_id was sent before; nothing was sent again",
        "- held: a human must approve it first (`cacp approve`)",
        "- to `aid://example.com/ben`: delivered",
        "- to `aid://example.com/cleo`: failed (`no such agent`)",
        "- channels: inbox available, session disabled",
    ]


def test_mail_and_how_to_go_on() -> None:
    result = {
        "text": "# Inbox: 1 message",
        "messages": [MESSAGE],
        "cursor": "e:3",
        "more": True,
        "restarted": True,
        "capabilities": CAPABILITIES,
    }
    text = render_acp.mail({}, result)
    assert text.startswith("# Inbox: 1 message\n\n- cursor: `e:3`\n- more: call again")
    assert "- restarted: the cursor belongs to another database" in text
    assert "pass its id in ack" in text


def test_found_messages_and_their_receipts() -> None:
    receipts = [{"recipient": "aid://example.com/ben", "status": "read"}]
    found = {"messages": [{"message": MESSAGE, "receipts": receipts}], "nextCursor": "c"}
    text = render_acp.found_messages({}, found)
    assert "# Found: 1 message" in text
    assert "# Receipts\n\n- `m-1` to `aid://example.com/ben`: read" in text
    assert text.endswith("More: cursor `c`")
    assert render_acp.found_messages({}, {"messages": []}) == "There are no such messages."


def test_a_handoff_whole() -> None:
    event = {
        "recordedAt": "2026-02-21T09:30:00.000000+00:00",
        "step": "reject",
        "after": "rejected",
        "actor": "aid://example.com/ben",
        "role": "receiver",
        "detail": "no\ntime",
    }
    check = {"artifactId": "a", "outcome": "hash_mismatch", "detail": "it is another file"}
    text = render_acp.handoff(
        {},
        {
            "handoff": HANDOFF,
            "nextStep": "You may now: complete.",
            "package": {"task": {"title": EVERY_ATTEMPT}},
            "artifacts": [check],
            "history": [event],
        },
    )
    own = margin(text)
    assert own[:2] == ["# Handoff `Write it`", ""]
    assert "- next: You may now: complete." in own
    assert "- artifact `a`: hash_mismatch (`it is another file`)" in own
    assert own[-1].endswith("reject → rejected by `aid://example.com/ben` (receiver): `no time`")
    assert [line for line in own if line.startswith("```")] == ["```untrusted", "```"]


def test_handoffs_in_a_list() -> None:
    text = render_acp.handoff({}, {"handoffs": [HANDOFF], "nextCursor": "h-0"})
    assert text == (
        "- `Write it`: handoff_id `h-1`, accepted, from `aid://example.com/ana` to "
        "`aid://example.com/ben`\nMore: cursor `h-0`"
    )
    assert render_acp.handoff({}, {"handoffs": []}) == "There are no such handoffs."
    away = {"handoffId": "h-`2", "taskId": "t", "node": "aid://example.com/far"}
    text = render_acp.handoff({}, {"handoffs": [], "elsewhere": [away]})
    assert text == "- handoff_id `h-'2`, held by `aid://example.com/far`: get shows it"


def test_a_teamspace_whole() -> None:
    manifest = {
        "name": EVERY_ATTEMPT,
        "teamspace_id": "t",
        "status": "active",
        "members": [{"agent_id": "aid://example.com/ana", "role": "coordinator"}],
        "purpose": EVERY_ATTEMPT,
        "created_by": "aid://example.com/ana",
    }
    task = {
        "taskId": "k-1",
        "title": "Write it",
        "kind": "execution",
        "status": "blocked",
        "owner": None,
        "blockCode": "waits",
    }
    lines = [{"seq": 1, "line": {"action": EVERY_ATTEMPT}}]
    text = render_acp.team(
        {}, {"manifest": manifest, "tasks": [task], "lines": lines, "nextCursor": 2}
    )
    own = margin(text)
    assert "- coordinator: `aid://example.com/ana`" in own
    assert own[-1] == "More: cursor 2"
    assert (
        "- task `k-1` `Write it`: execution, blocked, owned by nobody yet, blocked: `waits`" in own
    )
    assert {line for line in own if line.startswith("```")} == {"```untrusted", "```"}


def test_teamspaces_in_a_list() -> None:
    one = {"name": "T", "team": "t", "status": "active", "role": "reviewer"}
    assert render_acp.team({}, {"teams": [one]}) == "- `T`: team `t`, active, your role: reviewer"
    assert render_acp.team({}, {"teams": []}) == "You are not a member of a teamspace."
    assert render_acp.team({}, {}) == "Done."
