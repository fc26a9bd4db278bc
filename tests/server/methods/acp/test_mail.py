"""The one way in which messages are written (acp-canonical §12)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.domain.acp.threads import Bounds
from server.domain.errors import Conflict, Forbidden, RateLimited, Refusal
from server.methods.acp import mail
from server.store import messages
from tests.server.methods.acp.office import ANNA, BERT, CARL, Office

TABLES = (
    "messages", "delivery_log", "mailboxes", "threads", "client_ids", "send_rates", "breakers",
    "acp_audit", "changes",
)  # fmt: skip


def contents(office: Office) -> list[object]:
    return [office.rows(f"SELECT * FROM {table}") for table in TABLES]


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": ["aid://example.com/nobody"]},
        {"payload": {"summary": 5}},
        {"payload": {"summary": "x" * 5_000}},
        {"type": "team.join"},
        {"version": "3.0.0"},
        {"to": ["*"]},
        {"policy": {"visibility": "team"}},
        {"reply_to": "unknown"},
        {"payload": {"summary": "s", "details": {"n": object()}}},
    ],
)
def test_what_is_refused_has_written_nothing(office: Office, wrong: dict[str, Any]) -> None:
    """§12.2: no record is made or changed, whoever drafts."""
    before = contents(office)
    with pytest.raises(Refusal):
        office.post(**wrong)
    assert contents(office) == before


def test_to_prepare_writes_nothing(office: Office) -> None:
    before = contents(office)
    draft = mail.Draft(type="knowledge.push", to=[BERT], payload={"summary": "s"}, client_id="c")
    mail.prepare(office.context(), draft)
    assert contents(office) == before


def test_limits_survive_a_restart(office: Office) -> None:
    """§10.3, issue: rate limits survive restart; the window is one that slides."""
    for _ in range(10):
        office.post()
    office.reopen()
    with pytest.raises(RateLimited) as refused:
        office.post()
    assert refused.value.data["retryAfter"] == 60
    office.at = 61
    office.post()


def test_the_node_itself_has_no_limits_and_needs_no_authority(office: Office) -> None:
    for _ in range(12):
        office.post(charged=False)
    office.post(to=["*"], charged=False)
    assert office.rows("SELECT * FROM send_rates") == []


def test_a_setting_lifts_the_limits_for_benches(office: Office) -> None:
    office.without_limits()
    for _ in range(30):
        office.post()
    assert office.rows("SELECT high_water FROM mailboxes") == [(30,)]


def test_replies_to_replies_end(office: Office) -> None:
    """§12.4: two agents that answer each other stop."""
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=4, rounds=100))
    last = office.post(ANNA)
    for hop in range(4):
        to = ANNA if hop % 2 == 0 else BERT
        last = office.post(BERT if to == ANNA else ANNA, to=[to], reply_to=last)
    with pytest.raises(Forbidden) as refused:
        office.post(BERT, to=[ANNA], reply_to=last)
    assert refused.value.data["reason"] == "hop_limit"


def test_naming_the_thread_is_no_way_around(office: Office) -> None:
    """§12.4: two agents that answer each other without reply_to stop as well, also over a restart;
    to tell one's own story on is bounded by the thread's length alone."""
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=4, rounds=100))
    thread = office.post(ANNA)
    for hop in range(4):
        pair = (BERT, ANNA) if hop % 2 == 0 else (ANNA, BERT)
        for _ in range(3):
            office.post(pair[0], to=[pair[1]], thread_id=thread)
    office.reopen()
    office.post(ANNA, thread_id=thread)
    with pytest.raises(Forbidden) as refused:
        office.post(BERT, to=[ANNA], thread_id=thread)
    assert refused.value.data["reason"] == "hop_limit"
    assert office.rows("SELECT rounds, hop FROM threads") == [(14, 4)]
    office.post(BERT, to=[ANNA], thread_id=thread, charged=False)


def test_a_thread_ends(office: Office) -> None:
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=4, rounds=3))
    for _ in range(3):
        office.post(thread_id="t")
    with pytest.raises(Forbidden) as refused:
        office.post(thread_id="t")
    assert refused.value.data["reason"] == "round_limit"


def test_a_client_id_survives_a_restart(office: Office) -> None:
    first = office.post(client_id="c")
    office.reopen()
    assert office.post(client_id="c") == first
    with pytest.raises(Conflict):
        office.post(client_id="c", topic="other")


@settings(max_examples=12)
@given(st.permutations(range(1, 8)))
def test_in_whatever_order_they_are_sent_they_arrive_in_theirs(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    """§12.5: what is early is quarantined until its turn."""
    office = Office(tmp_path_factory.mktemp("office") / "cacp.db").without_limits()
    try:
        for sequence in order:
            office.post(to=[BERT, CARL], thread_id="t", sequence=sequence)
        for box in ("aid://example.com/bert", "aid://example.com/carl"):
            found = office.rows(
                "SELECT sequence FROM delivery_log AS d JOIN messages AS m ON m.id = message_id"
                " WHERE recipient = ? ORDER BY box_seq",
                box,
            )
            assert found == [(number,) for number in range(1, 8)]
    finally:
        office.db.close()


def test_an_agent_may_write_to_itself(office: Office) -> None:
    sent = office.post(to=[ANNA])
    assert messages.find(office.db, sent)
