"""Receipts that mesh peers send, and hostile ones (N2, "Who is believed")."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from peers.receipts import signed
from peers.signing import SigningKey
from schemas.base import iso
from schemas.facts import members_of
from schemas.receipt import ProofReceipt, ProofRun
from server.domain.canonical import digest
from server.domain.identifiers import repo_id_for
from server.domain.receipts import fact_of
from tests.support.mesh import status
from tests.support.mesh_member import CONTENT, SOME_TIME, MeshMember, pulled
from tests.support.node import Node
from tests.support.runner import CI, COMMIT, PASSED
from tests.support.waiting import eventually

Json = dict[str, Any]
RUNNER = SigningKey(bytes(range(32)))
SECOND = 1_000_000
DONE = SOME_TIME + 10 * SECOND


class World:
    """A contract of beta's that receipts verify: beta provides it, and both have implemented it."""

    def __init__(self, alpha: Node, beta: MeshMember, project: str) -> None:
        self.alpha, self.beta, self.project = alpha, beta, project
        self.contract = str(uuid4())
        self.provider = repo_id_for(project, "beta")
        roles = {self.provider: "provider", repo_id_for(project, "alpha"): "consumer"}
        self.version = beta.version(project, verification="receipt", roles=roles)

    def tell(self) -> None:
        """Beta's node tells of the contract; alpha agrees and completes."""
        work = {
            "kind": "implementation",
            "version": 1,
            "digest": digest(CONTENT),
            "stamp": DONE,
            "repo_id": self.provider,
            "agent_id": self.beta.agent,
            "round": 1,
            "status": "complete",
            "plan": None,
            "files": [],
            "notes": None,
            "test_endpoint": None,
            "started_at": None,
            "completed_at": DONE,
            "commit": COMMIT,
        }
        told = [self.beta.fact(self.contract, body) for body in (self.version, work)]
        assert "skipped" not in self.beta.contract(self.project, self.contract, *told)
        at = {"projectId": self.project, "contractId": self.contract}
        self.alpha.call("cacp/contract/respond", **at, action="agree")
        self.alpha.call("cacp/implementation/complete", **at, commit=COMMIT)

    def receipt(self, **members: Any) -> ProofReceipt:
        given: Json = {
            "contract_id": self.contract,
            "version": 1,
            "digest": digest(CONTENT),
            "round": 1,
            "repo": self.provider,
            "started_at": iso(DONE + SECOND),
            "runner": CI,
        }
        return signed(ProofRun(**(PASSED | given | members)), RUNNER)

    def fact(self, ran: ProofReceipt, stamp: int = DONE + 2 * SECOND, **more: Any) -> Json:
        body = members_of(fact_of(ran, stamp)) | more
        return self.beta.fact(self.contract, body)

    def sends(self, *facts: Json, by: MeshMember | None = None) -> Any:
        receipts = {"contract_id": self.contract, "facts": list(facts)}
        return (by or self.beta).call(
            "cacp/receipt/sync", projectId=self.project, receipts=receipts
        )

    @property
    def status(self) -> str | None:
        return status(self.alpha, self.project, self.contract)

    @property
    def listed(self) -> list[Json]:
        at = {"projectId": self.project, "contractId": self.contract}
        listed: list[Json] = self.alpha.call("cacp/receipt/list", **at)["receipts"]
        return listed


@pytest.fixture
def world(alpha: Node, beta: MeshMember, shared: str) -> World:
    world = World(alpha, beta, shared)
    world.tell()
    assert world.status == "implemented"
    return world


def test_a_receipt_comes_and_verifies_and_comes_no_second_time(world: World) -> None:
    fact = world.fact(world.receipt())
    assert world.sends(fact)["status"] == "updated"
    assert world.status == "verified"
    [shown] = world.listed
    assert (shown["node"], shown["proves"]) == (world.beta.agent, True)
    assert world.sends(fact) == {"status": "skipped", "reason": "nothing new"}


def test_the_receipts_of_a_contract_are_fetched_apart_from_it(world: World) -> None:
    """A node of an earlier release takes the contract: it knows no fact of that kind."""
    world.sends(world.fact(world.receipt()))
    whole = pulled(world.beta, "contract", world.project, world.contract)
    assert {signed["fact"]["kind"] for signed in whole["facts"]} == {
        "version",
        "response",
        "implementation",
    }
    apart = pulled(world.beta, "receipt", world.project, world.contract)["receipts"]
    assert apart["contract_id"] == world.contract
    [fact] = apart["facts"]
    assert fact["fact"]["receipt"] == world.receipt().wire()
    assert fact["signature"]["node"] == world.beta.agent


def test_a_receipt_waits_for_its_contract(alpha: Node, beta: MeshMember, shared: str) -> None:
    world = World(alpha, beta, shared)
    answer = world.sends(world.fact(world.receipt()))
    assert answer["reason"] == "deferred: its contract is not here"
    world.tell()
    eventually(lambda: world.status == "verified")


def test_a_receipt_waits_for_its_round(world: World) -> None:
    answer = world.sends(world.fact(world.receipt(round=2)))
    assert answer["reason"].startswith("deferred: round 2 of version 1 follows on a failed")
    assert world.listed == []


def edit(world: World) -> Json:
    failed = world.receipt(outcome="regression", exit_code=1)
    return world.fact(failed.model_copy(update={"outcome": "passed", "exit_code": 0}))


FLAWED: dict[str, tuple[Callable[[World], Json], str]] = {
    "edited": (edit, "the signature of its runner does not match"),
    "of another contract": (
        lambda world: world.fact(world.receipt(contract_id="another")),
        "it is of contract another",
    ),
    "of another round than its fact": (
        lambda world: world.fact(world.receipt(), round=2),
        "it says something else than the fact that carries it",
    ),
    "of another repo than its fact": (
        lambda world: world.fact(world.receipt(), repo_id=repo_id_for(world.project, "alpha")),
        "it says something else than the fact that carries it",
    ),
    "malformed": (lambda world: world.fact(world.receipt(), receipt={"x": 1}), "it is malformed"),
    "of no party": (
        lambda world: world.fact(world.receipt(repo="nobody")),
        "its repo is not a party to version 1",
    ),
    "of a kind that is none": (
        lambda world: world.beta.fact(world.contract, world.version),
        "a version is no receipt",
    ),
}


@pytest.mark.parametrize("name", FLAWED)
def test_a_flawed_receipt_is_skipped(world: World, name: str) -> None:
    make, reason = FLAWED[name]
    answer = world.sends(make(world))
    assert answer["status"] == "skipped"
    assert reason in answer["reason"]
    assert (world.status, world.listed) == ("implemented", [])


def test_a_fact_that_its_node_has_not_signed_is_skipped(world: World) -> None:
    other = world.fact(world.receipt())
    fact = world.fact(world.receipt(command="make all")) | {"signature": other["signature"]}
    assert "the signature does not match the key" in world.sends(fact)["reason"]
    assert world.status == "implemented"


def test_no_receipt_comes_with_a_contract(world: World) -> None:
    """There its runner's signature is not checked."""
    answer = world.beta.contract(world.project, world.contract, edit(world))
    assert answer["reason"] == "receipts come by cacp/receipt/sync"
    assert (world.status, world.listed) == ("implemented", [])


def test_a_node_that_takes_no_part_in_the_project_is_not_believed(
    alpha: Node, world: World
) -> None:
    delta = MeshMember(alpha, f"delta-{uuid4().hex[:6]}").register()
    body = members_of(fact_of(world.receipt(), DONE + 2 * SECOND))
    receipts = {
        "contract_id": world.contract,
        "facts": [delta.fact(world.contract, body)],
    }
    error = delta.refused("cacp/receipt/sync", projectId=world.project, receipts=receipts)
    assert (error.reason, error.data["kind"]) == ("not_found", "claim")
    mixed = world.sends(delta.fact(world.contract, body), world.fact(world.receipt(command="x")))
    assert mixed["status"] == "updated"
    assert [skipped["kind"] for skipped in mixed["skipped"]] == ["claim"]
    assert len(world.listed) == 1


def test_of_two_records_the_first_stays(world: World) -> None:
    receipt = world.receipt()
    world.sends(world.fact(receipt, DONE + 60 * SECOND))
    world.sends(world.fact(receipt, DONE + 2 * SECOND))
    [shown] = world.listed
    assert shown["recordedAt"] == iso(DONE + 2 * SECOND)
    assert world.sends(world.fact(receipt, DONE + 9 * SECOND))["status"] == "skipped"


def test_a_record_from_before_the_completion_proves_nothing(world: World) -> None:
    started = iso(DONE - SECOND)
    world.sends(world.fact(world.receipt(started_at=started), DONE - SECOND))
    [shown] = world.listed
    assert not shown["proves"]
    assert "before its repo declared its work complete" in shown["problem"]
    assert world.status == "implemented"


def test_a_contract_of_another_project_has_no_receipts_here(
    alpha: Node, beta: MeshMember, world: World
) -> None:
    other = str(uuid4())
    beta.project(other)
    receipts = {"contract_id": world.contract, "facts": [world.fact(world.receipt())]}
    answer = beta.call("cacp/receipt/sync", projectId=other, receipts=receipts)
    assert answer["reason"] == "the contract belongs to another project"
    assert world.listed == []
