"""The full-text index: what is in it, who finds it, and how it is kept."""

from typing import Any

import pytest

from server.domain.errors import Unavailable
from server.domain.search import parse
from server.store import search
from server.store.connection import Connection
from server.store.projects import ProjectHeader
from server.store.search import SearchReader
from tests.server.store.conftest import PROJECT

ALL = SearchReader("aid://example.com/ana", human=False, projects=None)


def index(db: Connection) -> None:
    """Do what the worker does, to the end."""
    if not search.is_ready(db):
        search.rebuild(db)
    while search.waiting(db):
        search.index_next(db, 3)


def ids(db: Connection, text: str, reader: SearchReader = ALL, **more: Any) -> list[str]:
    given: dict[str, Any] = {"kinds": ("mail", "context", "contract"), "before": None, "limit": 50}
    given |= more
    return [hit.entity_id for hit in search.hits(db, parse(text), reader, **given)]


def put_contract(db: Connection, contract_id: str, name: str, content: str) -> None:
    document = f'{{"name":"{name}","type":"api_endpoint","content":{content},"implementations":[]}}'
    db.execute(
        "INSERT INTO contracts (project_id, contract_id, type, name, version, status,"
        " proposed_by, created_at, updated_at, document, history)"
        " VALUES (?, ?, 'api_endpoint', ?, 1, 'proposed', 'r', 1, 1, ?, '[]')",
        (PROJECT, contract_id, name, document),
    )


@pytest.fixture
def contracts(db: Connection, project: ProjectHeader) -> Connection:
    for number in range(7):
        put_contract(db, f"c{number}", f"Contract {number}", f'{{"path":"/users/{number}x"}}')
    put_contract(db, "camel", "createUserSession", '{"session_token":"string"}')
    index(db)
    return db


def test_what_was_stored_before_is_found(contracts: Connection) -> None:
    assert ids(contracts, "users") == [f"c{number}" for number in reversed(range(7))]
    assert ids(contracts, '"users 3x"') == ["c3"]
    assert ids(contracts, "users -3x -4x", limit=2) == ["c6", "c5"]
    assert ids(contracts, "nothing") == []


@pytest.mark.parametrize(
    "text", ["createUserSession", "create_user_session", "user", "sess*", "session-token", "TOKEN"]
)
def test_identifiers_are_found_by_their_parts(contracts: Connection, text: str) -> None:
    assert "camel" in ids(contracts, text)


def test_pages_follow_each_other(contracts: Connection) -> None:
    before: int | None = None
    seen: list[str] = []
    while page := search.hits(contracts, parse("users"), ALL, ("contract",), before, 3):
        seen += [hit.entity_id for hit in page]
        before = page[-1].place
    assert seen == [f"c{number}" for number in reversed(range(7))]


def test_only_the_projects_and_kinds_of_the_reader(contracts: Connection) -> None:
    other = ALL._replace(projects=frozenset({"other"}))
    own = ALL._replace(projects=frozenset({"other", PROJECT}))
    assert ids(contracts, "camel OR session", other) == []
    assert ids(contracts, "createUser", own) == ["camel"]
    assert ids(contracts, "createUser", own, kinds=("mail", "context")) == []
    assert ids(contracts, "kindcontract") == [], "a scope is not a text"
    assert ids(contracts, "createUser", ALL._replace(projects=frozenset())) == []


def test_a_change_replaces_what_was_indexed(contracts: Connection) -> None:
    contracts.execute(
        "UPDATE contracts SET document = replace(document, 'users/3x', 'orders/9y')"
        " WHERE contract_id = 'c3'"
    )
    index(contracts)
    assert (ids(contracts, "orders"), ids(contracts, "3x")) == (["c3"], [])
    assert search.damage(contracts) is None


def test_what_is_removed_leaves_the_index(contracts: Connection) -> None:
    contracts.execute("DELETE FROM contracts WHERE contract_id <> 'camel'")
    assert ids(contracts, "users") == [], "at once, before the worker knows"
    index(contracts)
    assert search.damage(contracts) is None
    rows = contracts.execute("SELECT entity_id FROM search_docs").fetchall()
    assert rows == [("camel",)]
    contracts.execute("DELETE FROM contracts")
    index(contracts)
    assert search.damage(contracts) is None
    assert contracts.execute("SELECT entity_id FROM search_docs").fetchall() == []


def test_an_unchanged_document_is_not_indexed_again(contracts: Connection) -> None:
    before = contracts.execute("SELECT id FROM search_docs ORDER BY id").fetchall()
    contracts.execute("UPDATE contracts SET document = document")
    index(contracts)
    assert contracts.execute("SELECT id FROM search_docs ORDER BY id").fetchall() == before


@pytest.mark.sqlite
def test_a_damaged_index_is_told_from_a_damaged_database_and_made_anew(
    contracts: Connection,
) -> None:
    contracts.execute("UPDATE search_index_data SET block = x'00' WHERE id > 10")
    assert search.damage(contracts) is not None
    with pytest.raises(Unavailable, match="cacp reindex") as refused:
        ids(contracts, "users")
    assert refused.value.data["reason"] == "search_damaged"
    search.rebuild(contracts)
    index(contracts)
    assert len(ids(contracts, "users")) == 7
    assert search.damage(contracts) is None


def test_other_rules_need_another_index(
    contracts: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search.is_ready(contracts)
    monkeypatch.setattr(search, "RULES", "other")
    assert not search.is_ready(contracts)
    index(contracts)
    assert search.is_ready(contracts)
    assert len(ids(contracts, "users")) == 7


def test_without_an_index_nothing_is_found(db: Connection) -> None:
    assert ids(db, "users") == []
    assert search.damage(db) is None
