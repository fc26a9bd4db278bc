"""Random contracts: sets of facts, and histories that several replicas play and merge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from peers.receipts import signed
from peers.signing import SigningKey
from schemas.base import JsonObject, iso
from schemas.facts import (
    Fact,
    ImplementationFact,
    ReceiptFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from schemas.receipt import ProofReceipt, ProofRun
from schemas.verification import PartyRole
from server.domain import contract, contract_steps
from server.domain.canonical import digest
from server.domain.contract import Facts
from server.domain.contract_steps import Party
from server.domain.errors import Refusal
from server.domain.receipts import fact_of
from server.domain.terms import VersionTerms

API = Party("api", "aid://example.com/api@1.0.0")
WEB = Party("web", "aid://example.com/web@1.0.0")
IOS = Party("ios", "aid://example.com/ios@1.0.0")
PARTIES = {who.repo_id: who for who in (API, WEB, IOS)}
ROLES: dict[str, PartyRole] = {"api": "provider", "web": "consumer", "ios": "consumer"}
CONTENTS: tuple[JsonObject, ...] = ({"path": "/a"}, {"path": "/b"}, {"path": "/c"})


def propose(
    *parties: Party,
    content: JsonObject = CONTENTS[0],
    policy: Any = "any",
    stamp: int = 1,
    verification: Any = None,
) -> dict[contract.FactKey, Fact]:
    """A contract that the first of `parties` has just proposed."""
    first = VersionFact(
        version=1,
        digest=digest(content),
        content=content,
        repo_id=parties[0].repo_id,
        agent_id=parties[0].agent_id,
        parties=tuple(sorted(who.repo_id for who in parties)),
        policy=policy,
        verification=verification,
        roles=None if verification is None else ROLES,
        stamp=stamp,
    )
    return contract.join({}, [first])


@dataclass(frozen=True)
class Step:
    """One command to one of the replicas; `merge` takes in all that the next replica holds."""

    replica: int
    who: Party
    action: str
    content: JsonObject


def facts_of(facts: Facts, step: Step, stamp: int) -> list[Fact]:
    """What the step would write. Raises Refusal where it is illegal."""
    who = step.who
    if step.action in ("agree", "request_change", "reject"):
        return [contract_steps.respond(facts, who, step.action, stamp)]  # type: ignore[arg-type]
    if step.action == "update":
        parties = contract.current_of(facts).parties
        new = digest(step.content)
        current = contract.current_of(facts)
        terms = VersionTerms(current.verification, current.roles, {})
        update = contract_steps.update(facts, who, step.content, new, parties, stamp, terms=terms)
        return [update]
    if step.action in ("in_progress", "complete"):
        return [contract_steps.implement(facts, who, step.action, stamp)]  # type: ignore[arg-type]
    return contract_steps.verify(facts, who, step.action, stamp)  # type: ignore[arg-type]


ACTIONS = (
    "agree",
    "agree",
    "complete",
    "complete",
    "success",
    "failure",
    "partial",
    "in_progress",
    "request_change",
    "reject",
    "update",
)


def steps(replicas: int, *more: str) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        replica=st.integers(0, replicas - 1),
        who=st.sampled_from(list(PARTIES.values())),
        action=st.sampled_from(ACTIONS + more),
        content=st.sampled_from(CONTENTS),
    )


def play(start: Facts, played: list[Step], replicas: int) -> list[dict[contract.FactKey, Fact]]:
    """What each replica holds in the end. Refused steps change nothing."""
    held = [dict(start) for _ in range(replicas)]
    for stamp, step in enumerate(played, 10):
        mine = held[step.replica]
        if step.action == "merge":
            held[step.replica] = contract.join(mine, held[step.replica - 1].values())
            continue
        try:
            held[step.replica] = contract.join(mine, facts_of(mine, step, stamp))
        except Refusal:
            continue
    return held


def histories(replicas: int = 3) -> st.SearchStrategy[list[dict[contract.FactKey, Fact]]]:
    """Replicas of one contract after a random legal history with concurrent branches."""
    policies = st.sampled_from(["any", "all"])
    verifications = st.sampled_from([None, None, "receipt", "receipt_both"])
    start = st.builds(
        lambda policy, verification: propose(
            API, WEB, IOS, policy=policy, verification=verification
        ),
        policies,
        verifications,
    )
    played = st.lists(steps(replicas, "merge"), max_size=30)
    return st.builds(lambda first, rest: play(first, rest, replicas), start, played)


def _places() -> dict[str, st.SearchStrategy[Any]]:
    return {
        "version": st.integers(1, 3),
        "digest": st.sampled_from([digest(content) for content in CONTENTS]),
        "stamp": st.integers(1, 6),
    }


def _authored() -> dict[str, st.SearchStrategy[Any]]:
    return _places() | {
        "repo_id": st.sampled_from(list(PARTIES)),
        "agent_id": st.sampled_from([who.agent_id for who in PARTIES.values()]),
    }


def versions() -> st.SearchStrategy[VersionFact]:
    """Versions whose digest is that of their content."""
    contents = {digest(content): content for content in CONTENTS}
    return st.builds(
        VersionFact,
        **_authored(),
        content=st.just(CONTENTS[0]),
        parties=st.sampled_from([("api",), ("api", "web"), ("api", "ios", "web")]),
        policy=st.sampled_from(["any", "all"]),
        parent=st.none() | st.sampled_from(list(contents)),
        verification=st.none() | st.sampled_from(["receipt", "receipt_both", "independent"]),
        roles=st.none() | st.just(ROLES),
    ).map(lambda fact: replace(fact, content=contents[fact.digest]))


def others(repos: Sequence[str] = tuple(PARTIES)) -> st.SearchStrategy[Fact]:
    """What is said of versions, by these repos."""
    authored = _authored() | {"repo_id": st.sampled_from(repos)}
    rounds = {"round": st.integers(1, 3)}
    return st.one_of(
        st.builds(
            ResponseFact,
            **authored,
            action=st.sampled_from(["agree", "request_change", "reject"]),
            suggested_change=st.none(),
        ),
        st.builds(RoundFact, **_places(), number=st.integers(1, 3)),
        st.builds(
            ImplementationFact,
            **authored,
            **rounds,
            status=st.sampled_from(["in_progress", "complete", "needs_revision"]),
            commit=st.none() | st.sampled_from(COMMITS),
        ),
        st.builds(
            VerificationFact,
            **authored,
            **rounds,
            result=st.sampled_from(["success", "failure", "partial"]),
            details=st.none(),
        ),
        receipts(repos),
    )


RUNNERS = tuple(SigningKey(bytes([number]) * 32) for number in range(3))
COMMITS = ("a" * 40, "b" * 40)
OUTCOMES = ("passed", "regression", "inherited_failure", "missing_capability", "unclassified")
SECOND = 1_000_000


def run_of(**given: Any) -> ProofRun:
    """A run that passes, with the given members."""
    members: dict[str, Any] = {
        "contract_id": "c",
        "version": 1,
        "digest": digest(CONTENTS[0]),
        "round": 1,
        "repo": "api",
        "side": "provider",
        "commit": COMMITS[0],
        "tree": "c" * 40,
        "dirty": False,
        "tool": "verify",
        "command": "make test",
        "exit_code": 0,
        "outcome": "passed",
        "output_digest": "d" * 64,
        "started_at": iso(0),
        "duration": 0,
        "runner": "aid://example.com/ci@1.0.0",
    }
    return ProofRun(**(members | given))


@cache
def _signed(run: ProofRun, runner: int) -> ProofReceipt:
    return signed(run, RUNNERS[runner])


def receipts(repos: Sequence[str] = tuple(PARTIES)) -> st.SearchStrategy[ReceiptFact]:
    """Receipts that runners have signed, of which several are of one command on one commit."""
    digests = [digest(content) for content in CONTENTS]
    runs = st.builds(
        run_of,
        version=st.integers(1, 3),
        digest=st.sampled_from(digests),
        round=st.integers(1, 2),
        repo=st.sampled_from(repos),
        side=st.sampled_from(["provider", "consumer"]),
        commit=st.sampled_from(COMMITS),
        outcome=st.sampled_from(OUTCOMES),
        started_at=st.integers(0, 2).map(iso),
    )
    both = st.tuples(runs, st.integers(0, 1), st.integers(1, 6))
    return both.map(lambda given: fact_of(_signed(given[0], given[1]), given[2]))


def fact_sets() -> st.SearchStrategy[list[Fact]]:
    """Facts that need no history behind them; at least one is a version."""
    return st.builds(
        lambda first, rest: [first, *rest],
        versions(),
        st.lists(versions() | others(), max_size=14),
    )
