"""What was exchanged with a foreign peer, on a real file (design §8)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from peers.digest import Name
from peers.foreign import ContractExchange
from peers.foreign_plan import Shown, shown_of
from schemas.facts import VersionFact
from schemas.sync import PeerContract
from server.domain.canonical import digest
from server.mesh.foreign_exchange import (
    LocalProject,
    differing_contracts,
    holds_repo,
    load_entities,
    load_project,
    local_ids,
    may_read_parts,
    note_sending,
    note_sent,
    note_sent_project,
    unmerged_messages,
    written_for,
)
from server.store import contracts, peers, projects
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.group_commit import Transaction
from server.store.peers import Peer
from server.store.projects import Repo
from tests.support.located import connect, prepare

CONTENT: dict[str, Any] = {"a": 1}
PEER = Peer("aid://example.com/mobile@1.0.0", "http://127.0.0.1:1", "mobile-app", "unkeyed", 1, 1)
CONTRACT = Name("contract", "p", "c")
PROJECT = Name("project", "p", "p")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Connection]:
    """A project of two repos with one contract."""
    prepare(tmp_path / "a.db")
    with closing(connect(tmp_path / "a.db")) as db:
        header = projects.ProjectHeader("p", "ours", "o", "planning", "any", 1, 1)
        repos = [Repo(f"our-{name}", name, "r", "l", "[]", None, 1) for name in ("a", "mobile-app")]
        projects.insert(db, header, repos)
        first = VersionFact(
            version=1,
            digest=digest(CONTENT),
            content=CONTENT,
            repo_id="our-a",
            agent_id="a",
            parties=("our-a", "our-mobile-app"),
            policy="any",
            stamp=5,
        )
        contracts.insert(db, "p", "c", ContractHeader("custom", "C", 5), first)
        yield db


def ours_in(db: Connection) -> LocalProject:
    found = load_entities(PEER, "p", [CONTRACT], db)
    assert found is not None
    return found


def shown(**more: Any) -> Shown:
    repos = [{"repo_id": "x", "name": "a"}, {"repo_id": "y", "name": "mobile-app"}]
    return shown_of({"project_id": "p", "name": "ours", "repos": repos} | more, "p")


def theirs(**more: Any) -> dict[str, Any]:
    return {
        "contract_id": "c",
        "type": "custom",
        "name": "C",
        "version": 1,
        "status": "proposed",
        "content": CONTENT,
        "proposed_by": "x",
        "updated_at": "2026-01-01T00:00:05",
    } | more


def exchange(db: Connection) -> ContractExchange:
    kept = peers.exchanged(db, PEER.agent_id, "c")
    assert kept is not None
    return ContractExchange.model_validate_json(kept)


def hear(db: Connection, **said: Any) -> None:
    """Remember that the peer has said something of the contract."""
    with_our_ids = theirs(proposed_by="our-a") | said
    heard = ContractExchange().after_hearing(PeerContract.model_validate(with_our_ids))
    peers.put_exchanged(db, PEER.agent_id, "c", heard.model_dump_json())


def writing(db: Connection) -> Transaction:
    return Transaction(db, 10, 10)


def test_what_is_asked_for_is_held_or_all_of_it(db: Connection) -> None:
    some = ours_in(db)
    assert (some.project["contracts"], list(some.contracts)) == ([], ["c"])
    assert some.exchanged == {"c": None}
    whole = load_project(PEER, "p", db)
    assert whole is not None
    assert whole.project["contracts"] == list(whole.contracts.values())
    gone = load_entities(
        PEER, "p", [Name("contract", "p", "?"), Name("context", "p", "?"), PROJECT], db
    )
    assert gone is not None
    assert (gone.contracts, gone.packets) == ({}, {})
    assert load_entities(PEER, "nowhere", [], db) is load_project(PEER, "nowhere", db) is None


def test_ids_are_told_apart_by_the_names_of_repos(db: Connection) -> None:
    ours = ours_in(db)
    assert local_ids(ours, shown()) == {"x": "our-a", "y": "our-mobile-app"}
    assert written_for(ours.contracts["c"], ours, shown())["proposed_by"] == "x"
    assert written_for(ours.contracts["c"], ours, shown(repos=[]))["proposed_by"] == "our-a"


def test_what_was_exchanged_before_is_not_heard_again(db: Connection) -> None:
    found = shown(contracts=[theirs()])
    assert list(unmerged_messages(PEER, "p", found, db)) == [PROJECT, CONTRACT]
    hear(db)
    assert list(unmerged_messages(PEER, "p", found, db)) == [PROJECT]
    for later in ({"updated_at": "2026-01-01T00:00:06"}, {"status": "agreed"}, {"status": "odd"}):
        assert CONTRACT in unmerged_messages(PEER, "p", shown(contracts=[theirs(**later)]), db)


def test_only_packets_of_the_peers_own_are_heard(db: Connection) -> None:
    said = [
        {"packet_id": "1", "from_agent": PEER.agent_id},
        {"packet_id": "2", "from_agent": "aid://example.com/mobile@1.1.0"},
        {"packet_id": "3", "from_agent": "aid://example.com/other@1.0.0"},
        {"packet_id": "4"},
    ]
    found = unmerged_messages(PEER, "p", shown(context_history=said), db)
    assert [name.entity_id for name in found] == ["p", "1", "2"]


def test_what_a_peer_shows_otherwise_than_it_is_held_it_lacks(db: Connection) -> None:
    def told(*contracts: dict[str, Any]) -> dict[Name, str]:
        return differing_contracts("p", shown(contracts=list(contracts)), db)

    same, unknown = theirs(), theirs(contract_id="unknown")
    assert told() == told(same) == told(same, unknown) == {}
    less = told(theirs(status="negotiating"))
    assert list(less) == [CONTRACT]
    assert less == told(theirs(status="negotiating", updated_at="2027-01-01T00:00:00"))
    assert less != told(theirs(status="agreed"))
    assert told(theirs(version=2)) == {}, "that is not ours to replace"
    assert told(theirs(name="x" * 300)) == {}, "it was not merged"


def test_what_the_peer_has_taken_is_the_last_word(db: Connection) -> None:
    hear(db)
    ours = ours_in(db)
    written = {"updated_at": "2026-01-01T00:00:05.000001"}
    assert not note_sent(PEER, CONTRACT, ours, written, writing(db))
    last = exchange(db).last
    assert last is not None
    assert (last.proposed_by, last.updated_at) == ("our-a", written["updated_at"])


def test_what_the_peer_says_meanwhile_stays_its_last_word(db: Connection) -> None:
    """It came after what was sent, which it took only over what it had shown."""
    ours = ours_in(db)
    ours.contracts["c"]["status"] = "negotiating"
    hear(db, status="agreed")
    assert note_sent(PEER, CONTRACT, ours, theirs(), writing(db)), "ours is another by now"
    last = exchange(db).last
    assert last is not None
    assert last.status == "agreed"
    ours.contracts["c"]["status"] = "proposed"
    assert not note_sent(PEER, CONTRACT, ours, theirs(), writing(db)), "ours is what was sent"


def test_a_whole_project_is_remembered_with_its_header(db: Connection) -> None:
    whole = load_project(PEER, "p", db)
    assert whole is not None
    assert note_sent_project(PEER, whole, whole.project, writing(db)) == []
    assert peers.exchanged(db, PEER.agent_id, "p") == (
        '{"name":"ours","objective":"o","status":"planning"}'
    )
    assert exchange(db).last is not None
    header = projects.header(db, "p")
    assert header is not None
    projects.update_header(db, header._replace(status="complete"))
    hear(db, status="agreed")
    whole.contracts["c"]["status"] = "negotiating"
    assert note_sent_project(PEER, whole, whole.project, writing(db)) == [CONTRACT, PROJECT]


def test_of_a_part_only_contracts_are_heard(db: Connection) -> None:
    part = shown(name="other").part({"c": theirs(status="agreed")})
    assert list(unmerged_messages(PEER, "p", part, db)) == [CONTRACT]


def test_parts_are_read_of_a_project_of_the_peers_whose_repos_it_has_shown(
    db: Connection,
) -> None:
    assert not may_read_parts(PEER, "p", shown(), db), "it holds no repo of it here"
    projects.update_claim(db, "p", "our-mobile-app", PEER.agent_id, None, 1)
    assert may_read_parts(PEER, "p", shown(), db)
    assert not may_read_parts(PEER, "p", shown(repos=[]), db)


def test_a_project_is_the_peers_by_a_repo_of_its_agent() -> None:
    repo = {"repo_id": "x", "name": "a"}
    for own in ({"agent_id": PEER.agent_id}, {"assigned_agent": PEER.agent_id}):
        assert holds_repo(PEER, shown(repos=[repo | own]))
    for other in ({}, {"agent_id": "aid://x/other@1"}, {"agent_id": 1}):
        assert not holds_repo(PEER, shown(repos=[repo | other]))


def test_what_is_on_its_way_is_known_before_it_is_taken(db: Connection) -> None:
    ours = ours_in(db)
    written = written_for(ours.contracts["c"], ours, shown())
    to = writing(db)
    note_sending(PEER, CONTRACT, ours, written, to)
    pending = exchange(db).pending
    assert pending is not None
    assert (pending.version, exchange(db).last) == (1, None)
    assert not note_sent(PEER, CONTRACT, ours, written, to), "that it was on its way is no crossing"
    assert (exchange(db).pending, exchange(db).last) == (None, pending)
