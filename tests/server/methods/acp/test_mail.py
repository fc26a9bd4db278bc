"""The one way in which messages are written (acp-canonical §12)."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.base import iso
from server.domain.acp.drafts import Draft
from server.domain.acp.policy import WAITING_MAX
from server.domain.acp.threads import Bounds
from server.domain.errors import Conflict, Forbidden, RateLimited, Refusal
from server.methods.acp import mail, retention
from server.store import messages
from tests.server.methods.acp.office import ANNA, BERT, CARL, SECOND, START, Office, aged

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
    draft = Draft(type="knowledge.push", to=[BERT], payload={"summary": "s"}, client_id="c")
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
    counted = office.rows("SELECT address, said, heard, sent FROM thread_parties ORDER BY 1")
    assert counted == [
        ("aid://example.com/anna", 4, None, 8),
        ("aid://example.com/bert", 3, 4, 6),
    ]
    office.post(BERT, to=[ANNA], thread_id=thread, charged=False)


def test_answering_the_first_message_is_no_way_around(office: Office) -> None:
    """§12.4: a thread that has come to its limit is over, whichever of its messages is answered."""
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=2, rounds=100))
    first = office.post(ANNA)
    second = office.post(BERT, to=[ANNA], reply_to=first)
    office.post(ANNA, reply_to=second)
    for answered in (first, second):
        with pytest.raises(Forbidden) as refused:
            office.post(BERT, to=[ANNA], reply_to=answered)
        assert refused.value.data["reason"] == "hop_limit"


@pytest.mark.parametrize("name", [None, "deploy-42"])
@pytest.mark.parametrize("gate", ["none", "required"])
@pytest.mark.parametrize("to", [[BERT], [BERT, CARL]])
def test_nobody_uses_up_a_thread_for_others(
    office: Office, name: str | None, gate: str, to: list[str]
) -> None:
    """§12.4: whatever Bert sends to himself, or to one outside who answers him, and whatever he
    answers of his own, Anna's messages to him are taken, by its name and as replies."""
    office.without_limits()
    office.rules = replace(office.rules, bounds=Bounds(hops=6, rounds=6))
    first = last = office.post(ANNA, thread_id=name)
    others = [one for one in to if one != BERT]
    for _ in range(8):
        with suppress(Forbidden):
            last = office.post(BERT, to=to, reply_to=last, policy={"human_gate": gate})
            for one in others if gate == "none" else ():
                last = office.post(one, to=[BERT], reply_to=last)
                office.post(one, to=[one], reply_to=last)
    by_reply = office.post(ANNA, reply_to=first)
    by_name = office.post(ANNA, thread_id=name or first)
    office.post(ANNA, to=[CARL])
    for one in (first, by_reply, by_name):
        boxed = office.rows("SELECT box_seq FROM delivery_log WHERE message_id = ?", one)
        assert boxed[0][0] is not None, "it has come to Bert"


def test_what_one_writes_to_itself_takes_no_number_of_a_thread(office: Office) -> None:
    """§12.5: and is under its name still."""
    office.without_limits()
    office.post(ANNA, thread_id="t", sequence=1)
    for number in (1, 2, 3):
        office.post(BERT, to=[BERT], thread_id="t", sequence=number)
    office.post(ANNA, thread_id="t", sequence=2)
    assert office.rows("SELECT DISTINCT thread_id FROM messages") == [("t",)]
    first = office.rows("SELECT id FROM messages WHERE from_agent = ? ORDER BY id", BERT)[0][0]
    office.post(BERT, to=[ANNA], reply_to=first, sequence=3)
    assert office.rows("SELECT count(*) FROM threads") == [(2,)]


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


def test_as_many_as_a_thread_has_wait_for_one(office: Office) -> None:
    office.without_limits()
    for sequence in range(2, 700):
        office.post(thread_id="t", sequence=sequence)
    office.post(thread_id="t", sequence=1)
    assert office.rows("SELECT count(*) FROM delivery_log WHERE box_seq IS NULL") == [(0,)]


def test_a_gated_message_jams_no_thread(office: Office) -> None:
    """§12.5: what waits for a human takes no number, and holds up nothing."""
    office.post(ANNA, thread_id="t", sequence=1)
    gate = {"human_gate": "required"}
    squat = office.post(BERT, to=[ANNA], thread_id="t", sequence=2, policy=gate)
    office.post(ANNA, thread_id="t", sequence=2)
    office.post(ANNA, thread_id="t", sequence=3)
    found = office.rows("SELECT status, held FROM messages WHERE id = ?", squat)
    assert found == [("pending", "gate")]
    assert office.rows("SELECT sequence FROM threads") == [(3,)]


def test_nobody_fills_what_a_human_is_shown(office: Office) -> None:
    """§12.8: one sender's messages keep no other's from being seen, be they to itself; what waits
    no more makes room."""
    office.without_limits()
    gate = {"human_gate": "required"}
    waits = [office.post(to=[ANNA], policy=gate) for _ in range(WAITING_MAX - 1)]
    ends = office.post(policy=gate, expires_at=iso(START + 20 * SECOND))
    upgraded = ANNA.replace("@1.0.0", "@2.0.0")
    for sender, to in ((ANNA, BERT), (upgraded, BERT), (ANNA, ANNA)):
        with pytest.raises(Forbidden, match="20 messages of yours await approval") as refused:
            office.post(sender, policy=gate, to=[to])
        assert refused.value.data == {"reason": "approval_limit", "limit": 20, "waiting": 20}
    office.post()
    others = office.post(BERT, to=[ANNA], policy=gate)
    shown = [one.id for one in messages.gated(office.db, "", 50)]
    assert shown == [*waits, ends, others]
    office.at = 25
    aged(office.context(), retention.EXPIRE)
    office.post(policy=gate)


def test_what_ended_is_waited_for_by_nobody(office: Office) -> None:
    """§12.5: in whatever order it ended."""
    kept = [office.post(thread_id="t", sequence=1)]
    gate = {"human_gate": "required"}
    for number, seconds in ((2, 20), (3, 10)):
        expires_at = iso(START + seconds * SECOND)
        office.post(thread_id="t", sequence=number, policy=gate, expires_at=expires_at)
    kept.append(office.post(thread_id="t", sequence=4))
    for at in (15, 25):
        office.at = at
        aged(office.context(), retention.EXPIRE)
    boxed = office.rows(
        "SELECT message_id FROM delivery_log WHERE box_seq IS NOT NULL ORDER BY box_seq"
    )
    assert boxed == [(one,) for one in kept]


def test_an_agent_may_write_to_itself(office: Office) -> None:
    sent = office.post(to=[ANNA])
    assert messages.find(office.db, sent)
