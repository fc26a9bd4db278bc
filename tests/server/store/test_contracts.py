"""Contracts: facts on disk, and the copy that readers get (design §7)."""

import sqlite3
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from schemas.contract import Contract
from schemas.facts import Fact, VersionFact
from server.domain import contract as domain
from server.domain import contract_steps
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.contract_steps import Party
from server.store import contracts, deferred
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.deferred import DeferredMessage
from server.store.projects import ProjectHeader as Project

HEADER = ContractHeader("data_model", "User", 1_000)
BACKEND = Party("backend", "aid://example.com/backend@1.0.0")
FRONTEND = Party("frontend", "aid://example.com/frontend@1.0.0")
FIRST = {"id": "integer"}
SECOND = {"id": "string"}


@pytest.fixture
def contract(db: Connection, project: Project) -> str:
    """A contract, proposed by the backend."""
    version = VersionFact(
        version=1,
        digest=digest(FIRST),
        content=FIRST,
        repo_id=BACKEND.repo_id,
        agent_id=BACKEND.agent_id,
        parties=(BACKEND.repo_id, FRONTEND.repo_id),
        policy="any",
        stamp=1_000,
    )
    contracts.insert(db, project.project_id, "c1", HEADER, version)
    return "c1"


def test_an_outline_names_a_contract_without_its_content(
    db: Connection, project: Project, contract: str
) -> None:
    whole = read(db, project, contract, history=False)
    outline = contracts.outline(db, project.project_id, contract)
    assert outline == whole | {"content": {}, "implementations": []}


def test_what_is_new(db: Connection, contract: str) -> None:
    waits = DeferredMessage("aid://example.com/beta@1.0.0", "cacp/contract/sync", "{}", "1")
    deferred.put(db, waits, "predecessor", "c2", due=10, now=0)
    late = waits._replace(identity="2")
    deferred.put(db, late, "stamp", "c3", due=10, now=0)
    assert contracts.new(db, [contract, "c2", "c3", "c"]) == {"c3", "c"}


def add(db: Connection, project: Project, contract: str, *facts: Any) -> None:
    known = contracts.facts_of(db, contract)
    contracts.add(db, project.project_id, contract, HEADER, known, facts)


def read(db: Connection, project: Project, contract: str, *, history: bool) -> Any:
    found = contracts.document(db, project.project_id, contract, history=history)
    return None if found is None else orjson.loads(orjson.dumps(found))


def test_a_contract_is_read_as_it_was_proposed(
    db: Connection, project: Project, contract: str
) -> None:
    assert contracts.header_of(db, project.project_id, contract) == HEADER
    assert contracts.project_of(db, contract) == project.project_id
    [fact] = contracts.facts_of(db, contract).values()
    assert (fact.kind, fact.digest) == ("version", digest(FIRST))
    found = read(db, project, contract, history=False)
    assert (found["status"], found["content"], found["proposed_by"]) == (
        "proposed",
        FIRST,
        "backend",
    )
    assert found["created_at"] == "1970-01-01T00:00:00.001000+00:00"


def test_what_is_not_there(db: Connection, project: Project, contract: str) -> None:
    assert contracts.header_of(db, "other", contract) is None
    assert contracts.project_of(db, "nothing") is None
    assert contracts.facts_of(db, "nothing") == {}
    assert read(db, project, "nothing", history=True) is None


def test_facts_come_back_as_they_were_added(
    db: Connection, project: Project, contract: str
) -> None:
    facts = contracts.facts_of(db, contract)
    response = contract_steps.respond(facts, FRONTEND, "agree", 2_000, comment="ü")
    add(db, project, contract, response)
    assert contracts.facts_of(db, contract) == domain.join(facts, [response])


def test_the_copy_is_what_the_facts_say(db: Connection, project: Project, contract: str) -> None:
    """Design §7: the status is a pure function of the facts; the store keeps a copy."""
    steps: list[Callable[[Facts], Fact]] = [
        lambda facts: contract_steps.respond(facts, FRONTEND, "agree", 2_000),
        lambda facts: contract_steps.implement(facts, BACKEND, "complete", 3_000, files=("a",)),
        lambda facts: contract_steps.implement(facts, FRONTEND, "complete", 4_000),
        lambda facts: contract_steps.respond(facts, FRONTEND, "request_change", 5_000),
        lambda facts: contract_steps.update(
            facts, FRONTEND, SECOND, digest(SECOND), ("backend", "frontend"), 6_000, "note"
        ),
    ]
    for step in steps:
        add(db, project, contract, step(contracts.facts_of(db, contract)))
        facts = contracts.facts_of(db, contract)
        found = read(db, project, contract, history=True)
        assert found["status"] == domain.status_of(facts)
        assert len(found["implementations"]) == len(domain.implementations_of(facts))
        TypeAdapter(Contract).validate_python(found)
    assert found["history"] == [
        {
            "version": 1,
            "content": FIRST,
            "proposed_by": "backend",
            "timestamp": "1970-01-01T00:00:00.001000+00:00",
        }
    ]
    assert "history" not in read(db, project, contract, history=False)
    assert contracts.updated(db, project.project_id) == [contract]
    [whole] = contracts.documents(db, project.project_id)
    assert orjson.loads(orjson.dumps(whole)) == found


@pytest.mark.sqlite
def test_only_a_new_version_writes_the_history(
    db: Connection, project: Project, contract: str
) -> None:
    """A step costs what it says, not what was ever said."""
    statements: list[str] = []
    assert isinstance(db, sqlite3.Connection)
    db.set_trace_callback(statements.append)
    parties = (BACKEND.repo_id, FRONTEND.repo_id)
    second = contract_steps.update(
        contracts.facts_of(db, contract), BACKEND, SECOND, digest(SECOND), parties, 2_000
    )
    for fact, writes in (
        (
            contract_steps.respond(
                contracts.facts_of(db, contract), FRONTEND, "request_change", 1_500
            ),
            0,
        ),
        (second, 1),
    ):
        statements.clear()
        add(db, project, contract, fact)
        assert sum("SET history" in one for one in statements) == writes
    [first] = read(db, project, contract, history=True)["history"]
    assert first["content"] == FIRST


def test_facts_that_are_known_are_not_written_again(
    db: Connection, project: Project, contract: str
) -> None:
    response = contract_steps.respond(contracts.facts_of(db, contract), FRONTEND, "agree", 2_000)
    add(db, project, contract, response)
    before = db.total_changes
    add(db, project, contract, response)
    assert db.total_changes == before


def test_an_older_fact_does_not_replace_a_newer_one(
    db: Connection, project: Project, contract: str
) -> None:
    facts = contracts.facts_of(db, contract)
    add(db, project, contract, contract_steps.respond(facts, FRONTEND, "agree", 3_000))
    add(db, project, contract, contract_steps.respond(facts, FRONTEND, "reject", 2_000))
    assert read(db, project, contract, history=False)["status"] == "agreed"


def test_summaries_by_status_and_type_and_page(
    db: Connection, project: Project, contract: str
) -> None:
    def ids(**chosen: Any) -> list[str]:
        given = {"after": "", "status": None, "type": None, "limit": 10} | chosen
        return [one["contractId"] for one in contracts.summaries(db, project.project_id, **given)]

    assert ids() == ids(status="proposed") == ids(type="data_model") == ["c1"]
    assert ids(status="agreed") == ids(type="custom") == ids(after="c1") == ids(limit=0) == []
