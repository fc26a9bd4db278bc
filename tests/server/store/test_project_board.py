"""What a board is read from: the same as follows from the facts of its contracts."""

from hypothesis import HealthCheck, given, settings

from schemas.base import iso
from schemas.context import ContextPacket
from schemas.facts import VersionFact
from server.domain.contract import Facts, current_of, status_of, updated_at
from server.domain.project_board import BoardCard, card_at
from server.domain.timeline import timeline_of
from server.store import context_packets, contracts
from server.store import project_board as store
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.project_board import NEWEST, PacketCounts, StoryMoment
from server.store.projects import ProjectHeader
from tests.server.domain.histories import histories
from tests.server.store.conftest import PROJECT

HEADER = ContractHeader("api_endpoint", "login", 1)


def insert(db: Connection, contract_id: str, facts: Facts) -> None:
    first = min(
        (fact for fact in facts.values() if isinstance(fact, VersionFact)),
        key=lambda fact: fact.version,
    )
    contracts.insert(db, PROJECT, contract_id, HEADER, first)
    known = contracts.facts_of(db, contract_id)
    contracts.add(db, PROJECT, contract_id, HEADER, known, facts.values())


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(histories(replicas=3))
def test_cards_and_moments_follow_from_the_facts(
    db: Connection, project: ProjectHeader, replicas: list[Facts]
) -> None:
    db.execute("BEGIN IMMEDIATE")
    for number, facts in enumerate(replicas):
        insert(db, f"c{number}", facts)
    empty = BoardCard("", "api_endpoint", "login", 0, "proposed", "", 0)
    newest = max(updated_at(facts) for facts in replicas)
    for card, facts in zip(sorted(store.cards(db, PROJECT)), replicas, strict=True):
        expected = card_at(PROJECT, empty._replace(contract_id=card.contract_id), facts, newest)
        assert card == expected
        assert (card.version, card.status) == (current_of(facts).version, status_of(facts))
    moments = store.moments(db, PROJECT)
    events = {
        (event.at, f"c{number}")
        for number, facts in enumerate(replicas)
        for event in timeline_of(facts)
    }
    assert {(at, id) for at, subject, id in moments if subject == "contract"} == events
    seen: list[StoryMoment] = []
    while page := store.recent_moments(db, PROJECT, seen[-1] if seen else NEWEST, 2):
        seen += page
    assert seen == moments
    changed = store.facts_changed_after(db, PROJECT, newest - 1)
    assert set(changed) == {
        f"c{number}" for number, facts in enumerate(replicas) if updated_at(facts) == newest
    }
    db.execute("ROLLBACK")


def packet(
    packet_id: str, repo: str, type: str, at: int, reply_to: str | None = None
) -> ContextPacket:
    return ContextPacket.model_validate(
        {
            "packet_id": packet_id,
            "from_repo": repo,
            "from_agent": f"aid://example.com/{repo}@1.0.0",
            "timestamp": iso(at),
            "type": type,
            "content": {"question": "Why?"},
            "reply_to": reply_to,
        }
    )


def test_packets_are_counted_as_of_a_time(db: Connection, project: ProjectHeader) -> None:
    for each in (
        packet("q1", "api", "question", 10),
        packet("own", "api", "decision", 11, "q1"),
        packet("back", "web", "question", 12, "q1"),
        packet("a1", "web", "api_spec", 13, "q1"),
    ):
        context_packets.insert(db, PROJECT, each)
    counts = [store.packet_counts(db, PROJECT, at) for at in range(9, 14)]
    assert counts == [(0, 0, 0), (1, 0, 1), (2, 1, 1), (3, 1, 2), (4, 1, 1)]
    assert isinstance(counts[0], PacketCounts)
    questions, total = store.open_questions(db, PROJECT, 10)
    assert ([question["packet_id"] for question in questions], total) == (["back"], 1)
    assert store.open_questions(db, PROJECT, 0) == ([], 0)
