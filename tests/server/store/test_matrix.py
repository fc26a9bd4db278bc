"""The contracts of a project in short, as their whole facts have it."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.facts import Fact
from server.domain.contract import FactKey, Facts
from server.store import contracts, matrix
from server.store.connection import Connection
from server.store.contracts import ContractHeader
from server.store.projects import ProjectHeader
from tests.server.domain.histories import API, CONTENTS, IOS, WEB, histories, propose
from tests.server.domain.story import Story, story_in
from tests.server.domain.test_matrix import awaited_of, line_of, steps_of

HEADER = ContractHeader("api_endpoint", "login", 1)


def store(db: Connection, project_id: str, contract_id: str, facts: Facts) -> None:
    """Store facts under an id of their own."""
    contracts.add(db, project_id, contract_id, HEADER, {}, facts.values())
    columns = "type, name, version, status, proposed_by, created_at, updated_at, document, history"
    db.execute(
        f"INSERT INTO contracts (project_id, contract_id, {columns})"
        " VALUES (?, ?, '', '', 0, '', '', 0, 0, '', '')",
        (project_id, contract_id),
    )
    contracts.renew_copy(db, project_id, contract_id, HEADER, facts)


def check(db: Connection, project_id: str, kept: dict[str, Facts]) -> None:
    """What is read of these contracts is what follows from their facts."""
    lines = matrix.contract_lines(db, project_id)
    assert lines == [line_of(facts, contract_id) for contract_id, facts in sorted(kept.items())]
    steps = matrix.party_steps(db, project_id, kept)
    awaited = matrix.awaited_steps(db, project_id)
    for contract_id, facts in kept.items():
        assert sorted(steps.get(contract_id, [])) == sorted(steps_of(facts))
        assert awaited.get(contract_id, {}) == awaited_of(facts)


def test_contracts_in_every_state(db: Connection, project: ProjectHeader) -> None:
    kept: dict[str, Facts] = {
        "negotiating": story_in("negotiating").facts,
        "verified": story_in("verified").facts,
    }
    broken = story_in("implemented")
    broken.then(WEB, "failure")
    kept["broken"] = broken.facts
    revised = Story(API, WEB, IOS)
    revised.then(WEB, "update")
    kept["revised"] = revised.facts
    for contract_id, facts in kept.items():
        store(db, project.project_id, contract_id, facts)
    check(db, project.project_id, kept)
    assert matrix.contract_lines(db, "another") == []
    assert matrix.party_steps(db, "another", kept) == {}


def test_of_races_the_current_version_is_read(db: Connection, project: ProjectHeader) -> None:
    versions = [
        propose(API, WEB, content=CONTENTS[0], stamp=5),
        propose(WEB, API, content=CONTENTS[1], stamp=4),
        propose(API, WEB, IOS, content=CONTENTS[0], stamp=1),
    ]
    raced: dict[FactKey, Fact] = {}
    for version in versions:
        raced |= version
    store(db, project.project_id, "raced", raced)
    check(db, project.project_id, {"raced": raced})


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(held=st.lists(histories(2), min_size=1, max_size=2))
def test_any_history_is_read_as_it_is(
    db: Connection, project: ProjectHeader, held: list[list[Facts]]
) -> None:
    kept = {f"c{place}": facts for place, [facts, *_] in enumerate(held)}
    db.execute("BEGIN IMMEDIATE")
    for contract_id, facts in kept.items():
        store(db, project.project_id, contract_id, facts)
    check(db, project.project_id, kept)
    db.execute("ROLLBACK")
