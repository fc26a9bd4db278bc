"""What is taken of the contracts that foreign peers send (design §8)."""

from tests.server.methods.refusals import refused
from tests.server.methods.sync.foreign_peer import (
    MOBILE,
    PEER,
    contract_of,
    key,
    mesh,
    shared,
    sync,
)
from tests.support.node import REPO, Node
from tests.support.team import CONTENT, FRONTEND, Team

__all__ = ["key", "mesh", "shared"]


def test_a_peers_contract_is_taken(shared: Team) -> None:
    """CACP 2.0, cacp/contract/sync."""
    contract = contract_of(proposed_by=shared.repo_id(MOBILE))
    assert sync(shared, contract)["status"] == "created"
    found = shared.contract(contract["contract_id"])
    assert found["content"] == CONTENT
    assert (found["status"], found["proposed_by"]) == ("proposed", shared.repo_id(MOBILE))
    assert found["created_at"] == "2026-01-01T00:00:00.000000+00:00"
    assert sync(shared, contract)["status"] == "skipped", "no difference, no fact"


def test_a_peer_agrees_by_the_status_that_it_sends(shared: Team) -> None:
    """Design §8: each difference becomes a fact authored by that peer's repo."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    assert sync(shared, seen)["status"] == "skipped"
    assert sync(shared, seen | {"status": "agreed"})["status"] == "updated"
    assert shared.contract(contract)["status"] == "agreed"


def test_a_lower_version_that_a_peer_made_apart_is_kept_and_named(shared: Team) -> None:
    """It has lost to ours; the peer's node hears so, and our agents by the stream."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    assert sync(shared, seen)["status"] == "skipped"
    for content in ({"a": 2}, {"a": 3}):
        shared.backend("contract/update", contractId=contract, content=content)
    own = shared.repo(MOBILE)["repo_id"]
    theirs = seen | {"version": 2, "content": {"a": "theirs"}, "proposed_by": own}
    said = sync(shared, theirs)
    assert said["reason"] == "Version 2 is kept as a conflict: it lost to version 3"
    again = sync(shared, theirs | {"updated_at": "2999-01-01T00:00:00"})
    assert (said["status"], again["reason"]) == ("skipped", "nothing new")
    [lost] = shared.backend("contract/conflicts", contractId=contract)["conflicts"]
    assert (lost["content"], lost["proposedBy"]) == ({"a": "theirs"}, own)
    assert shared.contract(contract)["content"] == {"a": 3}


def test_a_peer_rejects_what_was_agreed(shared: Team) -> None:
    """CACP 2.0, cacp/contract/respond: back to proposed, on record, and everybody is told."""
    contract = shared.agreed()
    seen = shared.contract(contract)
    sync(shared, seen)
    assert sync(shared, seen | {"status": "proposed"})["status"] == "updated"
    assert shared.contract(contract)["status"] == "proposed"
    [said] = shared.node.query(
        "SELECT actor, outcome FROM changes WHERE entity_id = ? ORDER BY seq DESC LIMIT 1", contract
    )
    assert said == (PEER, "proposed")


def test_what_a_peer_may_not_say_is_named(shared: Team) -> None:
    """Its node asks for no answer: the log has one line, however often it says so."""
    contract = shared.proposed()
    seen = shared.contract(contract)
    work = {"repo_id": shared.repo_id(MOBILE), "agent_id": PEER, "status": "complete"}
    sync(shared, seen)
    for _ in range(2):
        far = seen | {"version": 5_000, "implementations": [work]}
        assert sync(shared, far)["reason"] == "Its version is too far ahead"
    assert shared.node.log.count(f'"contract": "{contract}"') == 1


def test_a_peer_works_on_what_was_agreed(shared: Team) -> None:
    contract = shared.agreed()
    seen = shared.contract(contract)
    sync(shared, seen)
    work = {
        "repo_id": shared.repo_id(MOBILE),
        "agent_id": PEER,
        "status": "complete",
        "files": ["App/User.swift"],
    }
    assert sync(shared, seen | {"implementations": [work]})["status"] == "updated"
    [found] = shared.contract(contract)["implementations"]
    assert (found["agent_id"], found["status"]) == (PEER, "complete")
    assert found["files"] == ["App/User.swift"]


def test_a_peer_does_not_speak_for_another_repo(shared: Team) -> None:
    """Design §6: for its own repo's facts only."""
    contract = shared.agreed()
    seen = shared.contract(contract)
    work = {"repo_id": shared.repo_id(REPO), "agent_id": "x", "status": "complete"}
    sync(shared, seen)
    sync(shared, seen | {"implementations": [work]})
    assert shared.contract(contract)["implementations"] == []
    other = contract_of(proposed_by=shared.repo_id(REPO))
    assert sync(shared, other)["status"] == "skipped"
    with refused(-32602, "not_found", kind="contract"):
        shared.contract(other["contract_id"])


def test_nothing_that_a_peer_sends_deletes(shared: Team) -> None:
    """Design §8: a merge never deletes."""
    contract = shared.implemented()
    seen = shared.contract(contract)
    sync(shared, seen)
    sync(shared, seen | {"implementations": [], "status": "proposed"})
    found = shared.contract(contract)
    assert len(found["implementations"]) == 2
    assert found["version"] == 1


def test_a_contract_that_has_no_canonical_form_is_skipped(shared: Team) -> None:
    contract = contract_of(proposed_by=shared.repo_id(MOBILE), content={"n": 2**53})
    assert sync(shared, contract)["status"] == "skipped"


def test_a_contract_of_another_project_is_skipped(shared: Team, mesh: Node, key: str) -> None:
    contract = Team.on(mesh, key).proposed()
    result = sync(shared, contract_of(contract_id=contract, proposed_by=shared.repo_id(MOBILE)))
    assert result["status"] == "skipped"


def test_a_party_does_not_verify_what_nobody_has_built(shared: Team) -> None:
    """Design §5: verified follows implemented."""
    contract_id = shared.backend(
        "contract/propose", type="data_model", name="User", content=CONTENT
    )["contractId"]
    shared.frontend("contract/respond", contractId=contract_id, action="agree")
    forged = shared.backend("contract/get", contractId=contract_id) | {
        "status": "verified",
        "updated_at": "2026-01-01T00:00:00",
    }
    assert sync(shared, forged)["status"] == "skipped"
    assert shared.backend("contract/get", contractId=contract_id)["status"] == "agreed"


def test_a_repo_that_is_no_party_writes_no_version_of_what_is_agreed(shared: Team) -> None:
    parties = [shared.repo_id(REPO), shared.repo_id(FRONTEND)]
    contract_id = shared.backend(
        "contract/propose", type="data_model", name="User", content=CONTENT, parties=parties
    )["contractId"]
    shared.frontend("contract/respond", contractId=contract_id, action="agree")
    before = shared.backend("contract/get", contractId=contract_id)
    evil = before | {"version": 2, "content": {"evil": 1}, "updated_at": "2026-01-01T00:00:00"}
    assert sync(shared, evil)["status"] == "skipped"
    assert sync(shared, before | {"version": 5_000, "content": {}})["status"] == "skipped"
    assert shared.backend("contract/get", contractId=contract_id) == before
