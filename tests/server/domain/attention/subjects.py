"""Contracts and agents as the tests of attention use them, and the steps that items name."""

from collections.abc import Iterator
from typing import Any

from peers.receipts import signed
from schemas.base import iso
from schemas.contract import ResponseAction
from schemas.facts import Fact
from server.domain import contract_steps
from server.domain.attention.contract_view import ContractSubject
from server.domain.attention.derive import attention
from server.domain.attention.items import Actor, NextStep, ProjectNames, WaitingItem
from server.domain.canonical import digest
from server.domain.contract import Facts, join, unproven_sides
from server.domain.contract_steps import Party
from server.domain.receipts import fact_of
from tests.server.domain.histories import COMMITS, PARTIES, RUNNERS, run_of

PROJECT = "project-1"
CONTRACT = "contract-1"
NAMES = ProjectNames(PROJECT, "shop", {repo_id: f"{repo_id}-repo" for repo_id in PARTIES})
NEW = {"path": "/new"}
LATE = 1_000


def subject(facts: Facts) -> ContractSubject:
    return ContractSubject(NAMES, CONTRACT, "login", "api_endpoint", facts)


def actor(who: Party) -> Actor:
    return Actor(who.agent_id, {PROJECT: who.repo_id})


def waiting(facts: Facts, who: Party) -> list[WaitingItem]:
    return attention([subject(facts)], actor(who))


def kinds(facts: Facts, who: Party) -> list[str]:
    return [item.kind for item in waiting(facts, who)]


def taken(facts: Facts, who: Party, step: NextStep) -> Iterator[Facts]:
    """The facts after the step, for each choice that it leaves open. Raises Refusal for an illegal
    one."""
    if step.method == "cacp/contract/respond":
        actions: list[Any] = [step.params["action"]] if "action" in step.params else []
        if "action" in step.fill:
            actions = [choice.split()[0] for choice in step.fill["action"].split(" or ")]
        assert actions
        for action in actions:
            yield join(facts, [_response(facts, who, action)])
    elif step.method == "cacp/contract/update":
        parties = tuple(step.params["parties"])
        version = contract_steps.update(facts, who, NEW, digest(NEW), parties, LATE)
        yield join(facts, [version])
    elif step.method == "cacp/implementation/complete":
        yield join(facts, [contract_steps.implement(facts, who, "complete", LATE)])
    elif step.method == "cacp/receipt/record":
        assert "cacp verify --contract" in step.fill["receipt"]
        yield join(facts, _proof(facts, who))
    else:
        assert step.method == "cacp/implementation/verify"
        yield join(facts, contract_steps.verify(facts, who, "success", LATE))
        yield join(facts, contract_steps.verify(facts, who, "failure", LATE))


def _proof(facts: Facts, who: Party) -> Iterator[Fact]:
    """The commit that the repo has completed, and passed receipts of its sides."""
    work = contract_steps.implement(facts, who, "complete", LATE, commit=COMMITS[0])
    yield work
    for repo_id, side in unproven_sides(facts):
        if repo_id == who.repo_id:
            run = run_of(
                version=work.version,
                digest=work.digest,
                round=work.round,
                repo=repo_id,
                side=side,
                started_at=iso(LATE),
            )
            yield fact_of(signed(run, RUNNERS[0]), LATE + 1)


def _response(facts: Facts, who: Party, action: ResponseAction) -> Fact:
    return contract_steps.respond(facts, who, action, LATE, comment="because")
