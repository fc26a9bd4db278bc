"""The rows from which the overview of attention is made."""

import pytest

from server.domain.attention.items import ItemCache
from server.domain.attention.overview import AwaitedParty, OpenSubjectNote
from server.store import attention_overview as store
from server.store import context_packets, keys
from server.store.connection import Connection
from server.store.projects import ProjectHeader
from server.store.projects import insert_repo as add_repo
from tests.server.store.conftest import PROJECT, repo
from tests.server.store.test_attention_index import packet, proposed

ANA = "aid://example.com/ana@1.0.0"


def test_openings_stand_together_by_subject_and_kind(
    db: Connection, project: ProjectHeader
) -> None:
    proposed(db, "c1")
    proposed(db, "c2")
    context_packets.insert(db, PROJECT, packet("q1", "api", "question"))
    groups = store.open_groups(db, None)
    assert [(group.subject_id, group.key[3]) for group in groups] == [
        ("c1", False),
        ("c2", False),
        ("q1", True),
    ]
    assert {opening.kind for group in groups[:2] for opening in group.openings} == {"respond"}
    assert store.open_groups(db, f'["{PROJECT}"]') == groups
    assert store.open_groups(db, '["other"]') == []


def test_notes_say_what_is_shown_of_a_subject(db: Connection, project: ProjectHeader) -> None:
    proposed(db, "c1")
    context_packets.insert(db, PROJECT, packet("q1", "api", "question"))
    cache: store.Notes = ItemCache()
    wanted = [group.key for group in store.open_groups(db, None)]
    notes = store.notes_of(db, wanted, cache)
    contract, question = (notes[key] for key in wanted)
    assert (contract.version, contract.author) == (1, "api")
    assert set(contract.interested) == {"api", "web"}
    assert question.interested == (question.author,) == ("api",)
    assert all(cache.get(key) == note for key, note in notes.items())
    cache.put(wanted[0], OpenSubjectNote("kept", "a"))
    assert store.notes_of(db, wanted, cache)[wanted[0]].name == "kept"


def test_projects_have_their_repos_and_who_holds_them(
    db: Connection, project: ProjectHeader
) -> None:
    web = repo("web", stamp=2_000)._replace(agent_id=ANA, claimed_at=2_000)
    add_repo(db, PROJECT, web)
    free = repo("ios", stamp=3_000)
    add_repo(db, PROJECT, free)
    projects, _ = store.projects_of(db, [PROJECT, "unknown"])
    assert list(projects) == [PROJECT]
    assert projects[PROJECT].party(web.repo_id) == AwaitedParty(
        web.repo_id, "web", "aid://example.com/ana"
    )
    vacant = [place[1] for place in store.vacant_repos(db, None)]
    assert free.repo_id in vacant
    assert web.repo_id not in vacant
    assert store.vacant_repos(db, "[]") == []


@pytest.mark.parametrize("human", [False, True])
def test_who_has_a_key_and_who_of_them_is_human(db: Connection, human: bool) -> None:
    key = keys.new_key()
    keys.add(db, key, agent_id=ANA, repo="web", now=1, human=human)
    everyone, humans = store.agents_with_keys(db)
    assert everyone == {"aid://example.com/ana"}
    assert humans == (everyone if human else frozenset())
