"""The openings that are kept with contracts and questions."""

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.base import iso
from schemas.context import ContextPacket
from schemas.facts import Fact, VersionFact
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.store import changes, context_packets, contracts, messages
from server.store.attention_index import counts
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.messages import MessageRow
from server.store.projects import ProjectHeader
from tests.server.domain.histories import API, IOS, WEB, Step, fact_sets, facts_of
from tests.server.store.conftest import PROJECT
from tests.support.attention_check import check_attention

HEADER = ContractHeader("api_endpoint", "login", 1)


def proposed(db: Connection, contract_id: str = "c1") -> None:
    content = {"path": "/a"}
    version = VersionFact(
        version=1,
        digest=digest(content),
        content=content,
        repo_id="api",
        agent_id=API.agent_id,
        parties=("api", "web"),
        policy="any",
        stamp=1,
    )
    contracts.insert(db, PROJECT, contract_id, HEADER, version)


def packet(packet_id: str, repo: str, type: str, reply_to: str | None = None) -> ContextPacket:
    return ContextPacket.model_validate(
        {
            "packet_id": packet_id,
            "from_repo": repo,
            "from_agent": f"aid://example.com/{repo}@1.0.0",
            "timestamp": iso(1),
            "type": type,
            "content": {"question": "Why?"},
            "reply_to": reply_to,
        }
    )


def changed(db: Connection) -> None:
    """The record of the call that proposed the contract."""
    about = {"actor": "a", "action": "m", "entity": "contract", "entity_id": "c1"}
    changes.append(db, at=1, origin="n", project_id=PROJECT, outcome="proposed", **about)


def test_they_follow_each_write_of_facts(db: Connection, project: ProjectHeader) -> None:
    proposed(db)
    assert counts(db) == {"respond": 1}
    facts = contracts.facts_of(db, "c1")
    agreed = facts_of(facts, Step(0, WEB, "agree", {}), 2)
    contracts.add(db, PROJECT, "c1", HEADER, facts, agreed)
    assert counts(db) == {"implement": 2}


def test_a_row_that_stays_says_that_its_subject_has_changed(
    db: Connection, project: ProjectHeader
) -> None:
    """A comment changes what the item carries, not what must be done."""
    proposed(db)
    facts = contracts.facts_of(db, "c1")
    asked = facts_of(facts, Step(0, IOS, "request_change", {}), 2)
    changed(db)
    contracts.add(db, PROJECT, "c1", HEADER, facts, asked)
    rows = db.execute("SELECT kind, revision FROM attention_openings ORDER BY kind").fetchall()
    assert rows == [("respond", 1), ("revise", 1)]


def test_a_question_is_closed_by_its_answer_whichever_comes_first(
    db: Connection, project: ProjectHeader
) -> None:
    context_packets.insert(db, PROJECT, packet("q1", "api", "question"))
    assert counts(db) == {"answer": 1}
    context_packets.insert(db, PROJECT, packet("a1", "web", "decision", "q1"))
    assert counts(db) == {}
    context_packets.insert(db, PROJECT, packet("a2", "web", "decision", "q2"))
    context_packets.insert(db, PROJECT, packet("q2", "api", "question"))
    assert counts(db) == {}


def test_a_replaced_answer_opens_the_question_again(db: Connection, project: ProjectHeader) -> None:
    """Of two packets with one id that a node signed, all nodes keep the same."""
    context_packets.insert(db, PROJECT, packet("q1", "api", "question"))
    context_packets.insert(db, PROJECT, packet("a1", "web", "decision", "q1"))
    context_packets.replace(db, PROJECT, packet("a1", "web", "decision"), None)
    assert counts(db) == {"answer": 1}
    context_packets.replace(db, PROJECT, packet("q1", "api", "decision"), None)
    assert counts(db) == {}


def mailed(
    db: Connection,
    message_id: str,
    sender: str,
    type: str,
    reply_to: str | None = None,
    **payload: str,
) -> None:
    message = MessageRow(
        id=message_id,
        version="1.0.0",
        from_agent=f"aid://example.com/{sender}",
        to_agents_json="[]",
        team=None,
        reply_to=reply_to,
        thread_id=None,
        type=type,
        topic=None,
        priority="normal",
        status="pending",
        payload_json=orjson.dumps(payload).decode(),
        policy_json="{}",
        context_json=None,
        external_refs_json=None,
        sequence=None,
        expires_at=None,
        created_at=iso(1),
        updated_at=None,
        hop=0,
        held=None,
    )
    messages.insert(db, message, 2, message_id)


def unanswered(db: Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT message_id FROM unanswered_queries")]


def test_a_query_is_answered_by_reply_or_by_id(db: Connection) -> None:
    mailed(db, "m1", "api@1.0.0", "knowledge.query")
    mailed(db, "m2", "api@2.0.0", "status.update", "m1")
    mailed(db, "m3", "web@1.0.0", "status.update", "other")
    assert unanswered(db) == ["m1"]
    mailed(db, "m4", "web@1.0.0", "knowledge.query", "m1")
    assert unanswered(db) == ["m1", "m4"], "a question in return is one more"
    mailed(db, "m5", "web@1.0.0", "status.update", "m1")
    assert unanswered(db) == ["m4"]
    mailed(db, "m6", "api@1.0.0", "knowledge.response", query_id="m4")
    assert unanswered(db) == []


def test_a_reply_may_come_before_its_query(db: Connection) -> None:
    mailed(db, "m2", "web@1.0.0", "knowledge.response", "m1")
    mailed(db, "m1", "api@1.0.0", "knowledge.query")
    assert unanswered(db) == []


contract_facts = st.lists(fact_sets(), min_size=1, max_size=4)
packets = st.lists(
    st.builds(
        packet,
        st.sampled_from(["q1", "q2", "p3", "p4"]),
        st.sampled_from(["api", "web"]),
        st.sampled_from(["question", "decision"]),
        st.sampled_from([None, "q1", "q2", "p3"]),
    ),
    max_size=8,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(contract_facts, packets)
def test_what_is_kept_follows_from_any_facts_that_came_in_any_order(
    db: Connection,
    project: ProjectHeader,
    merged: list[list[Fact]],
    shared: list[ContextPacket],
) -> None:
    db.execute("BEGIN IMMEDIATE")
    contract_id = "c1"
    facts: Facts = {}
    for news in merged:
        first = next(fact for fact in news if isinstance(fact, VersionFact))
        if not facts:
            contracts.insert(db, PROJECT, contract_id, HEADER, first)
            facts = contracts.facts_of(db, contract_id)
        facts = contracts.add(db, PROJECT, contract_id, HEADER, facts, news)
    contracts.restamp(db, PROJECT, contract_id, lambda stamp: stamp + 5)
    for news_packet in shared:
        put = context_packets.insert
        if context_packets.exists(db, PROJECT, news_packet.packet_id):
            put = context_packets.replace  # type: ignore[assignment]
        put(db, PROJECT, news_packet, None)
    db.execute("COMMIT")
    try:
        check_attention(db)
    finally:
        for table in ("contracts", "facts", "packets", "attention_openings", "attention_counts"):
            db.execute(f"DELETE FROM {table}")
