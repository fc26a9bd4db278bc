"""What nobody else has taken is stamped anew once the time is known (design §7)."""

import orjson

from peers.clock import SECOND
from peers.receipts import signed
from schemas.base import iso
from schemas.context import ContextPacket
from server.domain import contract_steps as steps
from server.domain.receipts import fact_of
from server.domain.registers import RepoClaim
from server.store import (
    changes,
    claims,
    context_packets,
    contracts,
    digests,
    projects,
    unreceived_changes,
)
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from tests.server.domain.histories import API, RUNNERS, WEB, propose, run_of
from tests.server.store.conftest import PROJECT, repo

NODE = "aid://example.com/node"
NOW = 1_800_000_000 * SECOND
HOUR = 3_600 * SECOND
LIMIT = 300 * SECOND
CONTRACT = "c"


def record(db: Connection, entity: str, entity_id: str, at: int, origin: str = NODE) -> None:
    changes.append(
        db,
        at=at,
        origin=origin,
        actor=NODE,
        action="test",
        entity=entity,
        entity_id=entity_id,
        project_id=PROJECT,
        outcome="made",
    )


def write(db: Connection, at: int) -> None:
    """A project with a claim, a contract with work on it, and a packet: a second apart each."""
    header = projects.ProjectHeader(PROJECT, "n", "o", "planning", "any", at, at)
    projects.insert(db, header, [repo("backend-api", stamp=at)])
    [made] = projects.repos(db, PROJECT)
    claims.settle(db, PROJECT, made.repo_id, [RepoClaim(NODE, None, at, at)])
    record(db, "project", PROJECT, at)
    [version] = propose(API, WEB, stamp=at + SECOND).values()
    called = ContractHeader("api_endpoint", "n", at + SECOND)
    contracts.insert(db, PROJECT, CONTRACT, called, version)  # type: ignore[arg-type]
    record(db, "contract", CONTRACT, at + SECOND)
    facts = contracts.facts_of(db, CONTRACT)
    agreed = steps.respond(facts, WEB, "agree", at + 2 * SECOND)
    header_of = contracts.header_of(db, PROJECT, CONTRACT)
    assert header_of is not None
    facts = contracts.add(db, PROJECT, CONTRACT, header_of, facts, [agreed])
    work = steps.implement(facts, API, "complete", at + 3 * SECOND)
    contracts.add(db, PROJECT, CONTRACT, header_of, facts, [work])
    record(db, "contract", CONTRACT, at + 3 * SECOND)
    packet = ContextPacket(
        packet_id="p",
        from_repo="backend-api",
        from_agent=NODE,
        timestamp=iso(at + 4 * SECOND),
        type="question",
        content={"question": "?"},
        related_contracts=[CONTRACT],
    )
    context_packets.insert(db, PROJECT, packet)
    record(db, "context", "p", at + 4 * SECOND)


def stamps(db: Connection) -> list[int]:
    """Every stamp of what `write` has written, in its order."""
    header = projects.header(db, PROJECT)
    assert header is not None
    [made] = projects.repos(db, PROJECT)
    claim = claims.holder(db, PROJECT, made.repo_id)
    assert claim is not None
    facts = contracts.facts_of(db, CONTRACT).values()
    rows = db.execute("SELECT stamp FROM packets UNION ALL SELECT stamp FROM packet_contracts")
    return [
        *(header.created_at, header.stamp, made.stamp, claim.claimed_at, claim.renewed_at),
        *sorted(fact.stamp for fact in facts),
        *(stamp for (stamp,) in rows),
    ]


def bring_back(db: Connection, given: int = 0) -> bool:
    moved = unreceived_changes.correct_at_start(db, node=NODE, given=given, now=NOW)
    return moved is not None


def test_all_of_it_comes_back_to_the_time_in_its_order(db: Connection) -> None:
    write(db, NOW + HOUR)
    assert digests.catch_up(db)
    before, counted = stamps(db), digests.held(db).digest
    assert bring_back(db)
    after = stamps(db)
    assert max(after) == NOW
    assert [one - after[0] for one in after] == [one - before[0] for one in before]
    document = contracts.document(db, PROJECT, CONTRACT, history=True)
    shown = orjson.loads(orjson.dumps(document))
    work = shown["implementations"][0]
    assert work["started_at"] == work["completed_at"] == shown["updated_at"] == iso(NOW - SECOND)
    assert shown["created_at"] == iso(NOW - 3 * SECOND)
    [(packet,)] = db.execute("SELECT document FROM packets")
    assert orjson.loads(packet)["timestamp"] == iso(NOW)
    assert digests.catch_up(db)
    assert digests.held(db).digest != counted, "it is counted and sent anew"


def test_receipts_come_back_to_the_time_apart_from_their_contract(db: Connection) -> None:
    write(db, NOW + HOUR)
    held = contracts.facts_of(db, CONTRACT)
    header = contracts.header_of(db, PROJECT, CONTRACT)
    assert header is not None
    fact = fact_of(signed(run_of(contract_id=CONTRACT), RUNNERS[0]), NOW + HOUR + 5 * SECOND)
    contracts.add(db, PROJECT, CONTRACT, header, held, [fact])
    record(db, "receipt", CONTRACT, NOW + HOUR + 5 * SECOND)
    assert bring_back(db)
    moved = contracts.facts_of(db, CONTRACT)
    assert moved[fact.kind, fact.key].stamp == NOW
    assert sorted(each.stamp for each in moved.values()) == [
        NOW - number * SECOND for number in (4, 3, 2, 0)
    ]


def test_what_another_node_may_have_is_left_as_it_is(db: Connection) -> None:
    write(db, NOW + HOUR)
    before = stamps(db)
    assert not bring_back(db, given=changes.newest(db))
    assert stamps(db) == before


def test_what_others_have_signed_is_left_as_it_is(db: Connection) -> None:
    write(db, NOW + HOUR)
    db.execute("UPDATE facts SET signature = '{}' WHERE kind = 'response'")
    for table in ("packets", "projects", "repos", "contracts"):
        db.execute(f"UPDATE {table} SET signature = '{{}}'")
    assert bring_back(db)
    for told in (
        "stamp > ? FROM projects",
        "stamp > ? FROM repos",
        "created_at > ? FROM contracts",
    ):
        assert db.execute(f"SELECT {told}", (NOW,)).fetchone() == (1,)
    facts = contracts.facts_of(db, CONTRACT).values()
    ahead = [fact.kind for fact in facts if fact.stamp > NOW]
    assert ahead == ["response"]
    assert db.execute("SELECT stamp > ? FROM packets", (NOW,)).fetchone() == (1,)


def test_what_is_a_little_ahead_stays(db: Connection) -> None:
    write(db, NOW + 60 * SECOND)
    before = stamps(db)
    assert not bring_back(db)
    assert stamps(db) == before


def test_it_is_known_over_starts_what_nobody_has(db: Connection) -> None:
    assert unreceived_changes.last_received(db) == 0
    assert not unreceived_changes.has_unreceived(db, NODE)
    record(db, "project", PROJECT, NOW)
    assert unreceived_changes.has_unreceived(db, NODE)
    assert not unreceived_changes.has_unreceived(db, "aid://example.com/other")
    assert unreceived_changes.last_received(db) == 0, "it never had a peer"
    bring_back(db)
    record(db, "project", PROJECT, NOW)
    assert not unreceived_changes.has_unreceived(db, NODE), "all of it may be taken at any moment"
    assert unreceived_changes.last_received(db) == changes.newest(db)


def test_a_file_of_a_release_before_counts_as_taken(db: Connection) -> None:
    record(db, "project", PROJECT, NOW)
    assert unreceived_changes.last_received(db) == changes.newest(db)


def test_a_repair_tells_what_it_mends_and_finds_nothing_the_second_time(
    db: Connection,
) -> None:
    unreceived_changes.last_received(db)
    write(db, NOW + HOUR)
    record(db, "file", "theirs", NOW + HOUR, origin="aid://example.com/other")
    found = unreceived_changes.count_ahead(db, node=NODE, now=NOW)
    assert found == ({"project": 1, "contract": 1, "context": 1}, {"file": 1})
    assert unreceived_changes.last_correction(db) == 0
    assert unreceived_changes.correct_by_operator(db, node=NODE, now=NOW) is not None
    assert max(stamps(db)) == NOW
    repaired = unreceived_changes.last_correction(db)
    assert repaired == changes.newest(db), "a running node sees that there was one"
    assert unreceived_changes.count_ahead(db, node=NODE, now=NOW) == ({}, {"file": 1})
    assert unreceived_changes.correct_by_operator(db, node=NODE, now=NOW) is None
    assert unreceived_changes.last_correction(db) == repaired
    assert unreceived_changes.has_unreceived(db, NODE), "no other has it yet"


def test_what_a_peer_may_have_is_not_repaired(db: Connection) -> None:
    unreceived_changes.last_received(db)
    write(db, NOW + HOUR)
    unreceived_changes.correct_at_start(db, node=NODE, given=changes.newest(db), now=NOW)
    before = stamps(db)
    found = unreceived_changes.count_ahead(db, node=NODE, now=NOW)
    assert found == ({}, {"project": 1, "contract": 1, "context": 1})
    assert unreceived_changes.correct_by_operator(db, node=NODE, now=NOW) is None
    assert stamps(db) == before
