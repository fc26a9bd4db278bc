"""The steps of a contract (design §5): each takes the known facts and a command, and returns new
facts or raises a refusal.

A step that repeats what is recorded is a retry: it is legal in any state and changes nothing.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, cast

from peers import clock
from schemas.base import JsonObject
from schemas.contract import (
    UNSETTLED,
    ContractStatus,
    ResponseAction,
    ResponseOutcome,
    VerificationResult,
)
from schemas.dialect import DialectName
from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)
from server.domain.agents import same_agent
from server.domain.contract import (
    Facts,
    Statement,
    current_of,
    facts_about,
    has_asked,
    is_open_to_all,
    others_of,
    round_of,
    status_of,
)
from server.domain.errors import Conflict, Forbidden, IllegalTransition
from server.domain.terms import VersionTerms

F = TypeVar("F", bound=Fact)

Action = Literal["agree", "request_change", "reject", "update", "start", "complete", "verify"]

ALLOWED: dict[Action, tuple[ContractStatus, ...]] = {
    "agree": ("proposed", "negotiating", "agreed", "implemented", "verified"),
    "request_change": ("proposed", "negotiating", "agreed", "implemented", "verified"),
    "reject": UNSETTLED,
    "update": UNSETTLED,
    "start": ("agreed",),
    "complete": ("agreed", "implemented"),
    "verify": ("implemented", "verified"),
}
"""The states in which each action is legal; the diagram in docs/contracts.md is generated from it.

A party may agree after another one has: its consent is recorded and changes no state.
"""


@dataclass(frozen=True, slots=True)
class Party:
    """The acting agent, and the repo of the project that it holds."""

    repo_id: str
    agent_id: str


def outcome_of(action: ResponseAction, status: ContractStatus) -> ResponseOutcome:
    """The outcome of a response, which brought the contract into `status`.

    Many clients read nothing else, so it is "agreed" only when the contract is. For an agreement
    that another party's response still blocks, it is the contract's status.
    """
    if action == "request_change":
        return "change_requested"
    if action == "reject":
        return "rejected"
    return status if status in UNSETTLED else "agreed"


def respond(
    facts: Facts,
    who: Party,
    action: ResponseAction,
    stamp: int,
    *,
    comment: str | None = None,
    suggested_change: Any = None,
) -> ResponseFact:
    """The response of `who` to the current version; for a repetition, the known fact.

    Agreeing withdraws one's own request for a change, and does nothing else when the author or a
    repo that is not a party agrees.

    Raises IllegalTransition, and Forbidden for an agreement to one's own version, or an agreement
    or a rejection by a repo that is not a party.
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
    repeated = _unchanged_fact(facts, response)
    if repeated is not None:
        return repeated
    check_allowed(facts, action)
    if not is_open_to_all(facts, current, action, who.repo_id):
        _check_party(current, who)
    if action == "agree" and not has_asked(facts, current, who.repo_id):
        alone = others_of(current) == {current.repo_id}
        if not alone and (
            who.repo_id == current.repo_id or same_agent(who.agent_id, current.agent_id)
        ):
            raise Forbidden(
                f"You proposed version {current.version}; another party must agree to it",
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
    terms: VersionTerms | None = None,
    dialect: DialectName | None = None,
) -> VersionFact:
    """The next version. Responses to the former one no longer count (design §7).

    Raises IllegalTransition, and Forbidden when the repo is not a party to the current version
    or the new one leaves out a party.
    """
    current = current_of(facts)
    check_allowed(facts, "update")
    _check_party(current, who)
    left_out = sorted(set(current.parties) - set(parties))
    if left_out:
        raise Forbidden(
            "A version must bind all parties of the one before",
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
        verification=terms and terms.verification,
        roles=terms and terms.frozen,
        dialect=dialect,
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
    commit: str | None = None,
) -> ImplementationFact:
    """The party's work in this round with the given changes; members that are None keep their
    values. Another commit than the one declared complete is another completion."""
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
    given: dict[str, Any] = {
        "plan": plan,
        "files": files,
        "notes": notes,
        "test_endpoint": test_endpoint,
        "commit": commit,
    }
    # A repeated completion keeps the time of the first.
    is_repeated = commit is None or before.commit in (None, commit)
    completed = (before.completed_at if is_repeated else None) or stamp
    completed_at = completed if status == "complete" else None
    work = replace(
        before,
        agent_id=who.agent_id,
        status=status,
        completed_at=completed_at,
        stamp=stamp,
        **{name: value for name, value in given.items() if value is not None},
    )
    repeated = _unchanged_fact(facts, work)
    if status == "in_progress" and before.status == "complete":
        # A late start does not reopen work that is complete, unless it has a new plan.
        done = replace(work, status="complete", completed_at=before.completed_at)
        repeated = _unchanged_fact(facts, done)
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
    """The verification by `who`; a failure also opens the next round (design §5, state machine).
    Empty for a repetition."""
    current = current_of(facts)
    number = round_of(facts, current)
    verification = VerificationFact(
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
    # Until somebody begins the new round, a failure belongs to the round that another one ended.
    is_late = result == "failure" and number > 1 and not _has_begun(facts, current, number)
    if is_late:
        verification = replace(verification, round=number - 1)
    if _unchanged_fact(facts, verification):
        return []
    if not is_late:
        check_allowed(facts, "verify")
    _check_party(current, who)
    stamped = after(facts, verification)
    if is_late or result != "failure":
        return [stamped]
    opened = RoundFact(
        version=current.version, digest=current.digest, number=number + 1, stamp=stamp
    )
    return [stamped, opened]


def _has_begun(facts: Facts, current: VersionFact, number: int) -> bool:
    """Whether any party has begun to implement the current version in this round."""
    return any(fact.round == number for fact in facts_about(facts, current, ImplementationFact))


def _unchanged_fact(facts: Facts, fact: Statement) -> Statement | None:
    """The known fact, when `fact` differs from it by the stamp only."""
    known = facts.get((fact.kind, fact.key))
    if known is None or replace(known, stamp=fact.stamp) != fact:
        return None
    return cast(Statement, known)


def after(facts: Facts, fact: F) -> F:
    """The fact, with a stamp after that of the fact that it replaces, whatever the clocks were."""
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
            "fetch the contract again with cacp/contract/get",
            reason="stale_version",
            currentVersion=current.version,
        )


def check_allowed(facts: Facts, action: Action) -> None:
    """Raises IllegalTransition unless `action` is legal in the state that the facts are in."""
    status = status_of(facts)
    if status in ALLOWED[action]:
        return
    allowed = [name for name, states in ALLOWED.items() if status in states]
    if status in UNSETTLED:
        way = "the parties must agree first"
    elif status == "agreed" and action == "verify":
        way = "every party must complete its implementation first"
    else:
        way = "request_change reopens it"
        if action == "update":
            way += ", and cacp/contract/compare tells before what a content would break"
    raise IllegalTransition(
        f"Cannot {action} a contract that is {status}: {way}. Allowed now: {', '.join(allowed)}",
        action=action,
        allowed=allowed,
        **{"from": status},
    )


def _check_party(version: VersionFact, who: Party) -> None:
    if who.repo_id not in version.parties:
        raise Forbidden(
            f"Your repo is not a party to version {version.version}. Ask the parties, with "
            "request_change, for a cacp/contract/update that includes your repo",
            reason="not_a_party",
            parties=list(version.parties),
        )
