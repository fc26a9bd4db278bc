"""Contracts as facts: their join, their status, and which step is legal (design §5, §7).

A contract is a set of single-author facts. `join` is commutative, associative and idempotent,
and `status_of` is a pure function of the set: so nodes that hold the same facts, learnt in any
order, agree on the status.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

import orjson

from peers import clock
from schemas.base import JsonObject
from schemas.contract import (
    ContractStatus,
    ResponseAction,
    ResponseOutcome,
    VerificationResult,
)
from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from server.domain.agents import same_agent
from server.domain.canonical import MAX_DEPTH, canonical
from server.domain.errors import Conflict, Forbidden, IllegalTransition, Refusal

F = TypeVar("F", bound=Fact)
FactKey = tuple[str, str]
Facts = Mapping[FactKey, Fact]
"""Facts of one contract by (kind, key), one winner each."""

Said = TypeVar("Said", ResponseFact, ImplementationFact, VerificationFact)

Action = Literal["agree", "request_change", "reject", "update", "start", "complete", "verify"]

ALLOWED: dict[Action, tuple[ContractStatus, ...]] = {
    "agree": ("proposed", "negotiating", "agreed", "implemented", "verified"),
    "request_change": ("proposed", "negotiating", "agreed", "implemented", "verified"),
    "reject": ("proposed", "negotiating"),
    "update": ("proposed", "negotiating"),
    "start": ("agreed",),
    "complete": ("agreed", "implemented"),
    "verify": ("implemented", "verified"),
}
"""The states in which each action is legal; the diagram in docs/contracts.md is made from it.

One party may agree after another has: its consent is recorded, and moves nothing.
"""


@dataclass(frozen=True, slots=True)
class Party:
    """Who acts: an agent, and the repo of the project that it holds."""

    repo_id: str
    agent_id: str


# --- the join -----------------------------------------------------------------------------------


def winner(one: Fact, other: Fact) -> Fact:
    """Which of two facts with one key stays (design §7, the table)."""
    if isinstance(one, VersionFact):
        return min(one, other, key=_order)
    if isinstance(one, RoundFact):
        return max(one, other, key=lambda fact: (cast(RoundFact, fact).number, _order(fact)))
    return max(one, other, key=_order)


def _order(fact: Fact) -> tuple[int, bytes]:
    # The text settles stamps that are equal, alike on every node: on its way it may have come into
    # another order.
    text = orjson.dumps(fact)
    try:
        return fact.stamp, canonical(orjson.loads(text), depth=MAX_DEPTH + 1)
    except Refusal:
        # An earlier release took what no node would sign.
        return fact.stamp, text


def join(facts: Facts, more: Iterable[Fact]) -> dict[FactKey, Fact]:
    """The union of both, with one winner per key. Never deletes a key."""
    joined = dict(facts)
    for fact in more:
        at = (fact.kind, fact.key)
        known = joined.get(at)
        joined[at] = fact if known is None or known == fact else winner(known, fact)
    return joined


# --- what follows from the facts ----------------------------------------------------------------


def versions_of(facts: Facts) -> list[VersionFact]:
    """Every content that was ever a version, the current one last: by (version, stamp, digest).

    Of versions with one content that bind different parties the earliest is shown. The others stay
    facts: what follows on them is as good (`lineage`), and they are conflicts.
    """
    shown: dict[str, VersionFact] = {}
    for fact in facts.values():
        if isinstance(fact, VersionFact):
            known = shown.get(fact.place)
            if known is None or (fact.stamp, fact.key) < (known.stamp, known.key):
                shown[fact.place] = fact
    return sorted(shown.values(), key=_place)


def current_of(facts: Facts) -> VersionFact:
    """The version that counts: the largest (version, stamp, digest)."""
    return versions_of(facts)[-1]


def ancestors_of(facts: Facts) -> list[VersionFact]:
    """The versions that the current one grew from, oldest first.

    Foreign peers may skip versions: a parent is the nearest version below with its digest.
    """
    versions = versions_of(facts)
    line = [versions[-1]]
    for fact in reversed(versions):
        if fact.version < line[-1].version and fact.digest == line[-1].parent:
            line.append(fact)
    return line[:0:-1]


def conflicts_of(facts: Facts) -> list[VersionFact]:
    """Versions that lost a race: neither current nor an ancestor of it (design §7)."""
    versions = [fact for fact in facts.values() if isinstance(fact, VersionFact)]
    if len(versions) == 1:
        return []
    kept = {fact.key for fact in ancestors_of(facts)} | {current_of(facts).key}
    lost = [fact for fact in versions if fact.key not in kept]
    return sorted(lost, key=lambda fact: (*_place(fact), fact.key))


def has_lost(before: Facts, facts: Facts) -> bool:
    """Whether a version has lost a race since `before`."""
    known = {fact.key for fact in conflicts_of(before)}
    return any(fact.key not in known for fact in conflicts_of(facts))


def round_of(facts: Facts, current: VersionFact) -> int:
    """The round of implementation of the current version; the first is 1."""
    fact = facts.get(("round", current.place))
    return fact.number if isinstance(fact, RoundFact) else 1


def status_of(facts: Facts) -> ContractStatus:
    """The contract's status, from the facts for its current version and round (design §7)."""
    current = current_of(facts)
    responses = list(said_of(facts, current, ResponseFact))
    if any(response.action == "request_change" for response in responses):
        return "negotiating"
    if any(fact.action == "reject" and fact.repo_id in current.parties for fact in responses):
        return "proposed"
    if not _agreed(current, responses):
        return "proposed"
    number = round_of(facts, current)
    if any(
        fact.round == number and fact.result == "success" and fact.repo_id in current.parties
        for fact in said_of(facts, current, VerificationFact)
    ):
        return "verified"
    complete = {
        fact.repo_id
        for fact in said_of(facts, current, ImplementationFact)
        if fact.round == number and fact.status == "complete"
    }
    return "implemented" if complete.issuperset(current.parties) else "agreed"


def others_of(version: VersionFact) -> frozenset[str]:
    """The parties whose agreement counts: all but the author's, or the author's if alone."""
    others = frozenset(version.parties) - {version.repo_id}
    return others or frozenset({version.repo_id})


def implementations_of(facts: Facts) -> list[ImplementationFact]:
    """Each repo's work on the current version; of an older round it needs revision."""
    current = current_of(facts)
    number = round_of(facts, current)
    latest: dict[str, ImplementationFact] = {}
    for fact in said_of(facts, current, ImplementationFact):
        known = latest.get(fact.repo_id)
        if known is None or fact.round > known.round:
            latest[fact.repo_id] = fact
    return [
        fact if fact.round == number else replace(fact, status="needs_revision")
        for fact in sorted(latest.values(), key=lambda fact: fact.repo_id)
    ]


def updated_at(facts: Facts) -> int:
    """The largest stamp among the facts (design §7)."""
    return max(fact.stamp for fact in facts.values())


def _place(fact: VersionFact) -> tuple[int, int, str]:
    return fact.version, fact.stamp, fact.digest


def said_of(facts: Facts, version: VersionFact, kind: type[Said]) -> Iterator[Said]:
    """The facts of one kind that are about a version."""
    for fact in facts.values():
        if (
            isinstance(fact, kind)
            and fact.version == version.version
            and fact.digest == version.digest
        ):
            yield fact


def _agreed(version: VersionFact, responses: list[ResponseFact]) -> bool:
    agreeing = {response.repo_id for response in responses if response.action == "agree"}
    needed = others_of(version)
    if version.policy == "all":
        return agreeing.issuperset(needed)
    return not agreeing.isdisjoint(needed)


# --- the steps: facts and a command in, facts or a refusal out ----------------------------------
# A step that only says again what stands is a retry: it is legal in any state, and changes nothing.


def outcome_of(action: ResponseAction, status: ContractStatus) -> ResponseOutcome:
    """What a response came to, in a contract that is in `status` with it.

    Many clients read nothing else: it is "agreed" only when the contract is. An agreement that
    doesn't settle it, because another party's word stands against it, has the contract's status.
    """
    if action == "request_change":
        return "change_requested"
    if action == "reject":
        return "rejected"
    return status if status in ("proposed", "negotiating") else "agreed"


def respond(
    facts: Facts,
    who: Party,
    action: ResponseAction,
    stamp: int,
    *,
    comment: str | None = None,
    suggested_change: Any = None,
) -> ResponseFact:
    """What `who` says of the current version; the fact as it stands when it was said before.

    Who asked for a change takes that back by agreeing, whoever it is: the agreement of the author,
    or of who is no party, counts for no more than that.

    Raises IllegalTransition, or Forbidden: to agree to one's own version, or to agree or reject as
    no party of it.
    """
    current = current_of(facts)
    response = ResponseFact(
        version=current.version,
        digest=current.digest,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        action=action,
        comment=comment,
        suggested_change=suggested_change,
        stamp=stamp,
    )
    repeated = _said_before(facts, response)
    if repeated is not None:
        return repeated
    check_allowed(facts, action)
    withdraws = action == "agree" and has_asked(facts, current, who.repo_id)
    if action != "request_change" and not withdraws:
        _check_party(current, who)
    if action == "agree" and not withdraws:
        alone = others_of(current) == {current.repo_id}
        if not alone and (
            who.repo_id == current.repo_id or same_agent(who.agent_id, current.agent_id)
        ):
            raise Forbidden(
                f"Version {current.version} is your own: another party must agree to it",
                reason="own_version",
                parties=sorted(others_of(current)),
            )
    return after(facts, response)


def update(
    facts: Facts,
    who: Party,
    content: JsonObject,
    digest: str,
    parties: tuple[str, ...],
    stamp: int,
    note: str | None = None,
) -> VersionFact:
    """The next version. What was said of the one before no longer counts (design §7).

    Raises IllegalTransition, or Forbidden: to who is no party of the one before, or when it would
    leave out one that is.
    """
    current = current_of(facts)
    check_allowed(facts, "update")
    _check_party(current, who)
    left_out = sorted(set(current.parties) - set(parties))
    if left_out:
        raise Forbidden(
            "A version binds at least the parties of the one before",
            reason="party_left_out",
            leftOut=left_out,
        )
    return VersionFact(
        version=current.version + 1,
        digest=digest,
        content=content,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        parties=parties,
        policy=current.policy,
        parent=current.digest,
        note=note,
        stamp=stamp,
    )


def implement(
    facts: Facts,
    who: Party,
    status: Literal["in_progress", "complete", "needs_revision"],
    stamp: int,
    *,
    plan: str | None = None,
    files: tuple[str, ...] | None = None,
    notes: str | None = None,
    test_endpoint: str | None = None,
) -> ImplementationFact:
    """The party's work in this round, as it stands now; what is not said again is kept."""
    current = current_of(facts)
    number = round_of(facts, current)
    begun = ImplementationFact(
        version=current.version,
        digest=current.digest,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        round=number,
        status=status,
        started_at=stamp,
        stamp=stamp,
    )
    known = facts.get((begun.kind, begun.key))
    before = known if isinstance(known, ImplementationFact) else begun
    said: dict[str, Any] = {
        "plan": plan,
        "files": files,
        "notes": notes,
        "test_endpoint": test_endpoint,
    }
    # Said again, it was complete when it was first said.
    completed_at = (before.completed_at or stamp) if status == "complete" else None
    work = replace(
        before,
        agent_id=who.agent_id,
        status=status,
        completed_at=completed_at,
        stamp=stamp,
        **{name: value for name, value in said.items() if value is not None},
    )
    repeated = _said_before(facts, work)
    if status == "in_progress" and before.status == "complete":
        # A start that comes late says nothing of work that is complete, unless it has a new plan.
        done = replace(work, status="complete", completed_at=before.completed_at)
        repeated = _said_before(facts, done)
    if repeated is None:
        check_allowed(facts, "complete" if status == "complete" else "start")
    _check_party(current, who)
    return repeated or after(facts, work)


def verify(
    facts: Facts,
    who: Party,
    result: VerificationResult,
    stamp: int,
    *,
    notes: str | None = None,
    details: JsonObject | None = None,
) -> list[Fact]:
    """What `who` found; a failure also opens the next round (design §5, state machine)."""
    current = current_of(facts)
    number = round_of(facts, current)
    found = VerificationFact(
        version=current.version,
        digest=current.digest,
        repo_id=who.repo_id,
        agent_id=who.agent_id,
        round=number,
        result=result,
        notes=notes,
        details=details,
        stamp=stamp,
    )
    # In a round in which nobody has begun, a failure is of the round before, which one has ended.
    is_late = result == "failure" and number > 1 and not _has_begun(facts, current, number)
    if is_late:
        found = replace(found, round=number - 1)
    if _said_before(facts, found):
        return []
    if not is_late:
        check_allowed(facts, "verify")
    _check_party(current, who)
    said = after(facts, found)
    if is_late or result != "failure":
        return [said]
    opened = RoundFact(
        version=current.version, digest=current.digest, number=number + 1, stamp=stamp
    )
    return [said, opened]


def has_asked(facts: Facts, current: VersionFact, repo_id: str) -> bool:
    """Whether a repo's word on the current version is a request for a change."""
    return any(
        (fact.repo_id, fact.action) == (repo_id, "request_change")
        for fact in said_of(facts, current, ResponseFact)
    )


def _has_begun(facts: Facts, current: VersionFact, number: int) -> bool:
    """Whether anybody has begun to implement the current version in this round."""
    return any(fact.round == number for fact in said_of(facts, current, ImplementationFact))


def _said_before(facts: Facts, fact: Said) -> Said | None:
    """The fact as it stands, when `fact` says nothing that it doesn't."""
    known = facts.get((fact.kind, fact.key))
    if known is None or replace(known, stamp=fact.stamp) != fact:
        return None
    return cast(Said, known)


def after(facts: Facts, fact: F) -> F:
    """A fact stamped after the one that it takes the place of, whatever the clocks were then."""
    known = facts.get((fact.kind, fact.key))
    if known is None or known.stamp < fact.stamp:
        return fact
    return replace(fact, stamp=clock.after(fact.stamp, known.stamp))


def check_version(facts: Facts, version: int | None) -> None:
    """Raises Conflict when the version that the caller read is no longer the current one."""
    current = current_of(facts)
    if version is not None and version != current.version:
        raise Conflict(
            f"You read version {version}, but the contract is at version {current.version}: "
            "get it again",
            reason="stale_version",
            currentVersion=current.version,
        )


def check_allowed(facts: Facts, action: Action) -> None:
    """Raises IllegalTransition unless `action` is legal in the state that the facts are in."""
    status = status_of(facts)
    if status in ALLOWED[action]:
        return
    allowed = [name for name, states in ALLOWED.items() if status in states]
    if status in ("proposed", "negotiating"):
        way = "the parties must agree first"
    elif status == "agreed" and action == "verify":
        way = "every party must complete its implementation first"
    else:
        way = "request_change reopens it"
    raise IllegalTransition(
        f"A contract that is {status} takes no {action}: {way}. Allowed now: {', '.join(allowed)}",
        action=action,
        allowed=allowed,
        **{"from": status},
    )


def _check_party(version: VersionFact, who: Party) -> None:
    if who.repo_id not in version.parties:
        raise Forbidden(
            f"Your repo is no party of version {version.version}: ask for a change with "
            "request_change, and for contract/update with your repo among its parties",
            reason="not_a_party",
            parties=list(version.parties),
        )
