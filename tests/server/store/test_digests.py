"""Digests follow the log of changes (design §7)."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peers import digest
from peers.digest import Name
from peers.receipts import signed
from schemas.base import iso
from schemas.context import ContextPacket
from schemas.facts import ResponseFact, VersionFact, json_of
from server.domain import contract as domain
from server.domain.location import Location
from server.domain.receipts import fact_of
from server.domain.registers import RepoClaim
from server.store import changes, claims, context_packets, contracts, digests, files, projects
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.files import File, FileRequestRow
from server.store.opening import connect
from server.store.projects import ProjectHeader
from server.store.sql import SQL
from tests.server.domain.histories import API, RUNNERS, WEB, propose, run_of, versions
from tests.server.store.conftest import PROJECT, repo
from tests.support.fresh_store import fresh_store
from tests.support.growth import grows_linearly

AGENT = "aid://example.com/a@1.0.0"
NAME = Name("project", PROJECT, PROJECT)
PLACE = digest.place_of(NAME)


def changed(db: Connection, entity: str, entity_id: str) -> None:
    changes.append(
        db,
        at=1,
        origin="node",
        actor="agent",
        action="m",
        entity=entity,
        entity_id=entity_id,
        project_id=PROJECT,
        outcome="x",
    )


def packet(packet_id: str, stamp: int = 5, **content: Any) -> ContextPacket:
    return ContextPacket(
        packet_id=packet_id,
        from_repo="r",
        from_agent=AGENT,
        timestamp=iso(stamp),
        type="question",
        content=content,
        related_contracts=[],
    )


def sums(db: Connection) -> list[dict[str, str]]:
    return [digests.sums_below(db, PLACE[:length]) for length in range(digest.DEPTH)]


def test_a_project_counts_with_its_repos_and_claims(db: Connection, project: ProjectHeader) -> None:
    assert digests.sums_below(db, "") == {}
    changed(db, "project", PROJECT)
    assert digests.catch_up(db)
    first = digests.leaves_at(db, PLACE)
    assert list(first) == [NAME]
    assert [list(one.values()) for one in sums(db)] == [list(first.values())] * 3
    joined = repo("frontend-app", stamp=5)
    projects.insert_repo(db, PROJECT, joined)
    changed(db, "repo", joined.repo_id)
    assert digests.catch_up(db)
    assert digests.leaves_at(db, PLACE) != first
    assert [list(one.values()) for one in sums(db)] == [
        list(digests.leaves_at(db, PLACE).values())
    ] * 3


def test_it_counts_page_by_page_and_each_change_once(
    db: Connection, project: ProjectHeader
) -> None:
    for number in range(70):
        context_packets.insert(db, PROJECT, packet(f"packet {number}"))
        changed(db, "context", f"packet {number}")
    assert digests.is_behind(db)
    assert [digests.catch_up(db), digests.catch_up(db)] == [False, True]
    assert not digests.is_behind(db)
    before = sums(db)
    assert digests.catch_up(db)
    changed(db, "context", "packet 7")
    assert digests.catch_up(db)
    assert sums(db) == before, "nothing is other than it was"


def test_receipts_have_a_digest_beside_that_of_their_contract(
    db: Connection, project: ProjectHeader
) -> None:
    """A node of an earlier release, which has none, counts the same contract."""
    version = propose(API, WEB)
    header = ContractHeader("api_endpoint", "n", 1)
    [first] = version.values()
    assert isinstance(first, VersionFact)
    contracts.insert(db, PROJECT, "c", header, first)
    contract, receipts = Name("contract", PROJECT, "c"), Name("receipt", PROJECT, "c")
    before, none = (digests.leaf_of(db, name) for name in (contract, receipts))
    fact = fact_of(signed(run_of(contract_id="c"), RUNNERS[0]), 5)
    contracts.add(db, PROJECT, "c", header, version, [fact])
    assert digests.leaf_of(db, contract) == before
    assert digests.leaf_of(db, receipts) != none
    changed(db, "receipt", "c")
    assert digests.catch_up(db)
    assert digests.held_of(db, receipts) == digests.leaf_of(db, receipts)


def test_what_is_not_synchronised_does_not_count(db: Connection, project: ProjectHeader) -> None:
    changed(db, "peer", "agent")
    changed(db, "conflict", PROJECT)
    assert digests.catch_up(db)
    assert digests.sums_below(db, "") == {}


def test_what_is_held_is_one_digest_and_counts(db: Connection, project: ProjectHeader) -> None:
    assert digests.held(db) == digests.HoldingsSummary(digest.NOTHING, 1, 0, 0, 0, 0, 0)
    changed(db, "project", PROJECT)
    changed(db, "conflict", "c")
    digests.catch_up(db)
    found = digests.held(db)
    # That a conflict was heard of is no more than that: the facts tell how many there are.
    assert (found.digest, found.conflicts) == (digests.leaves_at(db, PLACE)[NAME], 0)


@given(st.lists(versions(), min_size=1, max_size=8))
def test_conflicts_are_counted_as_the_facts_tell_them(found: list[VersionFact]) -> None:
    """In SQL as in the domain, whatever was written apart and in whichever order it came."""
    facts = domain.join({}, found)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for sql in TABLES:
            db.execute(sql)
        for (kind, key), fact in facts.items():
            body = json_of(fact).decode()
            db.execute("INSERT INTO facts VALUES ('c', ?, ?, ?, ?)", (kind, key, fact.stamp, body))
        assert SQL.held_counts(db)[4] == len(domain.conflicts_of(facts))


def counted(versions: int) -> int:
    """The conflicts of a contract whose versions all have one content."""
    content = orjson.dumps({"digest": "d", "parent": "d"}).decode()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for sql in TABLES:
            db.execute(sql)
        db.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < :versions) "
            "INSERT INTO facts "
            "SELECT 'c', 'version', n, n, json_set(:content, '$.version', n) FROM n",
            {"versions": versions, "content": content},
        )
        return int(SQL.held_counts(db)[4])


def test_what_is_held_is_counted_at_the_cost_of_each_version() -> None:
    """Also where a party has written the same content again and again."""
    assert counted(100) == 0
    assert grows_linearly(counted, 400)


TABLES = [
    "CREATE TABLE facts (contract_id, kind, key, stamp, body)",
    *(
        f"CREATE TABLE {name} (id)"
        for name in ("projects", "contracts", "packets", "files", "set_aside")
    ),
    "CREATE TABLE claim_conflicts (project_id, repo_id, agent_id, claimed_at)",
    "CREATE TABLE claim_releases (project_id, repo_id, agent_id, released_at)",
]


# --- equal content, equal digests; different content, different digests --------------------------

Write = Callable[[Connection], None]
WORDS = st.text("abcé\U0001f600", min_size=1, max_size=4)
CONTENT = st.dictionaries(WORDS, st.none() | st.integers(0, 9) | WORDS | st.floats(0, 1))


def reordered(content: dict[str, Any], chance: Random) -> dict[str, Any]:
    names = list(content)
    chance.shuffle(names)
    return {name: content[name] for name in names}


def a_packet(number: int, word: str, content: dict[str, Any], chance: Random) -> Write:
    def write(db: Connection) -> None:
        one = packet(f"p{number}", 5, word=word, c=reordered(content, chance))
        context_packets.insert(db, PROJECT, one, signature=chance.choice([None, '{"node":"n"}']))
        changed(db, "context", f"p{number}")

    return write


def a_contract(number: int, word: str, content: dict[str, Any], chance: Random) -> Write:
    def write(db: Connection) -> None:
        said = reordered(content, chance)
        version = VersionFact(
            version=1,
            digest="d" * 64,
            stamp=2,
            content=said,
            parties=("r",),
            policy="any",
            repo_id="r",
            agent_id=AGENT,
        )
        answer = ResponseFact(
            version=1,
            digest="d" * 64,
            stamp=3,
            action="reject",
            suggested_change=said,
            repo_id="r",
            agent_id=AGENT,
        )
        at, header = f"c{number}", contracts.ContractHeader("custom", word, 2)
        contracts.insert(db, PROJECT, at, header, version)
        facts = contracts.facts_of(db, at)
        contracts.add(db, PROJECT, at, header, facts, [answer])
        changed(db, "contract", at)

    return write


def a_file(number: int, word: str, content: dict[str, Any], chance: Random) -> Write:
    def write(db: Connection) -> None:
        text = orjson.dumps(sorted(content)).decode()
        said = File(f"f{number}", word, "t", 1, "ab", text, "[]", "r", "a", None, 5)
        files.put(db, PROJECT, said)
        files.put_request(db, PROJECT, FileRequestRow(f"q{number}", "r", "a", word, None, 6))
        changed(db, "file", f"f{number}")
        changed(db, "file_request", f"q{number}")

    return write


def a_repo(number: int, word: str, content: dict[str, Any], chance: Random) -> Write:
    def write(db: Connection) -> None:
        one = repo(f"repo{number}", stamp=7)._replace(role=word, url=str(sorted(content)))
        projects.insert_repo(db, PROJECT, one)
        claim = RepoClaim(AGENT, None, 8, 8 + len(content))
        claims.settle(db, PROJECT, one.repo_id, [claim])
        changed(db, "repo", one.repo_id)

    return write


KINDS = (a_packet, a_contract, a_file, a_repo)
HISTORY = st.lists(st.tuples(st.sampled_from(KINDS), WORDS, CONTENT), min_size=1, max_size=8)


def held(location: Location, history: list[Any], chance: Random) -> str:
    """The digest of all, after these were written in any order."""
    writes = [make(at, word, content, chance) for at, (make, word, content) in enumerate(history)]
    chance.shuffle(writes)
    with closing(connect(location)) as db:
        db.execute("BEGIN IMMEDIATE")
        header = ProjectHeader(PROJECT, "n", "o", "planning", "any", 1, 1)
        projects.insert(db, header, [])
        changed(db, "project", PROJECT)
        for write in writes:
            write(db)
            if chance.random() < 0.3:
                digests.catch_up(db)
        while not digests.catch_up(db):
            pass
        found = digests.held(db).digest
        db.execute("ROLLBACK")
        return found


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    with fresh_store(tmp_path_factory.mktemp("digests") / "cacp.db") as made:
        yield made


@given(HISTORY, st.randoms(use_true_random=False))
def test_equal_content_has_equal_digests_in_whatever_order_it_came(
    empty: Location, history: list[Any], chance: Random
) -> None:
    """Order of arrival, order of members and signatures are no content."""
    assert held(empty, history, chance) == held(empty, history, chance)


@given(HISTORY, st.data())
def test_whatever_differs_differs_in_its_digest(
    empty: Location, history: list[Any], data: Any
) -> None:
    """An id alone says nothing: equal digests are equal content."""
    at = data.draw(st.integers(0, len(history) - 1))
    make, word, content = history[at]
    changed_one = [*history[:at], (make, word + "x", content), *history[at + 1 :]]
    chance = Random(0)
    assert held(empty, history, chance) != held(empty, changed_one, chance)


def test_a_row_that_no_node_can_have_signed_counts_as_it_is(
    db: Connection, project: ProjectHeader
) -> None:
    context_packets.insert(db, PROJECT, packet("p"))
    changed(db, "context", "p")
    assert digests.catch_up(db)
    before = digests.held(db).digest
    db.execute("UPDATE packets SET document = '{damaged'")
    changed(db, "context", "p")
    assert digests.catch_up(db)
    assert digests.held(db).digest != before
