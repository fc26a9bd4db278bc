"""Contracts as peers send them whole, and the facts that follow from what they say."""

from typing import Any

from peers.foreign import Difference, to_facts
from schemas.base import iso
from schemas.facts import Fact
from schemas.sync import PeerContract
from server.domain import contract
from server.domain.contract import Facts
from tests.server.domain.histories import CONTENTS, WEB

NAIVE = "2026-02-21T09:30:00.{:06d}"


def theirs(**changes: Any) -> PeerContract:
    """A contract as web's foreign node sends it."""
    return PeerContract.model_validate(
        {
            "contract_id": "c1",
            "type": "api_endpoint",
            "name": "Get User Profile",
            "version": 1,
            "status": "proposed",
            "content": CONTENTS[0],
            "proposed_by": "api",
            "updated_at": NAIVE.format(1),
        }
        | changes
    )


def work(repo_id: str = "web", status: str = "complete", **more: Any) -> dict[str, Any]:
    return {"repo_id": repo_id, "agent_id": f"aid://example.com/{repo_id}", "status": status} | more


def wire(facts: Facts) -> PeerContract:
    """A contract as we send it."""
    current = contract.current_of(facts)
    works = [
        work(
            fact.repo_id,
            fact.status,
            plan=fact.plan,
            files=list(fact.files),
            notes=fact.notes,
            completed_at=iso(fact.completed_at) if fact.completed_at else None,
        )
        for fact in contract.implementations_of(facts)
    ]
    return theirs(
        version=current.version,
        status=contract.status_of(facts),
        content=current.content,
        proposed_by=current.repo_id,
        implementations=works,
        updated_at=iso(contract.updated_at(facts)),
    )


def facts_from(found: list[Difference], facts: Facts | None, stamp: int = 500) -> list[Fact]:
    current = contract.current_of(facts) if facts else None
    return to_facts(
        found,
        current,
        repo_id="web",
        agent_id=WEB.agent_id,
        parties=current.parties if current else ("api", "web"),
        policy=current.policy if current else "any",
        verification=current.verification if current else None,
        roles=current.roles if current else None,
        round_number=contract.round_of(facts, current) if facts and current else 1,
        stamp=stamp,
    )
