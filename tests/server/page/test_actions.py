"""What each form becomes, and what its result means."""

from typing import Any

import pytest

from server.domain.errors import InvalidInput
from server.methods import METHODS
from server.page.actions import ACTIONS

AT = {"projectId": "p", "contractId": "c", "version": "2"}
FORMS: dict[str, dict[str, str]] = {
    "approve": {"message_id": "m", "comment": " fine "},
    "refuse": {"message_id": "m", "comment": ""},
    "answer": {"projectId": "p", "packetId": "q", "answer": "yes", "contractId": "c"},
    "answer-mail": {"message_id": "m", "answer": "yes"},
    "revoke-handoff": {"handoff_id": "01a20901-76bc-703d-abff-d75db36ff428", "detail": "late"},
    "agree": AT,
    "request-change": AT | {"comment": "smaller"},
    "nudge": {"to": "aid://example.com/ann", "about": "respond to\nlogin", "item": "respond-1"},
    "revoke": {"agentId": "aid://example.com/ann"},
    "release": {"projectId": "p", "repoName": "web"},
    "replay": {"message_id": "m"},
    "mark-read": {"ids": "m n"},
    "message": {"to": "aid://a/b, aid://c/d", "text": "Please stop.\nNow.", "topic": ""},
}


@pytest.mark.parametrize("name", ACTIONS)
def test_each_form_becomes_params_that_the_method_takes(name: str) -> None:
    action = ACTIONS[name]
    params = action.params(FORMS[name] | {"csrf": "x", "next": "/ui", "once": "y"})
    METHODS[action.method].params.model_validate(params, by_alias=True)
    assert "csrf" not in str(params)


def needed() -> list[tuple[str, str]]:
    optional = {"comment": "request-change", "contractId": "agree", "item": "", "topic": ""}
    return [
        (name, field)
        for name, fields in FORMS.items()
        for field in fields
        if field not in optional or name.startswith(optional[field] or "none")
    ]


@pytest.mark.parametrize(("name", "field"), needed())
def test_what_is_missing_is_named(name: str, field: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        ACTIONS[name].params(FORMS[name] | {field: " \n"})


def test_a_version_is_a_number() -> None:
    for text in ("two", "-1", "1e9", "٣", "9" * 12):
        with pytest.raises(InvalidInput, match="version"):
            ACTIONS["agree"].params(AT | {"version": text})


def test_a_long_message_keeps_its_text_beside_its_summary() -> None:
    params = ACTIONS["message"].params({"to": "aid://a/b", "text": "word " * 200})
    assert len(params["payload"]["summary"]) <= 300
    assert params["payload"]["details"]["text"] == ("word " * 200).strip()


RECEIPTS = [{"recipient": f"aid://example.com/{name}"} for name in "abcde"]
RESULTS: list[tuple[str, Any, str]] = [
    ("approve", {"outcome": "approved", "receipts": RECEIPTS[:1]}, "goes to aid://example.com/a"),
    ("refuse", {"outcome": "refused", "receipts": []}, "goes to nobody"),
    ("approve", {"outcome": "approved", "handoff": {"status": "proposed"}}, "proposed now"),
    ("agree", {"status": "agreed", "version": 2, "contractStatus": "agreed"}, "version 2"),
    (
        "request-change",
        {"status": "change_requested", "version": 2, "contractStatus": "negotiating"},
        "asked for a change",
    ),
    ("message", {"receipts": RECEIPTS}, "and 2 more"),
    ("message", {"receipts": RECEIPTS[:1], "held": "gate"}, "waits for a person"),
    (
        "mark-read",
        {"acked": [{"outcome": "read"}, {"outcome": "already"}, {"outcome": "unknown"}]},
        "2 messages marked",
    ),
    ("revoke-handoff", {"handoff": {"status": "rejected"}}, "handoff is rejected now"),
    ("answer-mail", {"receipts": RECEIPTS[:1]}, "Sent to aid://example.com/a"),
    ("revoke", {"agentId": "aid://a/b", "keyIds": ["k"]}, "1 key of aid://a/b revoked"),
    ("release", {"repoName": "web", "formerAgentId": "aid://a/b"}, "and free now"),
    (
        "release",
        {"repoName": "web", "formerAgentId": "aid://a/b", "agentId": "aid://c/d"},
        "aid://c/d holds it now",
    ),
]


@pytest.mark.parametrize(("name", "result", "words"), RESULTS)
def test_a_result_is_said_in_a_line(name: str, result: Any, words: str) -> None:
    assert words in ACTIONS[name].done(result)
