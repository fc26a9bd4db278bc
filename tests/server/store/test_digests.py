"""Digests follow the log of changes (design §6, Anti-entropy)."""

import sqlite3

from peers import digest
from peers.digest import Name
from server.store import changes, digests, projects
from server.store.projects import Header
from tests.server.store.conftest import PROJECT, repo

NAME = Name("project", PROJECT, PROJECT)
PLACE = digest.place_of(NAME)


def changed(db: sqlite3.Connection, entity: str, entity_id: str) -> None:
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


def sums(db: sqlite3.Connection) -> list[dict[str, str]]:
    return [digests.sums_below(db, PLACE[:length]) for length in range(digest.DEPTH)]


def test_a_project_counts_with_its_repos_and_claims(
    db: sqlite3.Connection, project: Header
) -> None:
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
    db: sqlite3.Connection, project: Header
) -> None:
    for number in range(70):
        changed(db, "context", f"packet {number}")
    assert digests.is_behind(db)
    assert [digests.catch_up(db), digests.catch_up(db)] == [False, True]
    assert not digests.is_behind(db)
    before = sums(db)
    assert digests.catch_up(db)
    changed(db, "context", "packet 7")
    assert digests.catch_up(db)
    assert sums(db) == before, "a packet is immutable"


def test_what_is_not_synchronised_does_not_count(db: sqlite3.Connection, project: Header) -> None:
    changed(db, "peer", "agent")
    changed(db, "conflict", PROJECT)
    assert digests.catch_up(db)
    assert digests.sums_below(db, "") == {}


def test_what_is_held_is_one_digest_and_counts(db: sqlite3.Connection, project: Header) -> None:
    assert digests.held(db) == digests.Held(digest.NOTHING, 1, 0, 0, 0, 0, 0)
    changed(db, "project", PROJECT)
    changed(db, "conflict", "c")
    digests.catch_up(db)
    found = digests.held(db)
    assert (found.digest, found.conflicts) == (digests.leaves_at(db, PLACE)[NAME], 1)
