"""Honest work that runners prove, and those who claim proof that they don't have.

A `Scenario` is a contract that is agreed and built, with the receipts that prove it. A lie takes
one of these receipts, and makes of it another one that must prove nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from peers.receipts import signed
from schemas.base import iso
from schemas.facts import Fact, ReceiptFact, VersionFact
from schemas.receipt import ProofReceipt, ReceiptSide
from schemas.verification import PartyRole, VerificationPolicy
from server.domain import contract, contract_steps
from server.domain.agents import RunnerKey
from server.domain.canonical import digest
from server.domain.contract import FactKey, join
from server.domain.contract_steps import Party
from server.domain.lineage import ContractRef
from server.domain.proof import CLOCK_SKEW, Side
from server.domain.receipts import ReceiptPlace, fact_of, judged
from server.domain.terms import sides_to_prove
from tests.server.domain.histories import (
    CONTENTS,
    PARTIES,
    RUNNERS,
    SECOND,
    run_of,
)

START = 1_000_000 * SECOND
CONTRACT, PROJECT = "the contract", "the project"
NAMES = {"api": "backend-api", "web": "frontend-app", "ios": "ios-app"}
CI = "aid://example.com/ci@1.0.0"
DAY = 86_400 * SECOND


class Brought(NamedTuple):
    """A receipt as it is brought to the node, and the key that the node knows by its public key."""

    receipt: ProofReceipt
    key: RunnerKey | None


@dataclass
class Scenario:
    """An agreed contract in round `round`, which every party has completed at its commit; with its
    facts before any receipt of this round, and the receipts that prove it."""

    facts: dict[FactKey, Fact]
    policy: VerificationPolicy
    round: int
    now: int
    commits: dict[str, str]
    honest: list[Brought]
    earlier: list[Brought]
    """Receipts of the round before, each of a side that is asked for now."""
    skew: int

    @property
    def place(self) -> ReceiptPlace:
        roles = contract.current_of(self.facts).roles or {}
        return ReceiptPlace(ContractRef(PROJECT, CONTRACT), self.facts, roles, NAMES)

    def takes(self, brought: Brought, after: int = SECOND) -> str | None:
        """Record a receipt; returns the reason of a refusal."""
        self.now += after
        outcome = judged(self.place, brought.receipt, brought.key, self.now)
        if not isinstance(outcome, ReceiptFact):
            return outcome.reason
        self.facts = join(self.facts, [outcome])
        return None

    def forced(self, receipt: ProofReceipt, stamp: int | None = None) -> None:
        """Add a receipt as a node of the mesh might that checks nothing."""
        self.facts = join(self.facts, [fact_of(receipt, stamp or self.now)])

    @property
    def status(self) -> str:
        return contract.status_of(self.facts)


def resigned(brought: Brought, by: int = 0, **members: Any) -> Brought:
    """The receipt of a run with other members, signed by the same runner or another."""
    body = brought.receipt.model_dump(exclude={"public_key", "signature"}) | members
    return Brought(signed(run_of(**body), RUNNERS[by]), brought.key)


def edited(brought: Brought, **members: Any) -> Brought:
    """The receipt with other members, and the signature that it had."""
    return Brought(brought.receipt.model_copy(update=members), brought.key)


class Told(NamedTuple):
    """What the tries of an honest scenario draw."""

    policy: VerificationPolicy
    roles: dict[str, PartyRole]
    rounds: int
    skew: int
    runner_repo: bool
    runner_project: bool
    own_runner: bool
    duration: int
    undeclared: bool


ROLES: list[dict[str, PartyRole]] = [
    {"api": "provider", "web": "consumer"},
    {"api": "provider", "web": "consumer", "ios": "consumer"},
    {"api": "both", "web": "consumer"},
    {"api": "provider", "web": "both", "ios": "consumer"},
    {"api": "consumer", "web": "provider"},
]
TOLD = st.builds(
    Told,
    policy=st.sampled_from(["receipt", "receipt_both", "independent", "independent_both"]),
    roles=st.sampled_from(ROLES),
    rounds=st.integers(1, 3),
    skew=st.integers(-CLOCK_SKEW + 60 * SECOND, CLOCK_SKEW - 60 * SECOND),
    runner_repo=st.booleans(),
    runner_project=st.booleans(),
    own_runner=st.booleans(),
    duration=st.integers(0, 3_600),
    undeclared=st.booleans(),
)


def scenario(told: Told) -> Scenario:
    """The contract of an honest history."""
    parties = [PARTIES[repo_id] for repo_id in told.roles]
    facts = _agreed(told, parties)
    now, earlier = START, list[Brought]()
    for number in range(1, told.rounds + 1):
        commits = {who.repo_id: digest([who.repo_id, number])[:40] for who in parties}
        for who in parties:
            now += 60 * SECOND
            given = None if told.undeclared else commits[who.repo_id]
            work = contract_steps.implement(facts, who, "complete", now, commit=given)
            facts = join(facts, [work])
            if told.undeclared:
                # Named later: the completion is that of before.
                commit = commits[who.repo_id]
                again = contract_steps.implement(facts, who, "complete", now + 1, commit=commit)
                facts = join(facts, [again])
        now += told.duration * SECOND + SECOND
        proofs = [_honest(told, side, number, commits, now) for side in _asked(facts)]
        if number == told.rounds:
            return Scenario(facts, told.policy, number, now, commits, proofs, earlier, told.skew)
        earlier = proofs
        now += 3_600 * SECOND
        facts = join(facts, contract_steps.verify(facts, parties[-1], "failure", now))
    raise AssertionError("there is at least one round")


def _agreed(told: Told, parties: list[Party]) -> dict[FactKey, Fact]:
    author, other = parties[0], parties[1]
    version = VersionFact(
        version=1,
        digest=digest(CONTENTS[0]),
        content=CONTENTS[0],
        repo_id=author.repo_id,
        agent_id=author.agent_id,
        parties=tuple(told.roles),
        policy="any",
        verification=told.policy,
        roles=told.roles,
        stamp=START - 60 * SECOND,
    )
    facts = join({}, [version])
    agree = contract_steps.respond(facts, other, "agree", START - SECOND)
    return join(facts, [agree])


def _asked(facts: dict[FactKey, Fact]) -> list[Side]:
    return sorted(sides_to_prove([contract.current_of(facts)]))


def _honest(told: Told, side: Side, number: int, commits: dict[str, str], now: int) -> Brought:
    """The receipt of a run that ends now by the node's clock; the runner's is wrong by the skew."""
    repo_id, which = side
    own = told.own_runner and "independent" not in told.policy
    runner = PARTIES[repo_id].agent_id if own else CI
    run = run_of(
        contract_id=CONTRACT,
        round=number,
        repo=repo_id,
        side=which,
        commit=commits[repo_id],
        started_at=iso(now - told.duration * SECOND + told.skew),
        duration=told.duration * 1_000,
        runner=runner,
        command=f"test {which}",
    )
    key = RunnerKey(
        runner,
        NAMES[repo_id] if told.runner_repo else "",
        False,
        frozenset({PROJECT}) if told.runner_project else None,
    )
    return Brought(signed(run, RUNNERS[0]), key)


# --- lies ---------------------------------------------------------------------------------------


class Lie(NamedTuple):
    """What is brought in place of an honest receipt, and the reason with which it is refused; none
    for one that is recorded and proves nothing. `by_status`: the facts alone tell that it proves
    nothing, also at a node whose peer has let it in, with that peer's stamp."""

    brought: Brought
    reason: str | None
    by_status: bool = True
    stamp: int | None = None


def _other(side: ReceiptSide) -> ReceiptSide:
    return "consumer" if side == "provider" else "provider"


def _key(brought: Brought) -> RunnerKey:
    assert brought.key is not None
    return brought.key


def _wrong_side(told: Scenario, it: Brought) -> Lie | None:
    role = told.place.roles[it.receipt.repo]
    if role == "both":
        return None
    return Lie(resigned(it, side=_other(it.receipt.side)), "receipt_side")


def _self_verified(told: Scenario, it: Brought) -> Lie | None:
    if "independent" not in told.policy:
        return None
    builder = PARTIES[it.receipt.repo].agent_id
    key = _key(it)._replace(agent_id=builder.replace("@1.0.0", "@2.0.0"))
    return Lie(resigned(Brought(it.receipt, key), runner=builder), "receipt_self")


def _self_verified_in_capitals(told: Scenario, it: Brought) -> Lie | None:
    if "independent" not in told.policy:
        return None
    alias = PARTIES[it.receipt.repo].agent_id.replace("example.com", "Example.COM")
    key = _key(it)._replace(agent_id=alias)
    return Lie(resigned(Brought(it.receipt, key), runner=alias), "receipt_self")


def _of_round_before(told: Scenario, it: Brought) -> Lie | None:
    """The very receipt that was right before the contract was reopened."""
    same = [old for old in told.earlier if _side(old) == _side(it)]
    return Lie(same[0], "receipt_round") if same else None


def _as_of_this_round(told: Scenario, it: Brought) -> Lie | None:
    """The commit of the round before, under this round's number."""
    same = [old for old in told.earlier if _side(old) == _side(it)]
    if not same:
        return None
    return Lie(resigned(it, commit=same[0].receipt.commit), "receipt_commit")


def _side(brought: Brought) -> Side:
    return brought.receipt.repo, brought.receipt.side


def _completed(told: Scenario, it: Brought) -> int:
    work = contract.ground_for_receipts(told.facts).works[it.receipt.repo]
    assert work.completed_at is not None
    return work.completed_at


def _early(told: Scenario, it: Brought) -> Lie:
    before = _completed(told, it) - CLOCK_SKEW - SECOND
    return Lie(resigned(it, started_at=iso(before), duration=0), "receipt_early")


def _recorded_early(told: Scenario, it: Brought) -> Lie:
    """A node of the mesh stamps it before the completion; here it can only be recorded later."""
    early = _completed(told, it) - SECOND
    started = iso(early)
    return Lie(resigned(it, started_at=started, duration=0), "", True, early)


Liar = Callable[[Scenario, Brought], Lie | None]
LIARS: dict[str, Liar] = {
    "another digest": lambda told, it: Lie(
        resigned(it, digest=digest(CONTENTS[1])), "receipt_digest"
    ),
    "another version": lambda told, it: Lie(resigned(it, version=2), "receipt_version"),
    "another commit": lambda told, it: Lie(resigned(it, commit="f" * 40), "receipt_commit"),
    "another contract": lambda told, it: Lie(
        resigned(it, contract_id="another"), "receipt_contract", by_status=False
    ),
    "a runner of another project": lambda told, it: Lie(
        it._replace(key=_key(it)._replace(projects=frozenset({"another"}))),
        "receipt_runner_project",
        by_status=False,
    ),
    "a runner of another repo": lambda told, it: Lie(
        it._replace(key=_key(it)._replace(repo="another")), "receipt_runner_repo", by_status=False
    ),
    "a repo that is no party": lambda told, it: Lie(
        Brought(resigned(it, repo="another").receipt, _key(it)._replace(repo="")), "receipt_repo"
    ),
    "an older round": lambda told, it: (
        Lie(resigned(it, round=told.round - 1), "receipt_round") if told.round > 1 else None
    ),
    "a round to come": lambda told, it: Lie(resigned(it, round=told.round + 1), "receipt_round"),
    "a replay after reopening": _of_round_before,
    "the commit of the round before": _as_of_this_round,
    "a dirty tree": lambda told, it: Lie(resigned(it, dirty=True), "receipt_dirty"),
    "a mock": lambda told, it: (
        Lie(resigned(it, target="mock"), "receipt_mock") if it.receipt.side == "provider" else None
    ),
    "the wrong side": _wrong_side,
    "one's own work": _self_verified,
    "one's own work, by another form of one's id": _self_verified_in_capitals,
    "an agent's key": lambda told, it: Lie(
        resigned(it._replace(key=None), 1), "receipt_unknown_runner", by_status=False
    ),
    "a revoked key": lambda told, it: Lie(
        it._replace(key=_key(it)._replace(is_revoked=True)),
        "receipt_revoked_runner",
        by_status=False,
    ),
    "another runner's name": lambda told, it: Lie(
        resigned(it, runner="aid://example.com/trusted@1.0.0"),
        "receipt_other_runner",
        by_status=False,
    ),
    "another's signature": lambda told, it: Lie(
        edited(it, signature=resigned(it, 1).receipt.signature), "receipt_edited", by_status=False
    ),
    "a failure that is edited": lambda told, it: Lie(
        edited(resigned(it, outcome="regression", exit_code=1), outcome="passed", exit_code=0),
        "receipt_edited",
        by_status=False,
    ),
    "a commit that is edited": lambda told, it: Lie(
        edited(resigned(it, commit="f" * 40), commit=it.receipt.commit),
        "receipt_edited",
        by_status=False,
    ),
    "a dirty tree that is edited": lambda told, it: Lie(
        edited(resigned(it, dirty=True), dirty=False), "receipt_edited", by_status=False
    ),
    "a pass that ended with an error": lambda told, it: Lie(
        resigned(it, exit_code=5), "receipt_contradicts"
    ),
    "a pass of no cases": lambda told, it: Lie(resigned(it, cases=0), "receipt_contradicts"),
    "a run of the future": lambda told, it: Lie(
        resigned(it, started_at=iso(told.now + DAY)), "receipt_future"
    ),
    "a run that ends in the future": lambda told, it: Lie(
        resigned(it, duration=it.receipt.duration + 86_400_000), "receipt_future"
    ),
    "a run before the completion": _early,
    "a record before the completion": _recorded_early,
    "a regression": lambda told, it: Lie(resigned(it, outcome="regression", exit_code=1), None),
    "an inherited failure": lambda told, it: Lie(
        resigned(it, outcome="inherited_failure", exit_code=1), None
    ),
    "what can't be run": lambda told, it: Lie(
        resigned(it, outcome="missing_capability", exit_code=127), None
    ),
    "a run that was killed": lambda told, it: Lie(
        resigned(it, outcome="unclassified", exit_code=-9), None
    ),
}


def undeclared(told: Scenario) -> Scenario:
    """The same, with repos that have named no commit."""
    facts = {
        at: replace(fact, commit=None) if fact.kind == "implementation" else fact
        for at, fact in told.facts.items()
    }
    return replace(told, facts=facts)
